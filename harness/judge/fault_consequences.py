"""Consequences of the faults of a run: failovers, and the signs that the system noticed a fault."""

import msgspec

from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.fault_notice import Signs, notices
from splitbrain.history.outages import failovers_ns

_NS_PER_MS = 1_000_000


def with_failovers(record: RunRecord, faults: tuple[FaultResult, ...]) -> tuple[FaultResult, ...]:
    """The results with how long each fault kept the system from acknowledging a write, ms."""
    took = failovers_ns(record.windows, record.operations, record.functions)
    return tuple(
        msgspec.structs.replace(fault, failover_ms=took[fault.index] // _NS_PER_MS)
        if fault.index in took
        else fault
        for fault in faults
    )


def with_notices(record: RunRecord, faults: tuple[FaultResult, ...]) -> tuple[FaultResult, ...]:
    """The results with the signs by which the system noticed each fault."""
    signs = Signs(
        operations=record.operations,
        state_events=record.state_events,
        nodes=record.node_names,
        sightings=record.sightings,
        phases=record.phases,
    )
    found = notices(record.windows, signs)
    return tuple(
        msgspec.structs.replace(
            fault, noticed=found[fault.index].noticed, notice=found[fault.index].words
        )
        if fault.index in found
        else fault
        for fault in faults
    )
