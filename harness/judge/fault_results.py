"""Results of faults: the phases of ``faults.jsonl`` as one result per planned fault.

Only effects seen from outside count: a fault that was invoked and never verified did not bite, one
that was never reached (a run that died) was not applied. Source: design, sections 5 and 7.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from splitbrain.contracts.fault import Fault, FaultEvent, FaultPhase
from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.fault_notice import notices
from splitbrain.history.fault_windows import (
    Phases,
    by_fault,
    failovers_ns,
    gone_with,
    has_bitten,
    nodes_hit,
)

_NS_PER_MS = 1_000_000
#: Phases whose evidence stands for the fault, the most telling first.
_TELLING: tuple[FaultPhase, ...] = ("not-bitten", "verified", "not-applicable", "invoked")


def fault_results(
    scheduled: Sequence[Fault], events: Iterable[FaultEvent]
) -> tuple[FaultResult, ...]:
    """Return one result per fault that was planned or happened, by index."""
    by_index = by_fault(events)
    planned = {fault.index: fault for fault in scheduled}
    return tuple(
        _result(index, planned.get(index), by_index.get(index, []))
        for index in sorted(planned.keys() | by_index.keys())
    )


def _result(index: int, planned: Fault | None, story: Sequence[FaultEvent]) -> FaultResult:
    phases: Phases = {event.phase: event for event in story}
    applied = "invoked" in phases and "not-applicable" not in phases
    gone = gone_with(phases)
    telling = next((phase for phase in _TELLING if phase in phases), None)
    evidence = [
        phases[phase].evidence
        for phase in (telling, "healing", "not-healed")
        if phase in phases and phases[phase].evidence
    ]
    if not story:
        evidence = ["not reached"]
    first = story[0] if story else planned
    assert first is not None
    leader = next((event.leader for event in story if event.leader), None)
    return FaultResult(
        index=index,
        kind=first.kind,
        target=first.target,
        nodes=nodes_hit(story),
        leader=None if leader is None else str(leader),
        at_ms=_milliseconds(phases.get("invoked") or (story[0] if story else None)),
        verified_ms=_milliseconds(phases.get("verified")),
        healed_ms=_milliseconds(gone),
        resumed_ms=_milliseconds(phases.get("resumed")),
        verified=has_bitten(phases),
        evidence="; ".join(filter(None, evidence)) or None,
        healed=gone is not None,
        applied=applied,
    )


def _milliseconds(event: FaultEvent | None) -> int | None:
    return None if event is None else event.time // _NS_PER_MS


def with_failovers(record: RunRecord, faults: tuple[FaultResult, ...]) -> tuple[FaultResult, ...]:
    """Add to each result how long the fault kept the system from acknowledging a write, ms."""
    took = failovers_ns(record.windows, record.operations, record.functions)
    return _with(faults, {index: {"failover_ms": ns // _NS_PER_MS} for index, ns in took.items()})


def with_notices(record: RunRecord, faults: tuple[FaultResult, ...]) -> tuple[FaultResult, ...]:
    """Add to each result the signs by which the system noticed the fault."""
    found = notices(record.windows, record)
    return _with(
        faults, {index: {"noticed": of.noticed, "notice": of.text} for index, of in found.items()}
    )


def _with(
    faults: Sequence[FaultResult], fields: Mapping[int, dict[str, Any]]
) -> tuple[FaultResult, ...]:
    return tuple(msgspec.structs.replace(fault, **fields.get(fault.index, {})) for fault in faults)
