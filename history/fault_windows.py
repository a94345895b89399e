"""Windows of a run's faults: when each was in force, and how long the system did not serve; pure.

The one reading of these phases: checkers, judgement and report take a fault's times from here. Only
observations from outside count. Must never tell of a fault that was not injected.

The failover of a fault is the time from the request for it to the first acknowledgement of a change
that was invoked after that and placed in a new epoch: one greater than that of every change
acknowledged until then. It must come before the next fault. ``spark_analysis`` defines the same
figure in the same way (``jobs.availability``). None for a fault that moved no leader, nor where the
system gives no positions.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

import msgspec

from splitbrain.contracts.fault import TRAITS_OF_OLD, FaultEvent, FaultPhase, FaultTraits
from splitbrain.history.functions import Functions, only_reads
from splitbrain.history.records import PairedOperation

#: End of a run of unknown end, ns.
ENDLESS: Final = sys.maxsize

Phases = Mapping[FaultPhase, FaultEvent]


class FaultWindow(msgspec.Struct, frozen=True):
    """Time in which a fault was in force, ns since the run's start."""

    index: int
    kind: str
    nodes: tuple[str, ...]
    #: When the runtime was asked to inject it.
    start: int
    #: When it was seen to be gone, else the end of the run.
    end: int
    #: When it was seen to have bitten; None if it never was.
    seen: int | None
    healed: bool
    #: Whether its nodes were ended and not harmed, for the promise's sake: then not applicable.
    spared: bool = False
    #: Symbolic.
    target: str = ""
    traits: FaultTraits = FaultTraits()
    #: When its nodes' processes had certainly ended, None if not seen.
    ended: int | None = None

    @property
    def verified(self) -> bool:
        """Whether it was seen to have bitten."""
        return self.seen is not None

    @property
    def may_end_processes(self) -> bool:
        """Whether processes of its nodes end by it, or may."""
        return self.traits.ends_process is not None

    @property
    def name(self) -> str:
        """Return ``fault 0 (partition:leader on n1)``."""
        on = f" on {', '.join(self.nodes)}" if self.nodes and self.target not in self.nodes else ""
        return f"fault {self.index} ({self.kind}:{self.target}{on})"

    def ends_life_begun(self, time: int) -> int | None:
        """Return when it ended a life that was running at a time; None if it did not.

        A kind that ends its processes at once did so with the request for it: its end is seen
        tenths of a second later, and others may lead by then. A course that ends processes in its
        later steps starts them again too: anything begun while it lasts may belong to the next
        life.
        """
        if self.ended is None:
            return None
        if self.traits.ends_process == "at-once":
            return self.start if time < self.ended else None
        return self.ended if time < self.start else None


def fault_windows(events: Iterable[FaultEvent], end_time: int = ENDLESS) -> list[FaultWindow]:
    """Return the windows of all faults that were injected, in the order of their start."""
    windows: list[FaultWindow] = []
    for index, story in by_fault(events).items():
        phases: Phases = {event.phase: event for event in story}
        if "invoked" not in phases:
            continue
        invoked, gone = phases["invoked"], gone_with(phases)
        windows.append(
            FaultWindow(
                index=index,
                kind=invoked.kind,
                nodes=nodes_hit(story),
                start=invoked.time,
                end=gone.time if gone else max(invoked.time, end_time),
                seen=phases["verified"].time if has_bitten(phases) else None,
                healed=gone is not None,
                spared="not-applicable" in phases,
                target=invoked.target,
                traits=traits_of(invoked),
                ended=_ended(phases),
            )
        )
    return sorted(windows, key=lambda window: (window.start, window.index))


def traits_of(invoked: FaultEvent) -> FaultTraits:
    """Return the recorded traits of a fault's kind, else those that its name had."""
    return invoked.traits or TRAITS_OF_OLD.get(invoked.kind, FaultTraits())


def by_fault(events: Iterable[FaultEvent]) -> dict[int, list[FaultEvent]]:
    """Group the events by fault index."""
    stories: dict[int, list[FaultEvent]] = {}
    for event in events:
        stories.setdefault(event.index, []).append(event)
    return stories


def nodes_hit(story: Sequence[FaultEvent]) -> tuple[str, ...]:
    """Return the nodes hit, from the latest phase that names any."""
    return next((tuple(map(str, event.nodes)) for event in reversed(story) if event.nodes), ())


def has_bitten(phases: Phases) -> bool:
    """Return whether every step of the fault was seen, not only its first."""
    return "verified" in phases and "not-bitten" not in phases


def gone_with(phases: Phases) -> FaultEvent | None:
    """Return the event with which the fault was seen to be gone."""
    return phases.get("removed") or phases.get("resumed")


def _ended(phases: Phases) -> int | None:
    """Return when the end of the processes was seen, or when they were to be started again."""
    tells = {"at-once": phases.get("verified"), "later": phases.get("healing")}
    event = tells.get(traits_of(phases["invoked"]).ends_process or "")
    return None if event is None or "verified" not in phases else event.time


def failovers_ns(
    windows: Sequence[FaultWindow], operations: Iterable[PairedOperation], functions: Functions
) -> Mapping[int, int]:
    """Return how long each fault that moved the leader took, ns, by fault index."""
    changes = sorted(
        (operation.end, operation.start, operation.position[0])
        for operation in operations
        if operation.type == "ok"
        and not operation.final
        and not only_reads(functions, operation.f, operation.argument)
        and operation.end is not None
        and operation.position is not None
    )
    ends = [acknowledged for acknowledged, _, _ in changes]
    highest = list(accumulate((epoch for _, _, epoch in changes), max))
    starts = sorted({window.start for window in windows})
    found: dict[int, int] = {}
    for window in windows:
        place = bisect_right(ends, window.start)
        next_ = bisect_right(starts, window.start)
        limit = bisect_right(ends, starts[next_]) if next_ < len(starts) else len(ends)
        if not place:
            continue
        for acknowledged, invoked, epoch in changes[place:limit]:
            if invoked > window.start and epoch > highest[place - 1]:
                found[window.index] = acknowledged - window.start
                break
    return found


def longest_unavailability_ns(
    operations: Iterable[PairedOperation], functions: Functions
) -> int | None:
    """Return the longest time without an acknowledged write under load, ns.

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
