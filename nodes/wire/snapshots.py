"""A snapshot as a sequence of record batches: a header, the state machine's records, a footer.

The header tells the time of the last record of the log that is in the snapshot, the footer that
nothing is missing. All timestamps are the header's, so that equal contents are equal bytes on every
node. Source: KIP-630; Kafka's SnapshotHeaderRecord and SnapshotFooterRecord, versions 0.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.batches import Payload, Record, RecordBatch, encode_payloads
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import skip_tagged_fields

HEADER_TYPE: Final = 3
FOOTER_TYPE: Final = 4
#: A batch is closed once its values reach this: small beside what a fetch takes at once.
BATCH_VALUE_BYTES: Final = 512 * 1024
_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")
_HEADER: Final = struct.Struct(">hq")
_NO_TAGS: Final = b"\0"


class SnapshotError(WireError):
    """Batches that are no whole snapshot."""


def encode_snapshot(
    snapshot_id: SnapshotId, timestamp_ms: int, values: Iterable[bytes]
) -> Iterator[bytes]:
    """Return the snapshot, batch by batch.

    ``timestamp_ms``: of the last record of the log that is in it, in milliseconds since 1970.
    """
    header = (_KEY.pack(0, HEADER_TYPE), _HEADER.pack(0, timestamp_ms) + _NO_TAGS)
    footer = (_KEY.pack(0, FOOTER_TYPE), _VERSION.pack(0) + _NO_TAGS)
    offset = 0

    def sealed(payloads: list[Payload], *, is_control: bool = False) -> bytes:
        return encode_payloads(
            Offset(offset), snapshot_id.epoch, timestamp_ms, payloads, is_control=is_control
        )

    yield sealed([header], is_control=True)
    offset = 1
    payloads: list[Payload] = []
    size_bytes = 0
    for value in values:
        payloads.append((None, value))
        size_bytes += len(value)
        if size_bytes >= BATCH_VALUE_BYTES:
            yield sealed(payloads)
            offset += len(payloads)
            payloads, size_bytes = [], 0
    if payloads:
        yield sealed(payloads)
        offset += len(payloads)
    yield sealed([footer], is_control=True)


class SnapshotReader:
    """Gives a snapshot's records, and vouches for the snapshot being whole."""

    def __init__(self, snapshot_id: SnapshotId, batches: Iterable[RecordBatch]) -> None:
        """Read the header from the first of ``batches``; raises SnapshotError if there is none."""
        self._epoch: Epoch = snapshot_id.epoch
        self._batches = iter(batches)
        self._end_offset = 0
        first = next(self._batches, None)
        if first is None:
            raise SnapshotError("a snapshot is empty")
        self._follow(first)
        record = first.records[0]
        if not first.is_control or _type_of(record) != HEADER_TYPE:
            raise SnapshotError("a snapshot does not begin with its header")
        self._timestamp_ms = _header_timestamp(record)

    @property
    def timestamp_ms(self) -> int:
        """Of the last record of the log that is in the snapshot, in milliseconds since 1970."""
        return self._timestamp_ms

    def records(self) -> Iterator[Record]:
        """The state machine's records in order; once, and to the end, or it vouches for nothing.

        Raises SnapshotError where batches do not follow each other, or the footer is not the end.
        """
        has_footer = False
        for batch in self._batches:
            self._follow(batch)
            if has_footer:
                raise SnapshotError("something comes after a snapshot's footer")
            if not batch.is_control:
                yield from batch.records
            elif _type_of(batch.records[-1]) == FOOTER_TYPE:
                has_footer = True
        if not has_footer:
            raise SnapshotError("a snapshot ends without its footer")

    def _follow(self, batch: RecordBatch) -> None:
        if batch.base_offset != self._end_offset:
            raise SnapshotError(
                f"a snapshot's batch has offset {batch.base_offset}, not {self._end_offset}"
            )
        if batch.epoch != self._epoch:
            raise SnapshotError(
                f"a batch of epoch {batch.epoch} is in a snapshot of epoch {self._epoch}"
            )
        self._end_offset = batch.last_offset + 1


def _type_of(record: Record) -> int:
    if record.key is None or len(record.key) < _KEY.size:
        raise SnapshotError(f"control record at offset {record.offset} has no type")
    return _KEY.unpack_from(record.key)[1]


def _header_timestamp(record: Record) -> int:
    value = record.value or b""
    if len(value) < _HEADER.size:
        raise SnapshotError("a snapshot's header is cut short")
    version, timestamp_ms = _HEADER.unpack_from(value)
    if version != 0:
        raise SnapshotError(f"a snapshot's header has the unknown version {version}")
    skip_tagged_fields(value, _HEADER.size)
    return timestamp_ms
