"""Reads a broker's data folder: the segments of one topic's partitions, and its checkpoints.

Shares no code with the clients, whose library encodes and decodes what is on the wire. Compressed
batches are refused, since no client here sends any. Source: the message format of Kafka's
documentation, version 2; ``CheckpointFile`` of Kafka 4.3.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import crc32c
import msgspec

from splitbrain.contracts.committed import RecordNumber, ReplicaLog, ReplicaRecord
from splitbrain.contracts.errors import UNREADABLE, HarnessError, in_one_line

_MAGIC: Final = 2
#: Base offset and the length of what follows.
_PREFIX: Final = struct.Struct(">qi")
#: Leader epoch, magic, CRC; attributes, last offset delta, two timestamps; producer, its epoch, its
#: sequence number; records.
_HEADER: Final = struct.Struct(">ibIhiqqqhii")
#: From here on the CRC is taken.
_SUMMED_FROM: Final = _PREFIX.size + struct.calcsize(">ibI")
_COMPRESSION: Final = 0x07
_CONTROL: Final = 0x20
_DIGEST_CHARACTERS: Final = 16
_COMMITTED: Final = "replication-offset-checkpoint"
_STARTS: Final = "log-start-offset-checkpoint"


class _Batch(msgspec.Struct, frozen=True):
    base_offset: int
    epoch: int
    attributes: int
    last_delta: int
    producer: int
    producer_epoch: int
    sequence: int
    count: int
    digest: str
    #: Of its records, behind the header.
    content: bytes

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.last_delta + 1


def replica_logs(node: str, folder: Path, topic: str) -> tuple[ReplicaLog, ...]:
    """Read every replica of a topic below ``log.dirs``, by the number of its partition.

    A record's value is that part of ours that clients know, or None. A batch that is cut off ends
    the log, as where the power went.

    Raises:
        HarnessError: a file cannot be read, or a batch is damaged; says which, and where.
    """
    committed, starts = _checkpoint(folder / _COMMITTED), _checkpoint(folder / _STARTS)
    found: list[ReplicaLog] = []
    for partition in sorted(folder.glob(f"{topic}-*"), key=lambda path: path.name):
        number = partition.name.removeprefix(f"{topic}-")
        # Others are those of topics whose name goes on, or on their way to be deleted.
        if not number.isdecimal():
            continue
        place = (topic, int(number))
        segments = sorted(partition.glob("*.log"))
        batches = [batch for segment in segments for batch in _batches(segment)]
        first = int(segments[0].stem) if segments else 0
        records = [record for batch in batches for record in _records(batch)]
        start = max(first, starts.get(place, 0))
        found.append(
            ReplicaLog(
                node=node,
                log=number,
                start_offset=start,
                end_offset=max((batch.end_offset for batch in batches), default=start),
                committed_end=committed.get(place, 0),
                records=tuple(record for record in records if record.offset >= start),
            )
        )
    return tuple(found)


def _checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Return the offset by topic and partition; none where there is no such file."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, in_one_line(error)) from error
    # The first line is the format's version, the second how many follow.
    rows = [line.rsplit(" ", 2) for line in lines[2:]]
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except ValueError as error:
        raise _unreadable(path, "a line is no topic, partition and offset") from error


def _batches(segment: Path) -> Iterator[_Batch]:
    try:
        content = segment.read_bytes()
    except OSError as error:
        raise _unreadable(segment, in_one_line(error)) from error
    at = 0
    while at + _PREFIX.size + _HEADER.size <= len(content):
        base, length = _PREFIX.unpack_from(content, at)
        end = at + _PREFIX.size + length
        # Files are allocated ahead by some settings, and filled with zeros.
        if length <= 0 or end > len(content):
            return
        yield _batch(segment, content, at, end, base)
        at = end


def _batch(segment: Path, content: bytes, at: int, end: int, base: int) -> _Batch:
    fields = _HEADER.unpack_from(content, at + _PREFIX.size)
    epoch, magic, crc, attributes, last_delta, _, _, producer, its_epoch, sequence, count = fields
    if magic != _MAGIC:
        raise _unreadable(segment, f"a batch at byte {at} is of version {magic}")
    if crc != crc32c.crc32c(content[at + _SUMMED_FROM : end]):
        raise _unreadable(segment, f"the batch at byte {at}, offset {base}, is damaged")
    if attributes & _COMPRESSION:
        raise _unreadable(segment, f"the batch at byte {at} is compressed")
    return _Batch(
        base_offset=base,
        epoch=epoch,
        attributes=attributes,
        last_delta=last_delta,
        producer=producer,
        producer_epoch=its_epoch,
        sequence=sequence,
        count=count,
        digest=hashlib.sha256(content[at:end]).hexdigest()[:_DIGEST_CHARACTERS],
        content=content[at + _PREFIX.size + _HEADER.size : end],
    )


def _records(batch: _Batch) -> Iterator[ReplicaRecord]:
    at = 0
    is_control = bool(batch.attributes & _CONTROL)
    for index in range(batch.count):
        length, at = _varint(batch.content, at)
        delta, value = _record(batch.content[at : at + length])
        at += length
        is_numbered = batch.sequence >= 0 and not is_control
        yield ReplicaRecord(
            offset=batch.base_offset + delta,
            epoch=batch.epoch,
            digest=batch.digest,
            value=None if is_control else _own_value(value),
            sequence=RecordNumber(batch.producer, batch.producer_epoch, batch.sequence + index)
            if is_numbered
            else None,
        )


def _record(content: bytes) -> tuple[int, bytes]:
    """Return the offset from the batch's base, and the value; headers are passed over."""
    # An octet of attributes that is unused comes first.
    _, at = _varint(content, 1)
    delta, at = _varint(content, at)
    key_length, at = _varint(content, at)
    at += max(0, key_length)
    value_length, at = _varint(content, at)
    return delta, content[at : at + max(0, value_length)]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, zigzag, and where the next thing begins."""
    shift = number = 0
    while True:
        octet = content[at]
        at += 1
        number |= (octet & 0x7F) << shift
        if octet < 0x80:
            return number >> 1 ^ -(number & 1), at
        shift += 7


def _own_value(value: bytes) -> Any:
    """Return the element or record of a log or set that clients of ours sent, else None."""
    try:
        parts: Sequence[Any] = msgspec.json.decode(value, type=tuple[str, Any])
    except UNREADABLE:
        return None
    return parts[1]


def _unreadable(path: Path, problem: str) -> HarnessError:
    return HarnessError(
        "read a broker's log", str(path), problem, "Look at the broker's output beside it"
    )
