"""Neutral dumps of a stopped node's logs, written by a system's adapter.

A system has one log that all nodes agree on, or logs of which each node has some replicas.
"""

from typing import Any, cast

import msgspec

from splitbrain.contracts.names import Int64


class CommittedRecord(msgspec.Struct, frozen=True):
    """One line of ``nodes/<n>/log.jsonl``; one record of the node's log.

    Records that are not operations of the workload (leader changes, no-ops) have ``f`` None; their
    value may name what they are, or be a ``Standing``.
    """

    offset: Int64
    #: ``NO_EPOCH`` where the system has none.
    epoch: Int64
    #: Operation kind of the record (``write``, ``cas``, ``add``); None for control records.
    f: str | None
    key: str | None
    value: Any
    #: Hex digest of the record's bytes; equal offset must mean equal digest on every node.
    digest: str


class Standing(msgspec.Struct, frozen=True):
    """Value of a record of the system's own by which an observer is taken into service, or out."""

    #: Kind of the record, by the system's name for it.
    record: str
    #: Name of the node.
    observer: str
    serves: bool


class RecordForm(msgspec.Struct, frozen=True):
    """Form of the records that operations of one kind leave in a system's log."""

    #: Kind that the records have.
    f: str
    #: Part of the operation's value that they have, counted from 0; None: all of it.
    part: int | None = None

    def recorded(self, argument: Any) -> Any:
        """Return the value that the record of an operation with this argument has."""
        if self.part is None or not isinstance(argument, list):
            return argument
        parts = cast("list[Any]", argument)
        return parts[self.part] if self.part < len(parts) else parts


class CommittedLog(msgspec.Struct, frozen=True):
    """The committed records of one node at the end of a run.

    A record at or above ``end_offset`` is one that the node does not know to be committed: it may
    be left out, it convicts nobody, and it may be what another node has committed. Below it no
    record may be left out that another node's dump has.
    """

    node: str
    #: First offset present (a snapshot covers what lies before).
    start_offset: Int64
    #: The node's own commit position: one past the last committed offset present.
    end_offset: Int64
    records: tuple[CommittedRecord, ...]


class RecordNumber(msgspec.Struct, frozen=True):
    """Mark of a producer that numbers its records, from 0 on in each of its epochs."""

    producer: Int64
    epoch: int
    number: int


class ReplicaRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record, as it lies on the disk."""

    offset: Int64
    #: Of the leader that appended it.
    epoch: Int64
    #: Hex digest of all bytes that replicas copy with it.
    digest: str
    #: As clients know it; None for records of the system's own.
    value: Any = None
    #: None: its producer numbers nothing.
    sequence: RecordNumber | None = None


class ReplicaLog(msgspec.Struct, frozen=True):
    """One replica of ``nodes/<n>/replicas.jsonl``."""

    node: str
    #: As operations of the workload name it, or as the system does.
    log: str
    #: First offset that is kept.
    start_offset: Int64
    #: One past the last record that is whole.
    end_offset: Int64
    #: One past the last offset that the node had noted on its disk as committed.
    committed_end: Int64
    records: tuple[ReplicaRecord, ...] = ()


class ReplicaHeader(msgspec.Struct, frozen=True):
    """A replica's first line in the dump; ``count`` records follow."""

    node: str
    log: str
    start_offset: int
    end_offset: int
    committed_end: int
    count: int
