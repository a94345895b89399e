"""Checker of consumer groups: no commit lost, none by who was fenced, no record passed over.

By the promises of a group's coordinator, whose changes of one group are in one order on disk before
anybody is told of them. Each rule asks for its evidence; of answers without one nothing follows.

- *Offsets*, see ``checker.groups.offsets``: an answer shows the last acknowledged commit of the log
  or one in flight. *Stale* is what a coordinator may answer that was replaced and does not know it;
  systems that have such allow it.
- *Owners*: a log has one owner in a generation; where members have epochs of their own, no two have
  had it in the same one. Nothing follows from times: who was removed may learn it late.
- *Outdated*: no commit is acknowledged that was asked for when its standing was over
  (``checker.groups.fences``).
- *Passed over*: all visible records below a commit were delivered to some member before it was
  asked for; all those below a committed offset that anybody was told, by then. Consumers must
  commit no more than what they were delivered; then a group passes a record by beginning at a wrong
  place.

A record that is delivered again after a rebalance is counted: groups deliver at least once. Equal
times are concurrent. n log n, and n more for each answer that is stale. Sources: KIP-62, KIP-429,
KIP-848, KIP-1251; docs/workloads.md has the reason of each rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from splitbrain.checker.findings import Findings, by_key, end_of
from splitbrain.checker.groups.deliveries import Deliveries, Passing, Record, deliveries_of
from splitbrain.checker.groups.fences import Fences
from splitbrain.checker.groups.offsets import Unexplained, spans_by_log, unexplained
from splitbrain.checker.groups.readings import (
    OF_GROUPS,
    Consumed,
    Group,
    OffsetRead,
    group_of,
)
from splitbrain.checker.logs.parts import Polled, parts_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.groups import CONSUME, GROUPS
from splitbrain.contracts.log import POLL
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

LOST: Final = "lost-commit"
OWNERS: Final = "two-owners"
OUTDATED: Final = "outdated-commit-accepted"
PHANTOM: Final = "phantom-offset"
NOBODY: Final = "delivered-to-nobody"
PASSED: Final = "passed-before-delivery"
STALE: Final = "stale-offset"
#: Most telling first.
KINDS: Final = (LOST, OWNERS, OUTDATED, PHANTOM, NOBODY, PASSED, STALE)

_FIGURES: Final = ("delivered", "redelivered", "commits", "offsets-told")


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all groups of a history, by key."""
    return _Judgement(operations, budget).conclude()


