"""Checker of acknowledged changes that are gone after healing, and of logs that do not agree.

A change is lost if fewer than a majority of the voters can still hold it in a log or a snapshot;
nodes without a dump count as holders. An element of a set is also lost if no final read shows it
and every member that may hold it was read. Logs that differ at one offset are a violation of their
own, even if the nodes did not converge: a divergence never does. A change that a majority holds and
a single voter lacks is an observation, node by node.

A change that cannot be told apart or that no dump covers is untold, never lost; where there are no
others the verdict is ``unknown``. Source: issue 3, item 8. The figures are held equal to the Spark
job's by a test of that room.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import msgspec

from splitbrain.checker.committed_logs import (
    CommittedLogs,
    NodeLog,
    Presence,
    conflicts_at,
    differing_offsets,
)
from splitbrain.checker.evidence import Evidence, acknowledged_change, describe_operation, unread
from splitbrain.checker.findings import NAMED_MAX, Poll, Undecided, by_key
from splitbrain.checker.losses import Losses
from splitbrain.checker.models.model import freeze
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.words import counted
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.identity import operation_as_json
from splitbrain.history.records import PairedOperation, position_text


class _Findings(msgspec.Struct):
    #: Descriptions of the first lost changes.
    named: list[dict[str, Any]]
    losses: Losses
    #: Descriptions of the first offsets at which the logs differ, and the number of all.
    conflicts: list[dict[str, Any]]
    differing: int
    lost: int = 0
    held: int = 0
    untold: int = 0
    #: Held changes that a voter's log lacks: their number and the first.
    lacking: dict[str, tuple[int, PairedOperation]] = msgspec.field(
        default_factory=dict[str, tuple[int, PairedOperation]]
    )
    #: Reason for a judgement cut short.
    unfinished: str | None = None

    def lose(
        self, operation: PairedOperation, absent: Sequence[str], why: str, count: int = 1
    ) -> None:
        self.lost += count
        blame = [
            self.losses.add(operation, operation.argument, operation.key, operation.end)
            for _ in range(count)
        ]
        if len(self.named) < NAMED_MAX:
            self.named.append(_lost(operation, absent, blame[0], why))

    def hold(self, operation: PairedOperation, absent: Sequence[str], count: int = 1) -> None:
        """Count a change that a majority holds and these voters lack.

        A final operation's change may still be on its way to them.
        """
        self.held += count
        for node in () if operation.final else absent:
            known, first = self.lacking.get(node, (0, operation))
            self.lacking[node] = known + 1, first


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge every acknowledged change of a run."""
    changes = [
        operation
        for operation in evidence.operations
        if acknowledged_change(operation, evidence.functions)
    ]
    of_voters = {
        node: log for node, log in evidence.committed_logs.items() if node not in evidence.observers
    }
    figures = {"acknowledged": len(changes), "logs": len(of_voters)}
    losses = Losses(fault_windows(evidence.faults))
    differing = differing_offsets(evidence.committed_logs)
    conflicts = conflicts_at(evidence.committed_logs, differing[:NAMED_MAX])
    findings = _Findings([], losses, conflicts, len(differing))
    if not evidence.converged:
        findings.unfinished = (
            "The nodes did not converge after healing, so their logs prove nothing yet."
        )
        return _result(findings, figures, ())
    logs = CommittedLogs(of_voters, evidence.operations, evidence.record_forms)
    shown = _shown_by_final_reads(evidence.operations)
    partly_read = _partly_read(evidence.operations, evidence.members)
    voters = max(evidence.voters, len(logs.nodes))
    poll = Poll(budget)
    try:
        for operation in changes:
            poll()
            _judge(operation, logs, shown, partly_read, voters, findings)
        _judge_counts(changes, logs, voters, findings)
    except Undecided as ended:
        findings.unfinished = f"Not finished: {ended}."
    return _result(findings, figures, logs.nodes)


def _judge(
    operation: PairedOperation,
    logs: CommittedLogs,
    shown: dict[str | None, set[Hashable]],
    partly_read: Collection[str | None],
    voters: int,
    findings: _Findings,
) -> None:
    presence = logs.presence(operation)
    held = sum(found is Presence.HELD for found in presence.values())
    absent = [node for node, found in presence.items() if found is Presence.ABSENT]
    majority = voters // 2 + 1
    is_read = operation.f == "add" and operation.key in shown
    is_shown = is_read and freeze(operation.argument) in shown[operation.key]
    if is_read and not is_shown and operation.key not in partly_read:
        findings.lose(operation, absent, "no final read shows it")
    elif voters - len(absent) < majority:
        holders = "no node holds it" if not held else f"only {held} of {voters} nodes hold it"
        findings.lose(operation, absent, f"{holders} after healing")
    elif held >= majority:
        findings.hold(operation, absent)
    elif is_shown:
        findings.held += 1
    else:
        findings.untold += 1


