"""What the nodes' committed logs say about one acknowledged operation.

Two ways to find an operation's record: by its position, where the system returned one, else by
(kind, key, value), which tells one operation from another only where no other asked for the same.
Must never take what a snapshot covers for absent, nor a node without a dump for an empty one.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum

from checker.evidence import LOGGED_FUNCTIONS
from contracts.committed import CommittedLog, CommittedRecord
from history.edn_values import edn_text
from history.identity import PLAIN
from history.records import PairedOperation

#: Kind, key and value of a change.
Change = tuple[str, str | None, Hashable]


class Presence(Enum):
    """Whether one node's log holds an operation's record."""

    HELD = "held"
    ABSENT = "absent"
    #: A snapshot covers the place, or nothing tells this operation from equal ones.
    UNTOLD = "untold"


class NodeLog:
    """One node's committed log, indexed."""

    def __init__(self, log: CommittedLog) -> None:
        self.node = log.node
        self.start_offset = log.start_offset
        self.end_offset = log.end_offset
        self.by_offset: dict[int, CommittedRecord] = {
            record.offset: record for record in log.records
        }
        #: How many records carry each change.
        self.count_by_change: Counter[Change] = Counter(
            change_of_record(record) for record in log.records if record.f is not None
        )

    def at(self, position: tuple[int, int], operation: PairedOperation) -> Presence:
        """Whether the record of this operation lies at ``(epoch, offset)``."""
        epoch, offset = position
        if offset < self.start_offset:
            return Presence.UNTOLD
        record = self.by_offset.get(offset)
        if record is None or record.epoch != epoch:
            return Presence.ABSENT
        return (
            Presence.HELD if change_of_record(record) == change_of(operation) else Presence.ABSENT
        )

    def of_value(self, change: Change) -> Presence:
        """Whether any record carries the change; for changes asked for once."""
        if self.count_by_change[change]:
            return Presence.HELD
        return Presence.UNTOLD if self.start_offset > 0 else Presence.ABSENT


class CommittedLogs:
    """All dumps of a run.

    Args:
        logs: node to its dump.
        operations: all operations of the run, to tell which changes were asked for once.
    """

    def __init__(
        self, logs: Mapping[str, CommittedLog], operations: Iterable[PairedOperation]
    ) -> None:
        self.nodes: list[NodeLog] = [NodeLog(logs[node]) for node in sorted(logs)]
        #: How often each change was asked for, whatever came of it.
        self.asked: Counter[Change] = Counter(
            change_of(operation) for operation in operations if operation.f in LOGGED_FUNCTIONS
        )

    def presence(self, operation: PairedOperation) -> dict[str, Presence]:
        """Node to whether it holds the record of an acknowledged change."""
        if operation.position is not None:
            position = operation.position
            return {log.node: log.at(position, operation) for log in self.nodes}
        change = change_of(operation)
        if self.asked[change] > 1:
            # Equal changes cannot be told apart; none at all in a whole log is an answer yet.
            return {
                log.node: Presence.UNTOLD if log.count_by_change[change] else log.of_value(change)
                for log in self.nodes
            }
        return {log.node: log.of_value(change) for log in self.nodes}


def change_of(operation: PairedOperation) -> Change:
    """What an operation asked to be written."""
    return operation.f, operation.key, _told(operation.argument)


def change_of_record(record: CommittedRecord) -> Change:
    """What a record carries, comparable with ``change_of``."""
    return record.f or "", record.key, _told(record.value)


def _told(value: object) -> Hashable:
    """A value that no other is equal to; most tell themselves, and a run may have millions."""
    return value if type(value) in PLAIN else (edn_text(value),)
