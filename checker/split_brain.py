"""Two truths at once: two leaders in one epoch, two records at one offset, a success without one.

Two nodes that believe to lead in *different* epochs for a while are no violation: a deposed leader
learns of it late. That is an observation, with its duration. Must never need the nodes' events or
logs to be whole: what is missing is counted and makes the verdict ``unknown`` only where nothing
at all could be looked at. Source: issue 3, item 8; Raft's election safety and state machine safety.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from checker.committed_logs import CommittedLogs, Presence
from checker.evidence import Evidence, acknowledged_change, describe_operation
from checker.leadership import Reign, overlaps, reigns
from checker.verdict import CheckResult, Verdict
from contracts.budget import Budget
from contracts.committed import CommittedLog, CommittedRecord
from contracts.state_event import StateEvent
from history.identity import operation_as_json

#: Violations of each kind, and observations, told one by one.
NAMED_MAX = 20
_NANOSECONDS_PER_MS = 1_000_000


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge the nodes' events and logs, and what clients were told, against each other."""
    reigned = reigns(evidence.state_events, evidence.faults)
    two_leaders = _two_leaders(reigned, evidence.state_events)
    conflicts = _conflicting_records(evidence.committed_logs)
    backwards = _epochs_going_back(evidence.committed_logs)
    groundless = _groundless_successes(evidence) if evidence.converged else []
    overlapping = overlaps(reigned, _end_of(evidence))
    figures: dict[str, Any] = {
        "nodes-with-events": sum(bool(events) for events in evidence.state_events.values()),
        "nodes-with-logs": len(evidence.committed_logs),
        "epochs-led": len({reign.epoch for reign in reigned}),
        "epochs-with-two-leaders": len(two_leaders),
        "conflicting-offsets": len(conflicts),
        "groundless-successes": len(groundless),
        "overlaps": len(overlapping),
        "longest-overlap-ms": round(
            max((pair.duration_ns for pair in overlapping), default=0) / _NANOSECONDS_PER_MS, 3
        ),
    }
    violations = tuple(
        named
        for kind in (two_leaders, conflicts, backwards, groundless)
        for named in kind[:NAMED_MAX]
    )
    observations = tuple(
        {
            "kind": "leader-overlap",
            "first": msgspec.to_builtins(pair.first),
            "second": msgspec.to_builtins(pair.second),
            "duration_ms": pair.duration_ns / _NANOSECONDS_PER_MS,
            "sentence": (
                f"{pair.first.node} still believed to lead epoch {pair.first.epoch} for up to "
                f"{pair.duration_ns / _NANOSECONDS_PER_MS:.1f} ms while {pair.second.node} "
                f"led epoch {pair.second.epoch}."
            ),
        }
        for pair in overlapping[:NAMED_MAX]
    )
    verdict, reason = _verdict(violations, figures, evidence, budget)
    return CheckResult("split-brain", verdict, reason, figures, violations, observations)


def _verdict(
    violations: Sequence[dict[str, Any]],
    figures: Mapping[str, Any],
    evidence: Evidence,
    budget: Budget,
) -> tuple[Verdict, str]:
    if violations:
        more = f" ({len(violations):,} violations in all)" if len(violations) > 1 else ""
        return Verdict.INVALID, f"{violations[0]['sentence']}{more}"
    if (reason := budget.exhausted()) is not None:
        return Verdict.UNKNOWN, f"Not finished: {reason}."
    if not figures["nodes-with-events"] and not figures["nodes-with-logs"]:
        return Verdict.UNKNOWN, "There are neither state events nor committed logs to look at."
    unlooked = (
        ""
        if evidence.converged
        else "; successes were not looked up in the logs, which did not converge"
    )
    return Verdict.VALID, (
        f"{_epochs(figures['epochs-led'])} had one leader and the logs of "
        f"{figures['nodes-with-logs']} nodes agree{unlooked}."
    )


