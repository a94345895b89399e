"""From what the user asks for and a seed to a schedule of faults, pure.

``partition,kill:leader`` names fault kinds, each with or without a target. The schedule is a
function of these, the nodes, the time limit and the random source alone: same seed, same
schedule. Windows never overlap (so that every effect has one cause), calm lies between them, and
the end is calm, so that recovery is seen too.
"""

from collections.abc import Iterable, Sequence

import msgspec

from contracts.errors import CapabilityError, UsageError
from contracts.fault import Milliseconds, ScheduledFault
from contracts.names import NodeName
from contracts.random_source import RandomSource
from contracts.runtime import Capability
from nemesis.kinds import fault_kind
from nemesis.targets import LEADER, canonical, check_target

NONE = "none"
_DRAW_LIMIT = 1 << 32
#: Of the targets that the user leaves open, this share is aimed at the leader, besides the first
#: fault of each kind, which always is: a leader's failure is where consensus goes wrong.
_LEADER_SHARE = 0.5


class WantedFault(msgspec.Struct, frozen=True):
    """One item of the user's list."""

    kind: str
    #: Canonical symbolic target, None where the plan may choose.
    target: str | None


class Pace(msgspec.Struct, frozen=True):
    """How long faults and the calm between them last, in milliseconds."""

    fault_min_ms: Milliseconds = 2000
    fault_max_ms: Milliseconds = 6000
    calm_min_ms: Milliseconds = 2000
    calm_max_ms: Milliseconds = 5000
    #: No fault is in force in this last part of the load.
    calm_end_ms: Milliseconds = 4000


def parse(text: str) -> tuple[WantedFault, ...]:
    """Read ``kind[:target],...``; ``none`` alone gives no fault.

    Raises:
        UsageError: a kind or a target does not exist, or a place in the list is empty.
    """
    if text.strip() == NONE:
        return ()
    wanted: list[WantedFault] = []
    for item in text.split(","):
        name, colon, target = item.strip().partition(":")
        if name == NONE:
            raise UsageError(
                f"{NONE!r} stands beside other faults in {text!r}",
                f"Name the faults, or {NONE} alone",
            )
        if not name or (colon and not target.strip()):
            raise UsageError(
                f"something is missing in the list of faults {text!r}",
                "Write it as kind[:target],..., such as partition:leader,kill",
            )
        kind = fault_kind(name)
        target = canonical(target.strip())
        if target in kind.refused_targets:
            raise UsageError(
                f"the fault {name!r} cannot have the target {target!r}",
                f"Use one of: {', '.join((LEADER, *kind.other_targets))}",
            )
        wanted.append(WantedFault(kind=name, target=target or None))
    return tuple(wanted)


def schedule(
    wanted: Sequence[WantedFault],
    nodes: Sequence[NodeName],
    random: RandomSource,
    time_limit_ms: Milliseconds,
    pace: Pace | None = None,
) -> tuple[ScheduledFault, ...]:
    """Draw a schedule: each kind twice where time allows, and as much more as fits.

    Raises:
        UsageError: a target does not exist among the nodes, or not even one fault fits.
    """
    if not wanted:
        return ()
    pace = pace or Pace()
    for item in wanted:
        check_target(item.target or LEADER, nodes, leave_one=fault_kind(item.kind).leaves_one)
    windows = _windows(len(wanted), random, time_limit_ms, pace)
    if not windows:
        least_ms = pace.calm_min_ms + pace.fault_min_ms + pace.calm_end_ms
        raise UsageError(
            f"no fault fits into a time limit of {time_limit_ms / 1000:g} s",
            f"Choose a --time-limit of at least {least_ms / 1000:g}, or --nemesis none",
        )
    faults: list[ScheduledFault] = []
    round_: list[WantedFault] = []
    seen: set[str] = set()
    for index, (at_ms, duration_ms) in enumerate(windows):
        if not round_:
            round_ = _shuffled(wanted, random)
        item = round_.pop()
        target = item.target
        if target is None:
            target = _chosen_target(item.kind, random, first=item.kind not in seen)
            seen.add(item.kind)
        faults.append(
            ScheduledFault(
                index=index,
                kind=item.kind,
                target=target,
                at_ms=at_ms,
                duration_ms=duration_ms,
                draw=_integer(random, 0, _DRAW_LIMIT - 1),
            )
        )
    return tuple(faults)


def needs(faults: Iterable[ScheduledFault]) -> frozenset[Capability]:
    """What a runtime must be able to do to carry out these faults."""
    return frozenset[Capability]().union(*(fault_kind(fault.kind).needs for fault in faults))


def refuse_what_cannot_be_had(
    faults: Sequence[ScheduledFault], capabilities: frozenset[Capability], runtime: str
) -> None:
    """Refuse a plan before the run instead of skipping its faults in silence.

    Raises:
        CapabilityError: the runtime lacks something that a fault needs.
    """
    for fault in faults:
        missing = fault_kind(fault.kind).needs - capabilities
        if missing:
            raise CapabilityError(
                f"plan the fault {fault.kind}",
                f"runtime {runtime}",
                f"it cannot do {' and '.join(sorted(missing))} here",
                "Leave the fault out of --nemesis, or choose another --runtime; "
                "'splitbrain doctor' shows what is missing.",
            )


def _windows(
    kinds: int, random: RandomSource, time_limit_ms: int, pace: Pace
) -> list[tuple[Milliseconds, Milliseconds]]:
    """(start, duration) of each fault, in order, all of them over before the calm end."""
    room_ms = time_limit_ms - pace.calm_end_ms
    windows: list[tuple[int, int]] = []
    used_ms = 0
    while used_ms + pace.calm_min_ms + pace.fault_min_ms <= room_ms:
        # What the faults that must still fit need at least: they cap how long this one may be.
        owed = max(0, 2 * kinds - len(windows) - 1)
        owed_ms = owed * (pace.calm_min_ms + pace.fault_min_ms)
        spare_ms = max(0, room_ms - used_ms - pace.calm_min_ms - pace.fault_min_ms - owed_ms)
        # The spare time is shared, so that the first faults do not leave only short ones behind.
        share_ms = spare_ms if owed == 0 else 2 * spare_ms // (owed + 1)
        calm_extra_ms = min(pace.calm_max_ms - pace.calm_min_ms, share_ms // 2)
        calm_ms = _integer(random, pace.calm_min_ms, pace.calm_min_ms + calm_extra_ms)
        fault_extra_ms = min(
            pace.fault_max_ms - pace.fault_min_ms, max(0, share_ms - (calm_ms - pace.calm_min_ms))
        )
        fault_ms = _integer(random, pace.fault_min_ms, pace.fault_min_ms + fault_extra_ms)
        windows.append((used_ms + calm_ms, fault_ms))
        used_ms += calm_ms + fault_ms
    return windows


def _chosen_target(kind: str, random: RandomSource, *, first: bool) -> str:
    # Both numbers are always drawn, so that a choice never shifts the stream behind it.
    share = random.random()
    others = fault_kind(kind).other_targets
    other = others[_integer(random, 0, len(others) - 1)]
    return LEADER if first or share < _LEADER_SHARE else other


def _integer(random: RandomSource, low: int, high: int) -> int:
    """Uniform in [low, high]; one number of the stream."""
    return low + int(random.random() * (high - low + 1))


def _shuffled(items: Sequence[WantedFault], random: RandomSource) -> list[WantedFault]:
    rest, order = list(items), list[WantedFault]()
    while rest:
        order.append(rest.pop(_integer(random, 0, len(rest) - 1)))
    return order
