"""Acknowledged changes that are gone once everything is healed and all nodes agree.

A change is lost if fewer than a majority of the voters can still hold it in a log or a snapshot,
nodes without a dump counted as if they did; for sets also if no final read shows the element.
Must never call lost what cannot be told apart or what no dump covers: those are counted as
untold and make the verdict ``unknown`` where they are all there is.
Source: issue 3, item 8. The figures are held equal to the Spark job's by a test of that room.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from checker.committed_logs import CommittedLogs, Presence, change_of
from checker.evidence import Evidence, acknowledged_change, describe_operation
from checker.fault_attribution import fault_spans
from checker.losses import Losses
from checker.models.model import freeze
from checker.verdict import CheckResult, Verdict
from contracts.budget import Budget
from history.identity import operation_as_json
from history.records import PairedOperation

#: Lost changes told one by one.
NAMED_MAX = 20
#: Operations between two looks at the budget.
POLL_INTERVAL = 4096


class _Findings(msgspec.Struct):
    #: The first lost changes, described.
    named: list[dict[str, Any]]
    losses: Losses
    lost: int = 0
    held: int = 0
    untold: int = 0

    def lose(
        self, operation: PairedOperation, absent: Sequence[str], why: str, count: int = 1
    ) -> None:
        self.lost += count
        told = [
            self.losses.add(operation, operation.argument, operation.key, operation.end)
            for _ in range(count)
        ]
        if len(self.named) < NAMED_MAX:
            self.named.append(_lost(operation, absent, told[0], why))


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge every acknowledged change of a run."""
    changes = [operation for operation in evidence.operations if acknowledged_change(operation)]
    of_voters = {
        node: log for node, log in evidence.committed_logs.items() if node not in evidence.observers
    }
    figures = {"acknowledged": len(changes), "logs": len(of_voters)}
    if not evidence.converged:
        reason = "The nodes did not converge after healing, so their logs prove nothing yet."
        return CheckResult("lost-commits", Verdict.UNKNOWN, reason, figures)
    logs = CommittedLogs(of_voters, evidence.operations)
    shown = _shown_by_final_reads(evidence.operations)
    voters = max(evidence.voters, len(logs.nodes))
    findings = _Findings([], Losses(fault_spans(evidence.faults)))
    for number, operation in enumerate(changes):
        if number % POLL_INTERVAL == 0 and (reason := budget.exhausted()) is not None:
            return CheckResult("lost-commits", Verdict.UNKNOWN, f"Not finished: {reason}.", figures)
        _judge(operation, logs, shown, voters, findings)
    _judge_counts(changes, logs, voters, findings)
    return _result(findings, figures)


def _judge(
    operation: PairedOperation,
    logs: CommittedLogs,
    shown: dict[str | None, set[Hashable]],
    voters: int,
    findings: _Findings,
) -> None:
    presence = logs.presence(operation)
    held = sum(found is Presence.HELD for found in presence.values())
    absent = [node for node, found in presence.items() if found is Presence.ABSENT]
    majority = voters // 2 + 1
    missing_from_reads = (
        operation.f == "add"
        and operation.key in shown
        and freeze(operation.argument) not in shown[operation.key]
    )
    if missing_from_reads:
        findings.lose(operation, absent, "no final read shows it")
    elif voters - len(absent) < majority:
        holders = "no node holds it" if not held else f"only {held} of {voters} nodes hold it"
        findings.lose(operation, absent, f"{holders} after healing")
    elif held >= majority or (operation.f == "add" and operation.key in shown):
        findings.held += 1
    else:
        findings.untold += 1


def _judge_counts(
    changes: Sequence[PairedOperation], logs: CommittedLogs, voters: int, findings: _Findings
) -> None:
    """Equal changes without position: a log must hold as many records as were acknowledged."""
    acknowledged: dict[Any, list[PairedOperation]] = {}
    for operation in changes:
        if operation.position is None and logs.asked[change_of(operation)] > 1:
            acknowledged.setdefault(change_of(operation), []).append(operation)
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
            findings.held += len(equal)


def _shown_by_final_reads(
    operations: Sequence[PairedOperation],
) -> dict[str | None, set[Hashable]]:
    """Set to the elements that any of its final reads shows; sets without final read are absent."""
    sets = {operation.key for operation in operations if operation.f == "add"}
    shown: dict[str | None, set[Hashable]] = {}
    for operation in operations:
        if operation.final and operation.type == "ok" and operation.key in sets:
            elements: list[Any] = operation.result or []
            shown.setdefault(operation.key, set()).update(freeze(item) for item in elements)
    return shown


def _lost(operation: PairedOperation, absent: Sequence[str], told: str, why: str) -> dict[str, Any]:
    place = ""
    if operation.position is not None:
        place = f" at offset {operation.position[1]} in epoch {operation.position[0]}"
    return {
        "kind": "lost",
        "key": operation.key,
        "operation": operation_as_json(operation),
        "absent_from": list(absent),
        "sentence": f"{describe_operation(operation)} was acknowledged{place}{told}, but {why}.",
    }


def _result(findings: _Findings, figures: dict[str, Any]) -> CheckResult:
    lost = findings.lost
    figures = {**figures, "held": findings.held, "untold": findings.untold, "lost": lost}
    figures |= findings.losses.figures()
    if lost:
        verdict = Verdict.INVALID
        all_ = f"{lost:,} of {figures['acknowledged']:,} acknowledged changes are lost"
        reason = ": ".join(
            filter(None, (all_, findings.losses.clauses(), findings.named[0]["sentence"]))
        )
    elif findings.untold:
        verdict = Verdict.UNKNOWN
        reason = (
            f"{findings.untold:,} of {figures['acknowledged']:,} acknowledged changes cannot be "
            "traced: they have no position, equal ones, or no log that covers them."
        )
    else:
        verdict = Verdict.VALID
        reason = f"All {findings.held:,} acknowledged changes are held by a majority of the voters."
    return CheckResult(
        checker="lost-commits",
        verdict=verdict,
        reason=reason,
        figures=figures,
        violations=tuple(findings.named),
        lists=findings.losses.lists(),
    )
