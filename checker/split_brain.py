"""Checker of two leaders in one epoch, two records at one offset, and successes without record.

Two nodes that believe to lead in *different* epochs for a while are an observation, with its
duration: a deposed leader learns of it late. Events and logs need not be complete: missing ones are
counted and make the verdict ``unknown`` only where nothing at all could be looked at. Source: issue
3, item 8; Raft's election safety and state machine safety.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from splitbrain.checker.committed_logs import (
    CommittedLogs,
    Presence,
    committed_records,
    conflicts_at,
    differing_offsets,
    listed,
)
from splitbrain.checker.evidence import Evidence, acknowledged_change, describe_operation
from splitbrain.checker.findings import NAMED_MAX
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.state_event import PART, PART_EPOCH, PART_LEADER, StateEvent
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.identity import operation_as_json
from splitbrain.history.leadership import Overlap, Reign, overlaps, reigns
from splitbrain.history.records import position_text

_NANOSECONDS_PER_MS = 1_000_000

_Found = TypeVar("_Found")


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge events, logs and acknowledged operations against each other."""
    logs = evidence.committed_logs
    parts = _Parts()
    reigned = parts.found_in(lambda: reigns(evidence.state_events, fault_windows(evidence.faults)))
    differing = parts.found_in(lambda: differing_offsets(logs))
    led = parts.found_in(lambda: sorted(_leaders_of_parts(evidence.state_events).items()))
    kinds = (
        [
            *parts.found_in(lambda: _two_leaders_of_parts(led)),
            *parts.found_in(lambda: _two_leaders(reigned, evidence.state_events)),
        ],
        parts.found_in(lambda: conflicts_at(logs, differing[:NAMED_MAX])),
        parts.found_in(lambda: _epochs_going_back(logs)),
        parts.found_in(lambda: _groundless_successes(evidence) if evidence.converged else []),
    )
    two_leaders, conflicts, _, groundless = kinds
    overlapping = parts.found_in(lambda: overlaps(reigned, _end_of(evidence)))
    figures: dict[str, Any] = {
        "nodes-with-events": sum(bool(events) for events in evidence.state_events.values()),
        "nodes-with-logs": len(logs),
        "epochs-led": len({reign.epoch for reign in reigned}),
        "epochs-of-parts": len(led),
        "epochs-with-two-leaders": len(two_leaders),
        "conflicting-offsets": len(differing),
        "groundless-successes": len(groundless),
        "overlaps": len(overlapping),
        "longest-overlap-ms": round(
            max((pair.duration_ns for pair in overlapping), default=0) / _NANOSECONDS_PER_MS, 3
        ),
    }
    violations = tuple(named for kind in kinds for named in kind[:NAMED_MAX])
    observations = tuple(_overlap(pair) for pair in overlapping[:NAMED_MAX])
    otherwise, why = _verdict(figures, evidence, budget)
    undecided = why if otherwise is Verdict.UNKNOWN else None
    if violations:
        count = sum(map(len, kinds)) - len(conflicts) + len(differing)
        more = f" ({count:,} violations in all)" if count > 1 else ""
        crashed = "" if parts.crash is None else f" Not all was looked at: {parts.crash!r}."
        verdict, reason = Verdict.INVALID, f"{violations[0]['sentence']}{more}{crashed}"
        undecided = crashed.lstrip() or undecided
    elif parts.crash is not None:
        raise parts.crash
    else:
        verdict, reason = otherwise, why
    return CheckResult(
        "split-brain", verdict, reason, figures, violations, observations, undecided=undecided
    )


class _Parts:
    """Parts of this judgement; a defect in one must not cost the findings of another."""

    def __init__(self) -> None:
        self.crash: Exception | None = None

    def found_in(self, part: Callable[[], list[_Found]]) -> list[_Found]:
        """Return the findings of one part; none if it crashes, which is remembered."""
        try:
            return part()
        except Exception as error:  # noqa: BLE001 - see the class
            self.crash = self.crash or error
            return []


def _overlap(pair: Overlap) -> dict[str, Any]:
    first, second, duration_ms = pair.first, pair.second, pair.duration_ns / _NANOSECONDS_PER_MS
    return {
        "kind": "leader-overlap",
        "first": msgspec.to_builtins(first),
        "second": msgspec.to_builtins(second),
        "duration_ms": duration_ms,
        "sentence": (
            f"{first.node} still believed to lead epoch {first.epoch} for up to "
            f"{duration_ms:.1f} ms while {second.node} led epoch {second.epoch}."
        ),
    }


