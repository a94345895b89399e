"""Kafka's record batches, version 2: encode, decode, and split what a peer or a file holds.

The bytes are those that Kafka's own raft writes. The checksum (CRC-32C) starts at the attributes:
base offset, length, partition leader epoch and magic are *not* under it, so ``split_batches`` also
wants contiguous offsets and epochs that never fall. Compressed batches are replicated raw but not
decoded: KRaft writes its metadata log uncompressed.

Source: Kafka's documentation, "Record Batch"; KIP-98; KIP-595 for the control bit.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final

import crc32c
import msgspec

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.wire.errors import CorruptBatchError, WireError
from splitbrain.nodes.wire.varints import decode_signed, encode_signed

MAGIC: Final = 2
#: Bytes of a batch before its first record.
HEADER_BYTES: Final = 61
#: Base offset and length: what stands before the bytes that the length counts.
LENGTH_PREFIX_BYTES: Final = 12
#: A batch that announces more is taken for garbage (Kafka's own limit for raft is 8 MiB).
BATCH_BYTES_MAX: Final = 128 * 1024 * 1024

CONTROL_BIT: Final = 0x20
_COMPRESSION_MASK: Final = 0x07
#: Batches that stay decoded, and the size of the longest of them: a few megabytes in all.
_BATCHES_KEPT_MAX: Final = 2_048
_KEPT_BYTES_MAX: Final = 2_048
#: First byte under the checksum.
_CHECKSUM_START: Final = 21

# base offset, length, leader epoch, magic, checksum, attributes, last offset delta,
# base timestamp, max timestamp, producer id, producer epoch, base sequence, record count
_HEADER: Final = Struct(">qiibIhiqqqhii")
#: Of them base offset, length and last offset delta alone.
_EXTENT: Final = Struct(">qi11xi34x")
_CHECKED: Final = Struct(">hiqqqhii")
_UNCHECKED: Final = Struct(">qiibI")

RecordHeader = tuple[str, bytes | None]
#: Key and value of a record to append.
Payload = tuple[bytes | None, bytes | None]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record of a batch."""

    offset: Offset
    #: Milliseconds since 1970.
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


