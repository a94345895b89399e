"""A neutral dump of one node's committed log, written by a system's adapter."""

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
