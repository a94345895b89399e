"""Figures over time that need no Spark: outcomes, elections, longest unavailability.

Computed from the run folder's own records, so that a verdict never waits for an analysis. Spark
computes the finer ones; where both give a figure, a test holds them equal.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.results import OutcomeCounts
from splitbrain.harness.judge.fault_results import ENDING_KINDS, FaultWindow
from splitbrain.history.course import LeaderSighting
from splitbrain.history.functions import USUAL, Functions, only_reads, was_refused
from splitbrain.history.records import PairedOperation

#: Error class of an operation that says none.
UNNAMED_ERROR = "unnamed-error"


class Reign(msgspec.Struct, frozen=True, order=True):
    """One node's belief that it leads one epoch."""

    #: When it said that it leads, ns since the run's start.
    start: int
    #: When it said or was seen to be something else; the end of the run if it never was.
    end: int
    node: str
    epoch: int


def outcome_counts(
    operations: Iterable[PairedOperation], functions: Functions = USUAL
) -> dict[str, OutcomeCounts]:
    """Operation kind to how many ended how, final reads included.

    Args:
        operations: of a run or of a bare history, which declares no functions.
        functions: of the run's workload.
    """
    counted: dict[str, Counter[str]] = {}
    errors: dict[tuple[str, str], Counter[str]] = {}
    for operation in operations:
        counts = counted.setdefault(operation.f, Counter())
        counts[operation.type] += 1
        if operation.type != "ok":
            by_error = errors.setdefault((operation.f, operation.type), Counter())
            by_error[operation.error or UNNAMED_ERROR] += 1
        elif was_refused(functions, operation.f, operation.result):
            counts["refused"] += 1
    return {
        kind: OutcomeCounts(
            ok=counts["ok"],
            fail=counts["fail"],
            info=counts["info"],
            refused=counts["refused"],
            fail_by_error=dict(errors.get((kind, "fail"), Counter()).most_common()),
            info_by_error=dict(errors.get((kind, "info"), Counter()).most_common()),
        )
        for kind, counts in sorted(counted.items())
    }


def reigns(
    state_events: Mapping[str, Sequence[StateEvent]],
    windows: Sequence[FaultWindow],
    end_time: int,
) -> list[Reign]:
    """Who believed to lead which epoch, and when; overlaps are real and kept.

    A reign ends with the node's next role event, with the first event of its next incarnation, or
    when a kill of the node was seen: a killed node says nothing.
    """
    found: list[Reign] = []
    for node, events in state_events.items():
        led: StateEvent | None = None
        for event in events:
            over = led is not None and (
                event.incarnation != led.incarnation
                or event.kind in ("stopped", "fatal")
                or (event.kind == "role" and (event.role != "leader" or event.epoch != led.epoch))
            )
            if led is not None and over:
                found.append(_reign(node, led, event.time or end_time))
                led = None
            if led is None and event.kind == "role" and event.role == "leader":
                led = event
        if led is not None:
            found.append(_reign(node, led, end_time))
    return sorted(_cut_by_kill(reign, windows) for reign in found)


def leader_epochs(state_events: Mapping[str, Sequence[StateEvent]]) -> set[tuple[int, str]]:
    """Every (epoch, node) of which the node says that it led."""
    return {
        (event.epoch, node)
        for node, events in state_events.items()
        for event in events
        if event.kind == "role" and event.role == "leader"
    }


def sighted_reigns(sightings: Sequence[LeaderSighting], end_time: int) -> list[Reign]:
    """Who was seen to lead from outside, each until something else was seen; never two at a time.

    Those without an epoch are left out.
    """
    ends = [*(later.time for later in sightings[1:]), end_time]
    return [
        Reign(start=seen.time, end=max(seen.time, end), node=seen.leader, epoch=seen.epoch)
        for seen, end in zip(sightings, ends, strict=False)
        if seen.leader is not None and seen.epoch is not None
    ]


def sighted_epochs(sightings: Iterable[LeaderSighting]) -> set[tuple[int, str]]:
    """Every (epoch, node) that was seen to lead from outside."""
    return {
        (seen.epoch, seen.leader)
        for seen in sightings
        if seen.leader is not None and seen.epoch is not None
    }


def acknowledged_epochs(operations: Iterable[PairedOperation]) -> set[int]:
    """Epochs in which the system placed acknowledged operations, where it says so."""
    return {
        operation.position[0]
        for operation in operations
        if operation.type == "ok" and operation.position is not None
    }


def longest_unavailability_ns(
    operations: Iterable[PairedOperation], functions: Functions
) -> int | None:
    """Longest time without an acknowledged write while the clients loaded the system, ns.

    Bounded by the first invocation of a write and the last event of one; None without writes.
    ``spark_analysis`` defines the same figure in the same way.
    """
    writes = [
        operation
        for operation in operations
        if not operation.final and not only_reads(functions, operation.f, operation.argument)
    ]
    if not writes:
        return None
    begin = min(operation.start for operation in writes)
    finish = max(
        operation.start if operation.end is None else operation.end for operation in writes
    )
    acknowledged = sorted(
        operation.end
        for operation in writes
        if operation.type == "ok" and operation.end is not None
    )
    moments = [begin, *acknowledged, finish]
    return max(later - earlier for earlier, later in pairwise(moments))


def _cut_by_kill(reign: Reign, windows: Sequence[FaultWindow]) -> Reign:
    kills = [
        window.start if window.seen is None else window.seen
        for window in windows
        if window.kind in ENDING_KINDS and reign.node in window.nodes
    ]
    end = min((kill for kill in kills if kill > reign.start), default=reign.end)
    return msgspec.structs.replace(reign, end=min(end, reign.end))


def _reign(node: str, led: StateEvent, end: int) -> Reign:
    start = led.time or 0
    return Reign(start=start, end=max(start, end), node=node, epoch=led.epoch)