def _judge_counts(
    changes: Sequence[PairedOperation], logs: CommittedLogs, voters: int, findings: _Findings
) -> None:
    """Count equal changes without position: logs must hold as many as were acknowledged."""
    acknowledged: dict[Any, list[PairedOperation]] = {}
    for operation in changes:
        if operation.position is None and logs.request_counts[logs.change_of(operation)] > 1:
            acknowledged.setdefault(logs.change_of(operation), []).append(operation)
    for change, equal in acknowledged.items():
        short = [
            log
            for log in logs.nodes
            if log.start_offset == 0 and 0 < log.count_by_change[change] < len(equal)
        ]
        enough = [log for log in logs.nodes if log.count_by_change[change] >= len(equal)]
        majority = voters // 2 + 1
        if voters - len(short) < majority:
            most = max(log.count_by_change[change] for log in short)
            findings.untold -= len(equal)
            findings.held += most
            why = f"{len(equal):,} equal ones were acknowledged and the logs hold {most:,}"
            findings.lose(equal[-1], [log.node for log in short], why, len(equal) - most)
        elif len(enough) >= majority:
            findings.untold -= len(equal)
            findings.hold(equal[-1], [log.node for log in short], len(equal))


def _partly_read(
    operations: Sequence[PairedOperation], members: frozenset[str]
) -> list[str | None]:
    """Return the sets that some member with data of its own did not show at the end."""
    if not members:
        return []
    adds = [operation for operation in operations if operation.f == "add"]
    reads = by_key([operation for operation in operations if _is_final_read(operation)])
    keys = dict.fromkeys(operation.key for operation in adds)
    return [key for key in keys if key in reads and unread(members, reads[key])]


def _is_final_read(operation: PairedOperation) -> bool:
    return operation.final and operation.type == "ok" and operation.f == "read"


def _shown_by_final_reads(
    operations: Sequence[PairedOperation],
) -> dict[str | None, set[Hashable]]:
    """Return by set the elements in any of its final reads; sets without final read are absent."""
    sets = {operation.key for operation in operations if operation.f == "add"}
    shown: dict[str | None, set[Hashable]] = {}
    for operation in operations:
        if _is_final_read(operation) and operation.key in sets:
            elements: list[Any] = operation.result or []
            shown.setdefault(operation.key, set()).update(freeze(item) for item in elements)
    return shown


def _lost(
    operation: PairedOperation, absent: Sequence[str], blame: str, why: str
) -> dict[str, Any]:
    place = ""
    if operation.position is not None:
        place = f" at {position_text(operation.position)}"
    return {
        "kind": "lost",
        "key": operation.key,
        "operation": operation_as_json(operation),
        "absent_from": list(absent),
        "sentence": f"{describe_operation(operation)} was acknowledged{place}{blame}, but {why}.",
    }


def _result(findings: _Findings, figures: dict[str, Any], logs: Sequence[NodeLog]) -> CheckResult:
    lost, conflicts = findings.lost, findings.conflicts
    if findings.unfinished is None or lost or conflicts:
        figures = {**figures, "held": findings.held, "untold": findings.untold, "lost": lost}
    figures = {**figures, "conflicting-offsets": findings.differing, **findings.losses.figures()}
    observations = tuple(_lacking(log, *findings.lacking[log.node]) for log in logs
                         if log.node in findings.lacking)  # fmt: skip
    undecided = findings.unfinished
    if undecided is None and findings.untold:
        undecided = (
            f"{findings.untold:,} of {figures['acknowledged']:,} acknowledged changes cannot be "
            "traced: they have no position, equal ones, or no log that covers them."
        )
    if lost or conflicts:
        verdict = Verdict.INVALID
        all_ = f"{lost:,} of {figures['acknowledged']:,} acknowledged changes are lost"
        clauses = [all_, findings.losses.clauses(), findings.named[0]["sentence"]] if lost else []
        if conflicts:
            offsets = counted(findings.differing, "offset")
            clauses.append(f"the logs differ at {offsets}: {conflicts[0]['sentence']}")
        reason = f"{': '.join(filter(None, clauses))} {findings.unfinished or ''}".rstrip()
        reason = reason[0].upper() + reason[1:]
    elif undecided is not None:
        verdict, reason = Verdict.UNKNOWN, undecided
    else:
        verdict = Verdict.VALID
        reason = f"All {findings.held:,} acknowledged changes are held by a majority of the voters."
    return CheckResult(
        checker="lost-commits",
        verdict=verdict,
        reason=reason,
        figures=figures,
        violations=(*findings.named, *conflicts),
        observations=observations,
        lists=findings.losses.lists(),
        undecided=undecided,
    )


def _lacking(log: NodeLog, count: int, first: PairedOperation) -> dict[str, Any]:
    changes = counted(count, "acknowledged change")
    sentence = (
        f"The log of {log.node}, which ends at offset {log.end_offset}, lacks {changes} that a "
        f"majority holds; the first is {describe_operation(first)}."
    )
    return {"kind": "missing-at-member", "node": log.node, "count": count, "sentence": sentence}