class RecordBatch(msgspec.Struct, frozen=True):
    """A decoded batch; every field of the format is kept, so that encoding gives it back."""

    base_offset: Offset
    epoch: Epoch
    #: Milliseconds since 1970; records state theirs relative to it.
    base_timestamp_ms: int
    max_timestamp_ms: int
    records: tuple[Record, ...]
    #: Bits as in the format; see ``CONTROL_BIT``.
    attributes: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1

    @property
    def is_control(self) -> bool:
        """Whether the records are raft's own and not the state machine's."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def last_offset(self) -> Offset:
        """Offset of the last record."""
        return Offset(self.base_offset + len(self.records) - 1)


def encode_payloads(
    base_offset: Offset,
    epoch: Epoch,
    timestamp_ms: int,
    payloads: Sequence[Payload],
    *,
    is_control: bool = False,
) -> bytes:
    """Bytes of a batch of keys and values, all of one time; raises ValueError if none fits."""
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(payloads):
        # Attributes 0, timestamp delta 0.
        body = b"\0\0" + encode_signed(delta) + _sized(key) + _sized(value) + b"\0"
        parts.append(encode_signed(len(body)))
        parts.append(body)
    return _seal(
        base_offset,
        epoch,
        (
            CONTROL_BIT if is_control else 0,
            len(payloads) - 1,
            timestamp_ms,
            timestamp_ms,
            -1,
            -1,
            -1,
            len(payloads),
        ),
        b"".join(parts),
    )


def encode_batch(batch: RecordBatch) -> bytes:
    """Bytes of a decoded batch; raises ValueError for one that is wrong, too long or compressed."""
    if batch.attributes & _COMPRESSION_MASK:
        raise ValueError("compressed batches are not encoded here")
    parts: list[bytes] = []
    for delta, record in enumerate(batch.records):
        if record.offset != batch.base_offset + delta:
            raise ValueError(f"record {delta} of the batch has offset {record.offset}")
        fields = [
            b"\0",
            encode_signed(record.timestamp_ms - batch.base_timestamp_ms),
            encode_signed(delta),
            _sized(record.key),
            _sized(record.value),
            encode_signed(len(record.headers)),
        ]
        for name, value in record.headers:
            fields.append(_sized(name.encode()))
            fields.append(_sized(value))
        body = b"".join(fields)
        parts.append(encode_signed(len(body)))
        parts.append(body)
    return _seal(
        batch.base_offset,
        batch.epoch,
        (
            batch.attributes,
            len(batch.records) - 1,
            batch.base_timestamp_ms,
            batch.max_timestamp_ms,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            len(batch.records),
        ),
        b"".join(parts),
    )


def _sized(data: bytes | None) -> bytes:
    if data is None:
        return b"\x01"  # zig-zag of -1
    return encode_signed(len(data)) + data


def _seal(base_offset: Offset, epoch: Epoch, fields: tuple[int, ...], records: bytes) -> bytes:
    if fields[-1] < 1:
        raise ValueError("a batch has at least one record")
    size_bytes = HEADER_BYTES + len(records)
    if size_bytes > BATCH_BYTES_MAX:
        raise ValueError(f"a batch of {size_bytes} bytes is over the limit of {BATCH_BYTES_MAX}")
    checked = _CHECKED.pack(*fields) + records
    return (
        _UNCHECKED.pack(
            base_offset, size_bytes - LENGTH_PREFIX_BYTES, epoch, MAGIC, crc32c.crc32c(checked)
        )
        + checked
    )


def check_batch(buffer: bytes | memoryview, position: int = 0) -> BatchHeader:
    """Read and fully check the header of the batch at ``position``, checksum included.

    Raises:
        CorruptBatchError: it is cut short (``incomplete``) or wrong.
    """
    base_offset, length, epoch, _, _, _, last_delta, *_ = _checked_fields(buffer, position)
    return _header(base_offset, last_delta, epoch, LENGTH_PREFIX_BYTES + length)


def _checked_fields(buffer: bytes | memoryview, position: int) -> tuple[Any, ...]:
    """All fields of a header, as ``check_batch`` checks them."""
    available = len(buffer) - position
    if available < HEADER_BYTES:
        raise CorruptBatchError(
            position, f"only {available} bytes of its header are there", incomplete=True
        )
    fields = _HEADER.unpack_from(buffer, position)
    base_offset, length, epoch, magic, checksum, _, last_delta, *_, record_count = fields
    size_bytes = LENGTH_PREFIX_BYTES + length
    if not HEADER_BYTES <= size_bytes <= BATCH_BYTES_MAX:
        raise CorruptBatchError(position, f"length {length} is impossible")
    if magic != MAGIC:
        raise CorruptBatchError(position, f"magic is {magic}, not {MAGIC}")
    if size_bytes > available:
        raise CorruptBatchError(
            position, f"only {available} of its {size_bytes} bytes are there", incomplete=True
        )
    view = memoryview(buffer)[position + _CHECKSUM_START : position + size_bytes]
    actual = crc32c.crc32c(view)
    if actual != checksum:
        raise CorruptBatchError(
            position, f"checksum is {actual:#010x}, the header says {checksum:#010x}"
        )
    if base_offset < 0 or epoch < 0:
        raise CorruptBatchError(position, f"offset {base_offset} or epoch {epoch} is negative")
    if record_count < 1 or last_delta != record_count - 1:
        raise CorruptBatchError(
            position, f"{record_count} records do not end at offset delta {last_delta}"
        )
    return fields


def peek_batch(buffer: bytes | memoryview, position: int = 0) -> tuple[Offset, Offset, int]:
    """Base offset, last offset and size in bytes of a batch that was checked before.

    Needs the header's ``HEADER_BYTES`` only; checks nothing.
    """
    base_offset, length, last_delta = _EXTENT.unpack_from(buffer, position)
    return base_offset, base_offset + last_delta, LENGTH_PREFIX_BYTES + length


def peek_header(buffer: bytes | memoryview, position: int = 0) -> BatchHeader:
    """All that is known of a batch from its header; as ``peek_batch`` it checks nothing."""
    base_offset, length, epoch, _, _, _, last_delta, *_ = _HEADER.unpack_from(buffer, position)
    return _header(base_offset, last_delta, epoch, LENGTH_PREFIX_BYTES + length)


def _header(base_offset: int, last_delta: int, epoch: int, size_bytes: int) -> BatchHeader:
    return BatchHeader(
        base_offset=Offset(base_offset),
        last_offset=Offset(base_offset + last_delta),
        epoch=Epoch(epoch),
        size_bytes=size_bytes,
    )


def split_batches(raw: bytes | memoryview) -> tuple[BatchHeader, ...]:
    """Headers of concatenated batches, each checked, in order; contiguous offsets, rising epochs.

    Raises:
        CorruptBatchError: a batch is cut short or wrong, or does not follow the one before.
    """
    headers: list[BatchHeader] = []
    position = 0
    while position < len(raw):
        header = check_batch(raw, position)
        if headers:
            _check_succession(headers[-1], header, position)
        headers.append(header)
        position += header.size_bytes
    return tuple(headers)


def split_whole_batches(raw: bytes) -> tuple[bytes, tuple[BatchHeader, ...]]:
    """As ``split_batches``, but a last batch that is cut short is dropped.

    Kafka cuts the records of a fetch response at the byte limit, within a batch if need be.
    """
    try:
        return raw, split_batches(raw)
    except CorruptBatchError as error:
        if not error.incomplete:
            raise
        whole = raw[: error.position]
        return whole, split_batches(whole)


def _check_succession(previous: BatchHeader, header: BatchHeader, position: int) -> None:
    if header.base_offset != previous.last_offset + 1:
        raise CorruptBatchError(
            position, f"offset {header.base_offset} follows {previous.last_offset}"
        )
    if header.epoch < previous.epoch:
        raise CorruptBatchError(position, f"epoch {header.epoch} follows {previous.epoch}")


def decode_batch(buffer: bytes | memoryview, position: int = 0) -> RecordBatch:
    """Check and decode the batch at ``position``.

    Raises:
        CorruptBatchError: it is cut short or wrong.
        WireError: it is compressed, or its records are malformed although the checksum holds.
    """
    base_offset, length, epoch, _, _, attributes, _, base_timestamp, max_timestamp, *rest = (
        _checked_fields(buffer, position)
    )
    producer_id, producer_epoch, sequence, count = rest
    if attributes & _COMPRESSION_MASK:
        raise WireError(f"batch at byte {position} is compressed, which is not read here")
    end = position + LENGTH_PREFIX_BYTES + length
    body = bytes(memoryview(buffer)[position + HEADER_BYTES : end])
    decode = _decode_kept if len(body) <= _KEPT_BYTES_MAX else _decode_records
    records, decoded_bytes = decode(body, base_offset, base_timestamp, count)
    if decoded_bytes != len(body):
        raise WireError(
            f"batch at byte {position} has {len(body) - decoded_bytes} bytes after its records"
        )
    return RecordBatch(
        base_offset=base_offset,
        epoch=epoch,
        base_timestamp_ms=base_timestamp,
        max_timestamp_ms=max_timestamp,
        records=records,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )


def _decode_records(
    body: bytes, base_offset: Offset, base_timestamp: int, count: int
) -> tuple[tuple[Record, ...], int]:
    """Return the records of a batch, and how many bytes of the body they fill."""
    records: list[Record] = []
    cursor = 0
    for delta in range(count):
        record, cursor = _decode_record(body, cursor, base_offset, base_timestamp, delta)
        records.append(record)
    return tuple(records), cursor


# Nodes of one process apply the same batches, and who reads their logs meets them again.
_decode_kept = lru_cache(_BATCHES_KEPT_MAX)(_decode_records)


def _decode_record(
    body: bytes, cursor: int, base_offset: Offset, base_timestamp: int, delta: int
) -> tuple[Record, int]:
    size, cursor = decode_signed(body, cursor)
    end = cursor + size
    if size < 1 or end > len(body):
        raise WireError(f"record {delta} of the batch announces {size} bytes")
    # Nearly all, and all of ``encode_payloads``: a value of the batch's time, with nothing beside.
    plain = b"\0\0" + encode_signed(delta) + b"\x01"
    if body.startswith(plain, cursor):
        value, after = _decode_sized(body, cursor + len(plain))
        if after == end - 1 and body[after] == 0:
            return Record(Offset(base_offset + delta), base_timestamp, None, value), end
    if body[cursor] != 0:
        raise WireError(f"record {delta} of the batch has unknown attributes {body[cursor]}")
    timestamp_delta, cursor = decode_signed(body, cursor + 1)
    offset_delta, cursor = decode_signed(body, cursor)
    if offset_delta != delta:
        raise WireError(f"record {delta} of the batch has offset delta {offset_delta}")
    key, cursor = _decode_sized(body, cursor)
    value, cursor = _decode_sized(body, cursor)
    header_count, cursor = decode_signed(body, cursor)
    headers: list[RecordHeader] = []
    if not 0 <= header_count <= end - cursor:
        raise WireError(f"record {delta} of the batch announces {header_count} headers")
    for _ in range(header_count):
        name, cursor = _decode_sized(body, cursor)
        content, cursor = _decode_sized(body, cursor)
        headers.append((_header_name(name), content))
    if cursor != end:
        raise WireError(f"record {delta} of the batch is not as long as it announces")
    return (
        Record(
            offset=Offset(base_offset + delta),
            timestamp_ms=base_timestamp + timestamp_delta,
            key=key,
            value=value,
            headers=tuple(headers),
        ),
        cursor,
    )


def _decode_sized(body: bytes, cursor: int) -> tuple[bytes | None, int]:
    size, cursor = decode_signed(body, cursor)
    if size == -1:
        return None, cursor
    end = cursor + size
    if size < 0 or end > len(body):
        raise WireError(f"field at byte {cursor} of the batch's records announces {size} bytes")
    return body[cursor:end], end


def _header_name(name: bytes | None) -> str:
    if name is None:
        raise WireError("a record header has no name")
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise WireError("the name of a record header is not UTF-8") from error