def _two_leaders(
    reigned: Iterable[Reign], state_events: Mapping[str, Sequence[StateEvent]]
) -> list[dict[str, Any]]:
    """Epochs that two nodes led, by their own word or by what others followed."""
    nodes_by_epoch: dict[int, dict[str, Reign]] = {}
    for reign in reigned:
        nodes_by_epoch.setdefault(reign.epoch, {}).setdefault(reign.node, reign)
    ids_by_epoch: dict[int, dict[int, str]] = {}
    for node, events in state_events.items():
        for event in events:
            if event.kind == "role" and event.leader is not None:
                ids_by_epoch.setdefault(event.epoch, {}).setdefault(event.leader, node)
    violations: list[dict[str, Any]] = []
    for epoch in sorted(nodes_by_epoch.keys() | ids_by_epoch.keys()):
        leaders = nodes_by_epoch.get(epoch, {})
        followed = ids_by_epoch.get(epoch, {})
        if len(leaders) > 1:
            sentence = f"{_and(sorted(leaders))} both led epoch {epoch}."
        elif len(followed) > 1:
            by = ", ".join(f"{node} took {leader}" for leader, node in sorted(followed.items()))
            sentence = f"Nodes took different leaders for epoch {epoch}: {by}."
        else:
            continue
        violations.append(
            {
                "kind": "two-leaders-in-one-epoch",
                "epoch": epoch,
                "leaders": [msgspec.to_builtins(leaders[node]) for node in sorted(leaders)],
                "sentence": sentence,
            }
        )
    return violations


def _conflicting_records(logs: Mapping[str, CommittedLog]) -> list[dict[str, Any]]:
    """Offsets at which two nodes committed different records."""
    first_at: dict[int, tuple[str, CommittedRecord]] = {}
    violations: list[dict[str, Any]] = []
    for node in sorted(logs):
        for record in logs[node].records:
            other, known = first_at.setdefault(record.offset, (node, record))
            if (known.epoch, known.digest) == (record.epoch, record.digest):
                continue
            violations.append(
                {
                    "kind": "different-committed-records",
                    "offset": record.offset,
                    "records": {
                        other: msgspec.to_builtins(known),
                        node: msgspec.to_builtins(record),
                    },
                    "sentence": (
                        f"At offset {record.offset} {other} committed {_record(known)} and "
                        f"{node} committed {_record(record)}."
                    ),
                }
            )
    return sorted(violations, key=lambda violation: violation["offset"])


def _epochs_going_back(logs: Mapping[str, CommittedLog]) -> list[dict[str, Any]]:
    """Logs in which a later record has a lower epoch, the first place of each."""
    violations: list[dict[str, Any]] = []
    for node in sorted(logs):
        records = sorted(logs[node].records, key=lambda record: record.offset)
        for earlier, later in pairwise(records):
            if later.epoch < earlier.epoch:
                violations.append(
                    {
                        "kind": "epoch-goes-back",
                        "node": node,
                        "offset": later.offset,
                        "sentence": (
                            f"The committed log of {node} goes from epoch {earlier.epoch} at "
                            f"offset {earlier.offset} back to epoch {later.epoch} at offset "
                            f"{later.offset}."
                        ),
                    }
                )
                break
    return violations


def _groundless_successes(evidence: Evidence) -> list[dict[str, Any]]:
    """Acknowledged changes whose record no dumped log holds, though each would have to."""
    if not evidence.committed_logs:
        return []
    logs = CommittedLogs(evidence.committed_logs, evidence.operations)
    violations: list[dict[str, Any]] = []
    for operation in evidence.operations:
        if not acknowledged_change(operation):
            continue
        presence = logs.presence(operation)
        if any(found is not Presence.ABSENT for found in presence.values()):
            continue
        where = ""
        if operation.position is not None:
            where = f" at offset {operation.position[1]} in epoch {operation.position[0]}"
        violations.append(
            {
                "kind": "success-without-record",
                "key": operation.key,
                "operation": operation_as_json(operation),
                "sentence": (
                    f"{describe_operation(operation)} was acknowledged{where}, but none of "
                    f"{_and(sorted(presence))} has its record."
                ),
            }
        )
    return violations


def _end_of(evidence: Evidence) -> int:
    """The last moment that anything is known of, ns."""
    times = [operation.end or operation.start for operation in evidence.operations]
    times += [
        event.time
        for events in evidence.state_events.values()
        for event in events
        if event.time is not None
    ]
    times += [fault.time for fault in evidence.faults]
    return max(times, default=0)


def _epochs(count: int) -> str:
    return "The only epoch" if count == 1 else f"Each of {count:,} epochs"


def _record(record: CommittedRecord) -> str:
    what = f"{record.f} {record.value}"
    if record.f is None:
        what = "a control record" if record.value is None else f"a {record.value}"
    return f"{what} of epoch {record.epoch}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
