"""Committed logs of the nodes: their agreement, and whether they hold an acknowledged operation.

An operation's record is found by its position, where the system returned one, else by (kind, key,
value), which identifies it only if no other operation asked for the same. A record below a snapshot
is not absent, a node without a dump is no empty one, and a record at or above a node's own commit
position is not committed: such a tail may be cut off.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedLog, CommittedRecord, RecordForm
from splitbrain.contracts.names import NO_EPOCH
from splitbrain.history.edn_values import edn_text
from splitbrain.history.identity import PLAIN
from splitbrain.history.records import PairedOperation

#: Kind, key and value of a change.
Change = tuple[str, str | None, Hashable]


class Presence(Enum):
    """Presence of an operation's record in one node's log."""

    HELD = "held"
    ABSENT = "absent"
    #: Undecidable: below a snapshot, equal to another operation's, or above the node's commit
    #: position.
    UNKNOWN = "unknown"


class NodeLog:
    """One node's committed log, indexed."""

    def __init__(self, log: CommittedLog) -> None:
        self.node = log.node
        self.start_offset = log.start_offset
        self.end_offset = log.end_offset
        committed = committed_records(log)
        self.by_offset: dict[int, CommittedRecord] = {record.offset: record for record in committed}
        self.count_by_change: Counter[Change] = _changes(committed)
        self._in_tail = {
            record.offset: record for record in log.records if record.offset >= log.end_offset
        }
        #: Counts of the records above the commit position.
        self.tail_by_change: Counter[Change] = _changes(self._in_tail.values())

    def at(self, position: tuple[int, int], change: Change) -> Presence:
        """Return whether the record of a change lies at ``(epoch, offset)``."""
        epoch, offset = position
        if offset < self.start_offset:
            return Presence.UNKNOWN
        record = self.by_offset.get(offset, self._in_tail.get(offset))
        if record is None or record.epoch != epoch:
            return Presence.ABSENT
        if change_of_record(record) != change:
            return Presence.ABSENT
        return Presence.HELD if offset in self.by_offset else Presence.UNKNOWN

    def of_value(self, change: Change) -> Presence:
        """Return whether any record carries the change, which only one operation asked for."""
        if self.count_by_change[change]:
            return Presence.HELD
        may_be_held = self.start_offset > 0 or self.tail_by_change[change]
        return Presence.UNKNOWN if may_be_held else Presence.ABSENT


class CommittedLogs:
    """Dumps of all nodes of a run, and all its operations, to count equal changes."""

    def __init__(
        self,
        logs: Mapping[str, CommittedLog],
        operations: Iterable[PairedOperation],
        forms: Mapping[str, RecordForm],
    ) -> None:
        self._forms = forms
        self.nodes: list[NodeLog] = [NodeLog(logs[node]) for node in sorted(logs)]
        #: How often each change was asked for, whatever came of it.
        self.request_counts: Counter[Change] = Counter(map(self.change_of, operations))

    def change_of(self, operation: PairedOperation) -> Change:
        """Return the change that an operation asked for, as its record shows it."""
        f, argument = operation.f, operation.argument
        form = self._forms.get(f)
        if form is not None:
            f, argument = form.f, form.recorded(argument)
        return f, operation.key, _hashable(argument)

    def presence(self, operation: PairedOperation) -> dict[str, Presence]:
        """Return by node whether it holds the record of an acknowledged change."""
        if operation.position is not None:
            position, change = operation.position, self.change_of(operation)
            return {log.node: log.at(position, change) for log in self.nodes}
        change = self.change_of(operation)
        if self.request_counts[change] > 1:
            # Equal changes cannot be told apart; a whole log without any of them still decides.
            return {
                log.node: Presence.UNKNOWN if log.count_by_change[change] else log.of_value(change)
                for log in self.nodes
            }
        return {log.node: log.of_value(change) for log in self.nodes}


def change_of_record(record: CommittedRecord) -> Change:
    """Return the change in a record, comparable with ``CommittedLogs.change_of``."""
    return record.f or "", record.key, _hashable(record.value)


def committed_records(log: CommittedLog) -> list[CommittedRecord]:
    """Return the records below the node's own commit position, by offset."""
    committed = [r for r in log.records if log.start_offset <= r.offset < log.end_offset]
    return sorted(committed, key=_offset)


def differing_offsets(logs: Mapping[str, CommittedLog]) -> list[int]:
    """Return the offsets at which committed logs differ, observers' included, ascending.

    They differ where epochs or digests do, and where a log lacks another one's record within its
    own bounds, so that neither a snapshot covers it nor the node is only behind.
    """
    committed = {node: committed_records(logs[node]) for node in sorted(logs)}
    first_at: dict[int, CommittedRecord] = {}
    disputed: set[int] = set()
    for records in committed.values():
        for record in records:
            known = first_at.setdefault(record.offset, record)
            if _identity(known) != _identity(record):
                disputed.add(record.offset)
    for node, records in committed.items():
        there = {record.offset for record in records}
        start, end = logs[node].start_offset, logs[node].end_offset
        # Only logs with a hole can lack a record within their bounds.
        if len(there) < end - start:
            disputed.update(o for o in first_at if start <= o < end and o not in there)
    return sorted(disputed)


def conflicts_at(
    logs: Mapping[str, CommittedLog], offsets: Collection[int]
) -> list[dict[str, Any]]:
    """Return one violation for each of these ``differing_offsets``."""
    committed = {
        node: [record for record in committed_records(logs[node]) if record.offset in offsets]
        for node in sorted(logs)
    }
    return [_conflict(offset, logs, committed) for offset in offsets]


def _conflict(
    offset: int,
    logs: Mapping[str, CommittedLog],
    committed: Mapping[str, Sequence[CommittedRecord]],
) -> dict[str, Any]:
    #: Different records, each with its nodes.
    records_there: dict[tuple[int, str], tuple[CommittedRecord, list[str]]] = {}
    lacking: list[str] = []
    for node, records in committed.items():
        here = [record for record in records if record.offset == offset]
        for record in here:
            records_there.setdefault(_identity(record), (record, []))[1].append(node)
        if not here and logs[node].start_offset <= offset < logs[node].end_offset:
            lacking.append(node)
    clauses = [
        f"{listed(names)} committed {_described(record)}"
        for record, names in records_there.values()
    ]
    if lacking:
        clauses.append(f"{listed(lacking)} {'has' if len(lacking) == 1 else 'have'} no record")
    return {
        "kind": "different-committed-records"
        if len(records_there) > 1
        else "committed-record-missing",
        "offset": offset,
        # One node for each record: how many share it is chance.
        "records": {
            names[0]: msgspec.to_builtins(record) for record, names in records_there.values()
        },
        "absent_from": list(lacking),
        "sentence": f"At offset {offset} {listed(clauses)}.",
    }


def listed(names: Sequence[str]) -> str:
    """Return ``n1, n2 and n3``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _described(record: CommittedRecord) -> str:
    what = f"{record.f} {record.value}"
    if record.f is None:
        what = "a control record" if record.value is None else f"a {record.value}"
    return what if record.epoch == NO_EPOCH else f"{what} of epoch {record.epoch}"


def _changes(records: Iterable[CommittedRecord]) -> Counter[Change]:
    return Counter(change_of_record(record) for record in records if record.f is not None)


def _identity(record: CommittedRecord) -> tuple[int, str]:
    return record.epoch, record.digest


def _offset(record: CommittedRecord) -> int:
    return record.offset


def _hashable(value: object) -> Hashable:
    """Return a key equal to no other value's; plain values, maybe millions, stay as they are."""
    return value if type(value) in PLAIN else (edn_text(value),)
