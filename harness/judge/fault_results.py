"""Turns the phases of ``faults.jsonl`` into one result per planned fault.

Only what was seen from outside counts: a fault that was asked for and never verified did not bite,
one that was never reached (a run that died) was not applied. Source: design, sections 5 and 7.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from splitbrain.contracts.fault import Fault, FaultEvent, FaultPhase
from splitbrain.harness.folder.results import FaultResult
from splitbrain.nemesis.kinds import fault_kind, kind_names

#: Fault kinds that end a node's process.
ENDING_KINDS = frozenset(name for name in kind_names() if fault_kind(name).ends_processes)

_NS_PER_MS = 1_000_000
#: Phases whose evidence tells what became of a fault, the most telling first.
_TELLING: tuple[FaultPhase, ...] = ("not-bitten", "verified", "not-applicable", "invoked")


class FaultWindow(msgspec.Struct, frozen=True):
    """When a fault was in force, ns since the run's start."""

    index: int
    kind: str
    nodes: tuple[str, ...]
    #: When the runtime was asked to inject it.
    start: int
    #: When it was seen to be gone; for one that was never seen to be gone, the end of the run.
    end: int
    #: When it was seen to have bitten; None if it never was.
    seen: int | None
    healed: bool
    #: Its nodes were ended and not harmed, for the promise's sake: it counts as not applicable.
    spared: bool = False

    @property
    def verified(self) -> bool:
        """Whether it was seen to have bitten."""
        return self.seen is not None


def fault_results(
    scheduled: Sequence[Fault], events: Iterable[FaultEvent]
) -> tuple[FaultResult, ...]:
    """One result per fault that was planned or happened, in the order of their index."""
    by_index = _by_index(events)
    planned = {fault.index: fault for fault in scheduled}
    return tuple(
        _result(index, planned.get(index), by_index.get(index, []))
        for index in sorted(planned.keys() | by_index.keys())
    )


def fault_windows(events: Iterable[FaultEvent], end_time: int) -> list[FaultWindow]:
    """The windows of all faults that were injected, in the order of their start."""
    windows: list[FaultWindow] = []
    for index, story in _by_index(events).items():
        phases: dict[FaultPhase, FaultEvent] = {event.phase: event for event in story}
        if "invoked" not in phases:
            continue
        gone = phases.get("removed") or phases.get("resumed")
        windows.append(
            FaultWindow(
                index=index,
                kind=phases["invoked"].kind,
                nodes=_nodes(story),
                start=phases["invoked"].time,
                end=gone.time if gone else end_time,
                seen=phases["verified"].time if _has_bitten(phases) else None,
                healed=gone is not None,
                spared="not-applicable" in phases,
            )
        )
    return sorted(windows, key=lambda window: (window.start, window.index))


def _by_index(events: Iterable[FaultEvent]) -> dict[int, list[FaultEvent]]:
    by_index: dict[int, list[FaultEvent]] = {}
    for event in events:
        by_index.setdefault(event.index, []).append(event)
    return by_index


def _nodes(story: Sequence[FaultEvent]) -> tuple[str, ...]:
    """The nodes hit, as the latest phase that names any has them."""
    return next((tuple(map(str, event.nodes)) for event in reversed(story) if event.nodes), ())


def _result(index: int, planned: Fault | None, story: Sequence[FaultEvent]) -> FaultResult:
    phases: dict[FaultPhase, FaultEvent] = {event.phase: event for event in story}
    applied = "invoked" in phases and "not-applicable" not in phases
    gone = phases.get("removed") or phases.get("resumed")
    told = [
        phases[phase].evidence
        for phase in (_first_of(_TELLING, phases), "healing", "not-healed")
        if phase in phases and phases[phase].evidence
    ]
    if not story:
        told = ["the run ended before it"]
    first = story[0] if story else planned
    assert first is not None
    leader = next((event.leader for event in story if event.leader), None)
    return FaultResult(
        index=index,
        kind=first.kind,
        target=first.target,
        nodes=_nodes(story),
        leader=None if leader is None else str(leader),
        at_ms=_milliseconds(phases.get("invoked") or (story[0] if story else None)),
        verified_ms=_milliseconds(phases.get("verified")),
        healed_ms=_milliseconds(gone),
        resumed_ms=_milliseconds(phases.get("resumed")),
        verified=_has_bitten(phases),
        evidence="; ".join(filter(None, told)) or None,
        healed=gone is not None,
        applied=applied,
    )


def _has_bitten(phases: Mapping[FaultPhase, FaultEvent]) -> bool:
    """Whether every step of the fault was seen, and not its first one alone."""
    return "verified" in phases and "not-bitten" not in phases


def _first_of(
    wanted: Sequence[FaultPhase], present: Mapping[FaultPhase, FaultEvent]
) -> FaultPhase | None:
    return next((phase for phase in wanted if phase in present), None)


def _milliseconds(event: FaultEvent | None) -> int | None:
    return None if event is None else event.time // _NS_PER_MS
