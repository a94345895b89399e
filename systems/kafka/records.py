"""Batches of records in Kafka's format, as a producer sends and a consumer reads them; pure.

Source: the message format of Kafka's documentation, version 2; KIP-98.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from kafka.errors import KafkaError
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from splitbrain.contracts.errors import UNREADABLE

_FORMAT: Final = 2
_NO_ID: Final = -1
_Records: Final = cast("Any", MemoryRecords)
_Builder: Final = cast("Any", MemoryRecordsBuilder)


class DamagedError(Exception):
    """Bytes that are no batches of records."""


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """Mark of a producer on a batch: a broker appends each sequence number of an epoch once."""

    producer_id: int
    epoch: int
    sequence: int
    #: None: the batch is in no transaction.
    transactional_id: str | None = None
    #: Of the request that it is sent with.
    produce_version: int


def batch_of(value: bytes, stamp: Stamp | None) -> bytes:
    """Return a batch of one record."""
    builder = _Builder(
        magic=_FORMAT,
        compression_type=0,
        batch_size=0,
        transactional=stamp is not None and stamp.transactional_id is not None,
        producer_id=_NO_ID if stamp is None else stamp.producer_id,
        producer_epoch=_NO_ID if stamp is None else stamp.epoch,
        base_sequence=_NO_ID if stamp is None else stamp.sequence,
    )
    # A topic that is compacted keeps the last record of each key: that must be every record.
    builder.append(timestamp=None, key=value, value=value)
    builder.close()
    return bytes(builder.buffer())


def records_of(
    read: bytes, aborted: Sequence[Any], start: int, end: int
) -> tuple[list[tuple[int, bytes]], int]:
    """Return offsets and values from start up to the end, and the offset behind what was read.

    ``aborted`` are the aborted transactions of the answer, each with ``producer_id`` and
    ``first_offset``; their records are left out. Raises DamagedError.
    """
    found: list[tuple[int, bytes]] = []
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    # Producers whose transaction at this place is aborted, up to its marker.
    given_up: set[int] = set()
    offset = start
    try:
        for batch in _Records(read):
            if not batch.validate_crc():
                raise DamagedError("a batch of records is damaged")
            while waiting and waiting[-1].first_offset <= batch.last_offset:
                given_up.add(waiting.pop().producer_id)
            if batch.is_control_batch:
                if any(marker.abort for marker in batch):
                    given_up.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in given_up):
                found += [
                    (record.offset, record.value or b"")
                    for record in batch
                    if start <= record.offset < end
                ]
            offset = max(offset, batch.next_offset)
    except (KafkaError, AttributeError, struct.error, IndexError, *UNREADABLE) as error:
        raise DamagedError("records that cannot be read") from error
    return found, offset
