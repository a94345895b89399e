"""Which fault met which role, epoch phase and workload in one run. Pure.

Counts faults that were injected, by what the nodes that they hit were at that moment. A fault that
hits nodes in two roles counts once in each. What is not known counts as ``unknown``. Judges
nothing: no verdict rests on it. Definitions: ``docs/faults/coverage.md``.
"""

from collections.abc import Mapping, Sequence

from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.coverage_cells import (
    ROLES,
    CoverageCell,
    EpochPhase,
    Role,
    sum_coverage,
)
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.node_roles import ClusterTale
from splitbrain.history.course import LeaderSighting
from splitbrain.history.fault_windows import FaultWindow, fault_windows


def coverage_of(record: RunRecord) -> tuple[CoverageCell, ...]:
    """The cells of a recorded run; where its nodes tell nothing, as seen from outside."""
    plan = record.plan
    from_outside = plan is not None and not plan.declares_state_events and not record.state_events
    return fault_coverage(
        record.faults,
        nodes=record.node_names,
        workload="unknown workload" if plan is None else plan.workload,
        end_time=record.end_time,
        state_events=record.state_events,
        sightings=record.sightings if from_outside else None,
    )


def fault_coverage(
    events: Sequence[FaultEvent],
    *,
    nodes: Sequence[str],
    workload: str,
    end_time: int,
    state_events: Mapping[str, Sequence[StateEvent]],
    sightings: Sequence[LeaderSighting] | None = None,
) -> tuple[CoverageCell, ...]:
    """The cells of one run that are not zero, sorted.

    Args:
        events: what was recorded of the faults.
        nodes: all nodes of the run.
        workload: what clients did.
        end_time: of the run, ns since its start.
        state_events: node to its events.
        sightings: who was seen to lead from outside, each change; given only for a system whose
            nodes tell nothing themselves.
    """
    windows = fault_windows(events, end_time)
    tale = ClusterTale(nodes, state_events, windows)
    views = {event.index: event.leader for event in events if event.leader is not None}
    cells: list[CoverageCell] = []
    for window in windows:
        if window.spared:
            continue
        phase: EpochPhase = "unknown"
        if sightings is None:
            phase = tale.phase(window.start, window.index)
            roles = [tale.standing(node, window.start, window.index).role for node in window.nodes]
        else:
            leader = views.get(window.index) or _seen_to_lead(sightings, window.start)
            roles = [_role_from_outside(node, leader, window, windows) for node in window.nodes]
        cells += [
            CoverageCell(window.kind, role, phase, workload, 1, int(window.verified))
            for role in ROLES
            if role in (roles or ["unknown"])
        ]
    return sum_coverage([cells])


def _seen_to_lead(sightings: Sequence[LeaderSighting], time: int) -> str | None:
    before = [seen.leader for seen in sightings if seen.time <= time]
    return before[-1] if before else None


def _role_from_outside(
    node: str, leader: str | None, window: FaultWindow, windows: Sequence[FaultWindow]
) -> Role:
    """The leader view's word: whoever is not the leader that it names follows."""
    for other in windows:
        ends_it = other.may_end_processes and node in other.nodes and other.index != window.index
        if ends_it and other.start <= window.start <= other.end:
            is_down = other.seen is not None and other.seen <= window.start
            return "down" if is_down else "unknown"
    if leader is None:
        return "unknown"
    return "leader" if node == leader else "follower"
