"""Plans with a name: short, aimed, without chance. They gate commits and show planted bugs.

A plan file (JSON or TOML) says the same in the user's own words:
``{"faults": [{"kind": "partition", "target": "leader", "at_ms": 3000, "duration_ms": 5000}]}``.
A plan file may carry settings for the systems that it is made for; named plans know no system.
"""

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from contracts.errors import UsageError
from contracts.fault import Milliseconds, ScheduledFault
from contracts.names import NodeName
from history.json_problems import in_words
from nemesis.kinds import fault_kind
from nemesis.targets import canonical, check_options, check_target

#: Before the first scripted fault: clients must have written something that can be lost.
_START_MS = 3000
#: After the last one: recovery must be seen.
_END_MS = 4000
#: Every named plan has a fault in an hour.
_LEAST_MAX_MS = 3_600_000

#: How names of plan files end.
PLAN_FILE_ENDINGS = (".json", ".toml")


class FileFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault as a plan file writes it."""

    kind: str
    target: str
    at_ms: Milliseconds
    duration_ms: Milliseconds
    draw: int = 0
    options: dict[str, Any] = {}


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a plan file."""

    faults: tuple[FileFault, ...]
    #: System to its own settings by its own names; in force where the user gives none.
    settings: dict[str, dict[str, str]] = {}


def isolate_leader(time_limit_ms: Milliseconds) -> PlanFile:
    """One long isolation of the leader, while clients pinned to it go on."""
    duration_ms = max(1000, time_limit_ms - _START_MS - _END_MS)
    fault = FileFault("partition", "leader", _START_MS, duration_ms)
    return PlanFile((fault,))


def isolate_leader_8s(_time_limit_ms: Milliseconds) -> PlanFile:
    """One isolation of the leader for 8 s, whatever the time limit; it needs 15 s at least."""
    return PlanFile((FileFault("partition", "leader", _START_MS, 8000),))


def isolate_leader_again(time_limit_ms: Milliseconds) -> PlanFile:
    """Isolations of whoever leads, 5 s each, with 3 s of calm between them."""
    return PlanFile(_repeated("partition", time_limit_ms, fault_ms=5000, calm_ms=3000))


def leader_kill(time_limit_ms: Milliseconds) -> PlanFile:
    """Kill whoever leads, restart it after 2 s, and again after 4 s of calm."""
    return PlanFile(_repeated("kill", time_limit_ms, fault_ms=2000, calm_ms=4000))


def leader_pause(time_limit_ms: Milliseconds) -> PlanFile:
    """Freeze whoever leads for 3 s, and again after 4 s of calm."""
    return PlanFile(_repeated("pause", time_limit_ms, fault_ms=3000, calm_ms=4000))


SCRIPTED: Final[dict[str, Callable[[Milliseconds], PlanFile]]] = {
    "isolate-leader": isolate_leader,
    "isolate-leader-8s": isolate_leader_8s,
    "isolate-leader-again": isolate_leader_again,
    "leader-kill": leader_kill,
    "leader-pause": leader_pause,
}


def least_time_limit_ms(name: str) -> Milliseconds:
    """The shortest time limit into which a fault of the named plan fits."""
    plan = SCRIPTED[name]
    return bisect_left(range(_LEAST_MAX_MS), True, key=lambda limit: bool(plan(limit).faults))


def parse_plan_file(content: bytes, name: str) -> PlanFile:
    """Read a plan file.

    Args:
        content: of the file.
        name: of the file; its ending, one of ``PLAN_FILE_ENDINGS``, tells the notation.

    Raises:
        UsageError: it is no plan file.
    """
    try:
        text = content.decode("utf-8")
        if name.endswith(".toml"):
            return msgspec.convert(tomllib.loads(text), PlanFile)
        return msgspec.json.decode(text, type=PlanFile)
    except (ValueError, RecursionError) as error:
        is_toml = isinstance(error, tomllib.TOMLDecodeError)
        problem = f"it is no TOML: {error}" if is_toml else in_words(error)
        raise UsageError(
            f"the plan file {name} cannot be read: {problem}",
            'It holds "faults", a list of objects with kind, target, at_ms and duration_ms',
        ) from error


def from_file_faults(
    faults: Sequence[FileFault], nodes: Sequence[NodeName], time_limit_ms: Milliseconds
) -> tuple[ScheduledFault, ...]:
    """A schedule of these faults, which must not overlap and must fit into the time limit.

    Raises:
        UsageError: a kind or target does not exist, two faults overlap, or one ends too late.
    """
    scheduled: list[ScheduledFault] = []
    end_ms = 0
    for index, fault in enumerate(sorted(faults, key=lambda fault: fault.at_ms)):
        kind = fault_kind(fault.kind)
        target = canonical(fault.target)
        check_target(target, nodes, leave_one=kind.leaves_one)
        if target in kind.refused_targets:
            raise UsageError(
                f"the fault {fault.kind!r} cannot have the target {target!r}",
                f"Use one of: leader, {', '.join(kind.other_targets)}",
            )
        _check_window(fault, end_ms)
        check_options(fault.options, nodes)
        end_ms = fault.at_ms + fault.duration_ms
        if end_ms > time_limit_ms:
            raise UsageError(
                f"the fault at {fault.at_ms} ms ends after the time limit of {time_limit_ms} ms",
                f"Choose a --time-limit of at least {end_ms / 1000:g}",
            )
        scheduled.append(
            ScheduledFault(
                index=index,
                kind=fault.kind,
                target=target,
                at_ms=fault.at_ms,
                duration_ms=fault.duration_ms,
                draw=fault.draw,
                options=fault.options,
            )
        )
    return tuple(scheduled)


def _check_window(fault: FileFault, end_ms: Milliseconds) -> None:
    """Refuse a window that cannot be, or that begins before the one before it is over."""
    if fault.at_ms < 0:
        raise UsageError(
            f"the fault at {fault.at_ms} ms begins before the load",
            "Give it an at_ms of at least 0",
        )
    if fault.duration_ms <= 0:
        raise UsageError(
            f"the fault at {fault.at_ms} ms lasts {fault.duration_ms} ms",
            "Give it a duration_ms of at least 1",
        )
    if fault.at_ms < end_ms:
        raise UsageError(
            f"the fault at {fault.at_ms} ms begins before the one before it is over at {end_ms} ms",
            "Give each fault a window of its own",
        )
    if fault.draw < 0:
        raise UsageError(
            f"the fault at {fault.at_ms} ms has the draw {fault.draw}",
            "Give it a draw of at least 0",
        )


def _repeated(
    kind: str, time_limit_ms: Milliseconds, *, fault_ms: Milliseconds, calm_ms: Milliseconds
) -> tuple[FileFault, ...]:
    starts = range(_START_MS, time_limit_ms - fault_ms - _END_MS + 1, fault_ms + calm_ms)
    return tuple(FileFault(kind, "leader", start_ms, fault_ms) for start_ms in starts)
