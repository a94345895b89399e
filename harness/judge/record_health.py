"""Judgement of the record itself: whether it is whole, so that valid can be said.

A checker that finds nothing in half a history has found nothing. Any part torn, missing, changed
since the run, or unwritten because the run died makes this ``unknown``, and with it the verdict,
unless another checker finds a violation in the rest; never ``invalid``, for damage is not the
system's doing.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from splitbrain.checker.names import MEMBER_DIGESTS, REPLICA_LOGS, STATE_EVENTS, can_judge
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.manifest import is_unsealed
from splitbrain.harness.folder.results import RECORD_CHECKER
from splitbrain.harness.judge.evidence_loader import RunRecord

#: Phase in which all evidence is in the folder.
_COLLECTED = "collected"
_REPLICAS = "replicas"
_NAMED_MAX = 3


def judge_record(record: RunRecord) -> CheckResult:
    """Return the result on the record, its worst defect first."""
    lacks = list(dict.fromkeys(_lacks(record)))
    figures = {
        "events": len(record.events),
        "faults": len(record.scheduled),
        "nodes": len(record.node_names),
        "lacks": len(lacks),
    }
    if not lacks:
        reason = (
            f"The run folder is whole: {counted(len(record.events), 'event')} of clients, "
            f"evidence of {counted(len(record.node_names), 'node')}."
        )
        return CheckResult(RECORD_CHECKER, Verdict.VALID, reason, figures)
    more = f" ({len(lacks) - 1} more.)" if len(lacks) > 1 else ""
    observations = tuple({"kind": "lack", "sentence": sentence} for sentence in lacks)
    return CheckResult(
        RECORD_CHECKER, Verdict.UNKNOWN, lacks[0] + more, figures, observations=observations
    )


def as_evidence(record: RunRecord, checked: Sequence[CheckResult]) -> list[CheckResult]:
    """Withdraw convictions that rest on a record changed after the run.

    Such a change may be anybody's doing; an unsealed record cannot exclude one.
    """
    if record.living or not (record.damage or is_unsealed(record.folder)):
        return list(checked)
    return [
        CheckResult(
            result.checker,
            Verdict.UNKNOWN,
            "The record is not as the run sealed it, so what it says now convicts nobody.",
            result.figures,
        )
        if result.verdict is Verdict.INVALID
        else result
        for result in checked
    ]


def _lacks(record: RunRecord) -> Iterator[str]:
    if record.living:
        yield "The run is still going on; this is the verdict on what it has so far."
    if record.damage:
        changed = "; ".join(record.damage[:_NAMED_MAX])
        yield f"The run folder was damaged after the run: {changed}."
    if not record.living:
        yield from _unfinished(record)
    yield from record.problems
    if record.plan is not None:
        if not record.plan.checkers:
            yield "The plan names no checker, so nobody judges what the clients saw."
        yield from _silent_nodes(record)
    written = max((phase.events for phase in record.phases), default=0)
    if len(record.events) < written:
        yield (
            f"history.jsonl holds {len(record.events):,} of the {written:,} events "
            "that the run wrote."
        )
    for node, events in sorted(record.state_events.items()):
        gap = _first_gap(events)
        if gap is not None:
            yield f"The state events of {node} have a gap {gap}."


def _unfinished(record: RunRecord) -> Iterator[str]:
    if is_unsealed(record.folder):
        yield "The evidence was not sealed: the last of it could not be written."
    if record.reached(_COLLECTED):
        return
    if record.reached("failed"):
        *before, failed = [phase for phase in record.phases if phase.phase != "torn-down"]
        step = f" in the step after {before[-1].phase}" if before else ""
        yield f"The run failed{step}, before its evidence was collected: {failed.detail}"
    elif record.phases:
        last = record.phases[-1].phase
        yield f"The harness died during the run; the last step it reached is {last}."
    elif record.plan is not None:
        yield "phases.jsonl is missing: how far the run came is not known."


def _silent_nodes(record: RunRecord) -> Iterator[str]:
    """Yield nodes that lack evidence which the system promises of each."""
    plan = record.plan
    assert plan is not None
    if not record.reached("load-started"):
        return
    if plan.declares_state_events and record.state_events:
        silent = [node for node in record.node_names if node not in record.state_events]
        if silent:
            yield f"There are no state events of {', '.join(silent)}."
    without_logs = {MEMBER_DIGESTS, REPLICA_LOGS}
    without_logs |= {STATE_EVENTS} if plan.declares_state_events else set()
    needs_logs = any(not can_judge(name, without_logs) for name in plan.checkers)
    # A run that ended at a violation was never healed, and could leave no logs.
    if needs_logs and not record.living and not record.ended_at_violation:
        missing = [node for node in record.node_names if node not in record.committed_logs]
        if missing:
            yield f"There is no committed log of {', '.join(missing)}."
    if _REPLICAS in plan.checkers and not record.living and not record.ended_at_violation:
        dumped = {node for replicas in record.replica_logs.values() for node in replicas}
        if missing := [node for node in plan.nodes if node not in dumped]:
            yield f"There is no replica of {', '.join(missing)}."


def _first_gap(events: Sequence[StateEvent]) -> str | None:
    """Return where a node's numbering of its events skips, in words; None if it is whole."""
    for earlier, later in pairwise(events):
        if later.incarnation == earlier.incarnation and later.sequence != earlier.sequence + 1:
            return f"after number {earlier.sequence} of incarnation {earlier.incarnation}"
        if later.incarnation != earlier.incarnation and later.sequence != 0:
            return f"before number {later.sequence} of incarnation {later.incarnation}"
    if events and events[0].sequence != 0:
        return f"before number {events[0].sequence} of incarnation {events[0].incarnation}"
    return None
