"""Reads the log of a stopped node's data folder, for adapters and tools; changes nothing.

Raft keeps no high watermark on disk: which records are committed is known from outside only (the
node's state events, or that all nodes hold the same log after convergence). So the caller says
where the committed part ends. A torn tail is left out, as a restart would cut it off.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.disk import ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.recovery import scan_log
from splitbrain.nodes.storage.segment import decoded_batches
from splitbrain.nodes.wire.batches import HEADER_BYTES, RecordBatch, decode_batch, peek_batch
from splitbrain.nodes.wire.errors import WireError


class LoggedRecord(msgspec.Struct, frozen=True):
    """One record of the log."""

    offset: Offset
    epoch: Epoch
    #: Milliseconds since 1970, as the leader stamped it.
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    #: Raft's own record, none of the state machine's.
    is_control: bool


def read_committed(
    folder: Path, end_offset: int | None = None, *, filesystem: FileSystem | None = None
) -> Iterator[LoggedRecord]:
    """Records below ``end_offset`` (None: all that is intact), in order, from the log's start on.

    ``folder`` is the data folder of a stopped node of ours, or of a real Kafka controller.

    Raises:
        NotFormattedError: the folder holds no log.
        CorruptStorageError: what was flushed is not intact.
    """
    scan = scan_log(filesystem or ReadOnlyDiskFileSystem(), folder, foreign=True)
    try:
        # A log that a snapshot was about to replace holds what is not committed.
        for segment in scan.segments if scan.replaced_by is None else ():
            for batch in decoded_batches(segment):
                for record in _logged(batch):
                    if end_offset is not None and record.offset >= end_offset:
                        return
                    if record.offset >= scan.start_offset:
                        yield record
    finally:
        scan.close()


def log_start(folder: Path, *, filesystem: FileSystem | None = None) -> SnapshotId:
    """Return the snapshot that the records of ``read_committed`` follow, or would.

    Ends at 0 where nothing comes before them; without an epoch where no snapshot tells it.

    Raises:
        NotFormattedError: the folder holds no log.
        CorruptStorageError: what was flushed is not intact.
    """
    scan = scan_log(filesystem or ReadOnlyDiskFileSystem(), folder, foreign=True)
    try:
        if scan.replaced_by is not None:
            return scan.replaced_by
        return SnapshotId(scan.start_offset, scan.start_epoch)
    finally:
        scan.close()


def records_in(content: bytes, first: int = 0) -> Iterator[LoggedRecord]:
    """Yield the records of a segment's intact batches, up to the first one that is not.

    Batches that end below ``first`` are passed over unchecked.
    """
    position = 0
    while len(content) - position >= HEADER_BYTES:
        _, last_offset, size_bytes = peek_batch(content, position)
        if size_bytes < HEADER_BYTES:
            return
        if last_offset >= first:
            try:
                batch = decode_batch(content, position)
            except WireError:
                return
            yield from (record for record in _logged(batch) if record.offset >= first)
        position += size_bytes


def _logged(batch: RecordBatch) -> Iterator[LoggedRecord]:
    for record in batch.records:
        yield LoggedRecord(
            offset=record.offset,
            epoch=batch.epoch,
            timestamp_ms=record.timestamp_ms,
            key=record.key,
            value=record.value,
            is_control=batch.is_control,
        )