def _verdict(figures: Mapping[str, Any], evidence: Evidence, budget: Budget) -> tuple[Verdict, str]:
    if (reason := budget.exhausted()) is not None:
        return Verdict.UNKNOWN, f"Not finished: {reason}."
    events, logs = figures["nodes-with-events"], figures["nodes-with-logs"]
    if not events and not logs:
        return Verdict.UNKNOWN, "There are neither state events nor committed logs to look at."
    if not events and logs == 1 and evidence.voters > 1:
        return Verdict.UNKNOWN, "There is one committed log to look at, and nothing to compare."
    agree = f"the logs of {logs} nodes agree" if logs != 1 else "there is one log"
    unlooked = (
        "; successes were not looked up in the logs, which did not converge"
        if logs and not evidence.converged
        else ""
    )
    if not events:
        reason = f"{agree}{unlooked}; who led is not known, as there are no state events."
        return Verdict.VALID, reason[0].upper() + reason[1:]
    also = f" and {agree}" if logs else "; there are no committed logs to compare"
    parts = figures["epochs-of-parts"]
    rest = f", as had each of {parts:,} epochs of its parts" if parts else ""
    led = f"{_epochs(figures['epochs-led'])} had one leader{rest}"
    return Verdict.VALID, f"{led}{also}{unlooked}."


def _two_leaders(
    reigned: Iterable[Reign], state_events: Mapping[str, Sequence[StateEvent]]
) -> list[dict[str, Any]]:
    """Return epochs that two nodes led, by their own events or by what others followed."""
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
            sentence = f"{listed(sorted(leaders))} both led epoch {epoch}."
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


def _two_leaders_of_parts(
    led: Iterable[tuple[tuple[str, int], Mapping[int, str]]],
) -> list[dict[str, Any]]:
    """Return epochs of parts for which nodes name different leaders, each by its number."""
    return [
        {
            "kind": "two-leaders-in-one-epoch",
            "part": part,
            "epoch": epoch,
            "sentence": f"Epoch {epoch} of {part} had several leaders: "
            + ", ".join(f"{node} took {leader}" for leader, node in sorted(leaders.items()))
            + ".",
        }
        for (part, epoch), leaders in led
        if len(leaders) > 1
    ]


def _leaders_of_parts(
    state_events: Mapping[str, Sequence[StateEvent]],
) -> dict[tuple[str, int], dict[int, str]]:
    """Return who led each epoch of a part, by their numbers, each with a node that says so."""
    found: dict[tuple[str, int], dict[int, str]] = {}
    for node, events in state_events.items():
        for event in events:
            leader, epoch = event.detail.get(PART_LEADER), event.detail.get(PART_EPOCH)
            if event.kind == "part" and isinstance(leader, int) and isinstance(epoch, int):
                part = str(event.detail.get(PART))
                found.setdefault((part, epoch), {}).setdefault(leader, node)
    return found


def _epochs_going_back(logs: Mapping[str, CommittedLog]) -> list[dict[str, Any]]:
    """Return for each log the first later record with a lower epoch."""
    violations: list[dict[str, Any]] = []
    for node in sorted(logs):
        records = committed_records(logs[node])
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
    """Return acknowledged changes without record in any log, though each would have to hold it."""
    if not evidence.committed_logs:
        return []
    logs = CommittedLogs(evidence.committed_logs, evidence.operations, evidence.record_forms)
    violations: list[dict[str, Any]] = []
    for operation in evidence.operations:
        if not acknowledged_change(operation, evidence.functions):
            continue
        presence = logs.presence(operation)
        if any(found is not Presence.ABSENT for found in presence.values()):
            continue
        where = ""
        if operation.position is not None:
            where = f" at {position_text(operation.position)}"
        violations.append(
            {
                "kind": "success-without-record",
                "key": operation.key,
                "operation": operation_as_json(operation),
                "sentence": (
                    f"{describe_operation(operation)} was acknowledged{where}, but none of "
                    f"{listed(sorted(presence))} has its record."
                ),
            }
        )
    return violations


def _end_of(evidence: Evidence) -> int:
    times = [
        operation.start if operation.end is None else operation.end
        for operation in evidence.operations
    ]
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
