"""Metadata transactions: records between a begin and an end count together, or not at all.

The log's records go in batch by batch; those that may be applied come out, in order, together with
how far the log is then applied. An end or an abort may come batches later, in another epoch: a new
leader aborts what the last one left open. Source: KIP-868.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.nodes.metadata.errors import ContradictionError, RecordError
from splitbrain.nodes.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.wire.batches import RecordBatch

_START: Final = Offset(0)


class MetadataBatch(msgspec.Struct, frozen=True):
    """A committed batch of the log."""

    base_offset: Offset
    last_offset: Offset
    epoch: Epoch
    #: When the leader wrote it, in milliseconds since 1970.
    timestamp_ms: int
    #: None of them if the batch is raft's own.
    records: Sequence[MetadataRecord]


class Provenance(msgspec.Struct, frozen=True):
    """How far into the log something reaches."""

    #: The last record that counts in it; -1 for nothing.
    last_offset: Offset = Offset(-1)
    #: Epoch of that record.
    epoch: Epoch = Epoch(-1)
    #: When its leader wrote it, in milliseconds since 1970.
    timestamp_ms: int = 0
    #: Whether it is the last of its batch; a snapshot may end nowhere else.
    ends_batch: bool = True

    @property
    def end_offset(self) -> Offset:
        """One past the last record."""
        return Offset(self.last_offset + 1)


class Settled(msgspec.Struct, frozen=True):
    """Records that count, and how far the log is applied with them."""

    #: In the order of the log; none where it moved on without any.
    records: Sequence[MetadataRecord]
    provenance: Provenance


def read_batch(batch: RecordBatch) -> MetadataBatch:
    """Return the metadata in a batch of the log, none of raft's own; raises RecordError."""
    records: list[MetadataRecord] = []
    if not batch.is_control:
        for record in batch.records:
            if record.value is None:
                raise RecordError(f"the record at offset {record.offset} has no value")
            records.append(decode_record(record.value))
    return MetadataBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        epoch=batch.epoch,
        timestamp_ms=batch.max_timestamp_ms,
        records=records,
    )


class TransactionBuffer:
    """Holds the records of an open transaction back; after an error it must not be used again."""

    def __init__(self, end_offset: Offset = _START) -> None:
        """``end_offset``: one past what was applied already, by a snapshot."""
        self._end_offset = end_offset
        self._opened_at: Offset | None = None
        self._held: list[MetadataRecord] = []

    @property
    def end_offset(self) -> Offset:
        """One past the last batch that was taken."""
        return self._end_offset

    @property
    def opened_at(self) -> Offset | None:
        """Where the open transaction begins; None while none is open."""
        return self._opened_at

    def add(self, batch: MetadataBatch) -> tuple[Settled, ...]:
        """Take the next committed batch; return what may be applied now, in order.

        Raises ContradictionError for a batch that was taken, or a transaction out of place.
        """
        if batch.base_offset < self._end_offset:
            raise ContradictionError(
                f"a batch from offset {batch.base_offset} comes after offset {self._end_offset - 1}"
            )
        settled: list[Settled] = []
        records: list[MetadataRecord] = []
        for offset, record in enumerate(batch.records, start=batch.base_offset):
            match record:
                case BeginTransactionRecord():
                    self._check_open(is_open=False, offset=offset, record=record)
                    if offset > batch.base_offset:
                        settled.append(_settled(records, batch, offset - 1))
                        records = []
                    self._opened_at = Offset(offset)
                case EndTransactionRecord():
                    self._check_open(is_open=True, offset=offset, record=record)
                    records += self._held
                    self._close()
                case AbortTransactionRecord():
                    self._check_open(is_open=True, offset=offset, record=record)
                    self._close()
                case _ if self._opened_at is not None:
                    self._held.append(record)
                case _:
                    records.append(record)
        self._end_offset = Offset(batch.last_offset + 1)
        if self._opened_at is None:
            settled.append(_settled(records, batch, batch.last_offset))
        return tuple(settled)

    def _close(self) -> None:
        self._opened_at = None
        self._held = []

    def _check_open(self, *, is_open: bool, offset: int, record: MetadataRecord) -> None:
        if is_open != (self._opened_at is not None):
            opened = (
                "no transaction is open"
                if self._opened_at is None
                else f"the transaction from offset {self._opened_at} is open"
            )
            raise ContradictionError(f"{type(record).__name__} at offset {offset}, while {opened}")


def _settled(records: list[MetadataRecord], batch: MetadataBatch, last_offset: int) -> Settled:
    return Settled(
        records,
        Provenance(
            Offset(last_offset),
            batch.epoch,
            batch.timestamp_ms,
            ends_batch=last_offset == batch.last_offset,
        ),
    )