class _Judgement:
    def __init__(self, operations: Iterable[PairedOperation], budget: Budget) -> None:
        self._operations = sorted(operations, key=lambda operation: operation.index)
        self._findings = Findings(GROUPS, budget, KINDS)

    def conclude(self) -> CheckResult:
        return self._findings.conclude(self._judge)

    def _judge(self) -> tuple[dict[str, Any], str, str | None]:
        visible = self._visible()
        figures: dict[str, int] = dict.fromkeys(_FIGURES, 0)
        unreached: list[str] = []
        members = [one for one in self._operations if one.f in OF_GROUPS]
        for operations in by_key(members).values():
            self._findings.poll(len(operations))
            group = group_of(operations)
            fences = Fences(group.consumed)
            self._judge_owners(group.consumed)
            self._judge_offsets(group, fences)
            self._judge_outdated(group, fences)
            deliveries = deliveries_of(group.consumed)
            self._judge_deliveries(group, deliveries, visible)
            unreached += _unreached(operations, deliveries, visible)
            figures["delivered"] += sum(log.count for log in deliveries.values())
            figures["redelivered"] += sum(log.repeated for log in deliveries.values())
            figures["commits"] += sum(commit.is_sure for commit in group.commits)
            figures["offsets-told"] += len(group.reads)
        undecided = None
        if not figures["delivered"]:
            undecided = "Nothing was ever delivered to a member, so there is nothing to judge."
        elif unreached:
            undecided = (
                f"The group did not come to the end of {' and '.join(unreached)}, "
                "so it may have stopped."
            )
        valid = (
            f"{counted(figures['commits'], 'acknowledged commit')}: none is lost, and none passes "
            f"a record that was not delivered."
        )
        return figures, valid, undecided

    def _visible(self) -> Mapping[str, Sequence[Record]]:
        """Return the records that final reads show, by log, in order."""
        found: dict[str, set[Record]] = {}
        for operation in self._operations:
            if operation.f == POLL and operation.final and operation.type == "ok":
                for part in parts_of(operation):
                    if isinstance(part, Polled):
                        self._findings.poll(1 + len(part.records))
                        found.setdefault(part.key, set()).update(
                            Record(offset, value) for offset, value in part.records
                        )
        return {log: sorted(records, key=_offset) for log, records in found.items()}

    def _judge_owners(self, consumed: Sequence[Consumed]) -> None:
        owners: dict[tuple[bool, int, str], dict[str, Consumed]] = {}
        for each in consumed:
            standing = each.standing
            for log in each.logs:
                found = owners.setdefault((standing.is_generation, standing.number, log), {})
                if standing.member in found:
                    continue
                found[standing.member] = each
                first = next(iter(found.values()))
                if first is not each:
                    self._note(
                        OWNERS,
                        [first.operation, each.operation],
                        f"In {standing.words} log {log} was given to member "
                        f"{first.standing.member} (index {first.operation.index}) and to member "
                        f"{standing.member} (index {each.operation.index}).",
                    )

    def _judge_offsets(self, group: Group, fences: Fences) -> None:
        spans = spans_by_log(group, fences)
        reads: dict[str, list[OffsetRead]] = {}
        for read in group.reads:
            reads.setdefault(read.log, []).append(read)
        for log, of_log in sorted(reads.items()):
            self._findings.poll(len(of_log))
            for found in unexplained(of_log, spans.get(log, [])):
                self._note_offset(found)

    def _note_offset(self, found: Unexplained) -> None:
        read = found.read
        where = f"log {read.log}{_of(read.operation)}"
        told = "no committed offset" if read.offset is None else f"the offset {read.offset}"
        if found.lacks is None:
            self._note(
                PHANTOM,
                [read.operation],
                f"The committed offset of {where} was told as {read.offset} (index "
                f"{read.operation.index}), and by then nobody had asked to commit that, or it "
                "had certainly failed.",
            )
            return
        commit = found.lacks
        self._note(
            LOST if found.is_lost else STALE,
            [commit.operation, read.operation],
            f"{commit.offsets[read.log]} was committed for {where} and acknowledged (index "
            f"{commit.operation.index}), and an answer asked for after that tells {told} (index "
            f"{read.operation.index}), from before it.",
        )

    def _judge_outdated(self, group: Group, fences: Fences) -> None:
        for commit in group.commits:
            for log in commit.offsets if commit.is_sure else ():
                fence = fences.end_of(commit.standing, log)
                if fence is not None and end_of(fence.operation) < commit.operation.start:
                    self._note(
                        OUTDATED,
                        [fence.operation, commit.operation],
                        f"Member {commit.standing.member} committed an offset of log {log} in "
                        f"{commit.standing.words} (index {commit.operation.index}), and before "
                        f"that was asked for {fence.standing.words} had been told to "
                        f"{fence.standing.member} (index {fence.operation.index}).",
                    )
                    break

    def _judge_deliveries(
        self,
        group: Group,
        deliveries: Mapping[str, Deliveries],
        visible: Mapping[str, Sequence[Record]],
    ) -> None:
        by_log = _passings(group)
        for log, records in visible.items():
            self._findings.poll(len(records))
            delivered = deliveries.get(log, Deliveries())
            passings = by_log.get(log, [])
            for record, passing in delivered.to_nobody(records, passings):
                self._note(
                    NOBODY,
                    [passing.operation],
                    f"{shown(record.value)} stands at offset {record.offset} of log {log}, no "
                    f"member was delivered it, and {_past(passing)}.",
                )
            for record, first, passing in delivered.too_late(records, passings):
                self._note(
                    PASSED,
                    [first, passing.operation],
                    f"{shown(record.value)} stands at offset {record.offset} of log {log}, and "
                    f"{_past(passing)} before anybody had been delivered it (index "
                    f"{first.index}).",
                )

    def _note(self, kind: str, operations: Sequence[PairedOperation], sentence: str) -> None:
        self._findings.note(kind, operations, lambda: sentence)


def _passings(group: Group) -> Mapping[str, list[Passing]]:
    """Return by log who committed, or was told, an offset."""
    found: dict[str, list[Passing]] = {}
    for commit in group.commits:
        operation = commit.operation
        for log, offset in commit.offsets.items() if commit.is_sure else ():
            found.setdefault(log, []).append(Passing(offset, operation, operation.start))
    for read in group.reads:
        if read.offset is not None:
            passing = Passing(read.offset, read.operation, end_of(read.operation))
            found.setdefault(read.log, []).append(passing)
    return found


def _unreached(
    operations: Sequence[PairedOperation],
    deliveries: Mapping[str, Deliveries],
    visible: Mapping[str, Sequence[Record]],
) -> list[str]:
    """Return the logs whose last record was not delivered, though the group was let read on."""
    if not any(one.final and one.f == CONSUME for one in operations):
        return []
    return [
        f"log {log}{_of(operations[0])}"
        for log, records in sorted(visible.items())
        if records and deliveries.get(log, Deliveries()).lacks(records[-1])
    ]


def _past(passing: Passing) -> str:
    return f"the group was at offset {passing.offset} (index {passing.operation.index})"


def _of(operation: PairedOperation) -> str:
    return "" if operation.key is None else f" of group {operation.key}"


def _offset(record: Record) -> int:
    return record.offset
