"""Fault kinds that make a node's wall clock wrong.

Monotonic clocks stay right: no runtime can change those.
"""

from typing import Any, Final

from splitbrain.contracts.arms import ClockWarp
from splitbrain.contracts.fault import US_PER_MS, in_ms
from splitbrain.nemesis.acts import Unwarp, Warp
from splitbrain.nemesis.expectations import ClockIs, ClockOff, Expectation
from splitbrain.nemesis.families.processes import running
from splitbrain.nemesis.fault_kind import Course, FaultKind, Setting, Step, looks_at
from splitbrain.nemesis.fault_options import ClockDriftOptions, ClockJumpOptions, ClockStrobeOptions
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, random_target

PAGE: Final = "clocks"
#: Tolerance for a right clock: the time a reading takes.
_RIGHT_MS: Final = 500


def _healed(setting: Setting) -> tuple[Expectation, ...]:
    right = (ClockIs(node, -_RIGHT_MS, _RIGHT_MS) for node in setting.hit)
    return (*right, *running(setting.hit))


def _jump(setting: Setting, options: ClockJumpOptions) -> Course:
    ahead_ms = in_ms(options.offset_us)
    seen = tuple(ClockIs(node, ahead_ms - _RIGHT_MS, ahead_ms + _RIGHT_MS) for node in setting.hit)
    return Course(
        steps=(Step((Warp(setting.hit, ClockWarp(offset_us=options.offset_us)),), seen=seen),),
        heal=(Unwarp(setting.hit),),
        healed=_healed(setting),
    )


def _drift(setting: Setting, options: ClockDriftOptions) -> Course:
    """Expect the offset that accumulates within one second."""
    seen = tuple(ClockOff(node, max(1, abs(options.drift_ppm) // 1000)) for node in setting.hit)
    return Course(
        steps=(Step((Warp(setting.hit, ClockWarp(drift_ppm=options.drift_ppm)),), seen=seen),),
        heal=(Unwarp(setting.hit),),
        healed=_healed(setting),
    )


def _strobe(setting: Setting, options: ClockStrobeOptions) -> Course:
    hit = setting.hit
    off_ms = max(1, abs(options.offset_us) // US_PER_MS - _RIGHT_MS)
    turns = (
        (
            Warp(hit, ClockWarp(offset_us=options.offset_us)),
            [ClockOff(each, off_ms) for each in hit],
        ),
        (Unwarp(hit), [ClockIs(each, -_RIGHT_MS, _RIGHT_MS) for each in hit]),
    )
    count = max(2, setting.duration_ms // options.period_ms)
    steps: list[Step] = []
    for number in range(count):
        act, seen = turns[number % 2]
        is_seen = looks_at(number, count, options.period_ms)
        at_us = number * options.period_ms * US_PER_MS
        steps.append(Step((act,), at_us, seen=tuple(seen) if is_seen else ()))
    return Course(steps=tuple(steps), heal=(Unwarp(setting.hit),), healed=_healed(setting))


def _kind(name: str, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {
        "page": PAGE,
        "needs": frozenset({"clock"}),
        "other_targets": (FOLLOWER, random_target(1), ALL),
        "refused_targets": frozenset({HALVES}),
        "exclusive": "clock",
    }
    return FaultKind(name=name, summary=summary, **(usual | fields))


KINDS: Final = (
    _kind(
        "clock-jump", "Sets the target's wall clock wrong.",
        course=_jump, options=ClockJumpOptions,
        reveals=(
            "Leases, timeouts and tokens that trust the wall clock are wrong for as long as it "
            "is: a leader may believe in a lease that is over."
        ),
        picture=(
            "n1 (leader)  lease until 12:00:10; its clock is set back by 60 s\n"
            "n2           sees the lease end, is elected, acknowledges write 4\n"
            "n1           11:59:30 by its own clock: still answers reads with 3"
        ),
    ),
    _kind(
        "clock-drift", "Lets the target's wall clock go too fast or too slow.",
        needs=frozenset({"clock", "clock-drift"}), course=_drift, options=ClockDriftOptions,
        reveals=(
            "Two nodes measure the same lease and do not agree on when it is over. A margin that "
            "is too small shows."
        ),
        picture=(
            "real   0 s ........ 5 s ........ 10 s\n"
            "n1     0 s ........ 5 s ........ 10 s   lease over\n"
            "n2     0 s .. 4 s ... 8 s                lease still holds, it believes"
        ),
    ),
    _kind(
        "clock-strobe", "Lets the target's wall clock jump to and fro.",
        course=_strobe, options=ClockStrobeOptions,
        reveals=(
            "Time goes back and forth: differences of two readings become negative, and timers "
            "never fire or all at once."
        ),
        picture=(
            "n1 reads  12:00:00  12:00:30  12:00:01  12:00:31  12:00:02\n"
            "elapsed             +30 s     -29 s     +30 s     -29 s"
        ),
    ),
)  # fmt: skip
