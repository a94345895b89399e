"""The log of a node: append to the page cache, flush in groups, truncate, read.

All file work blocks the caller's thread. These may run at the same time:

- One *owner* (the server's loop) calls ``append_*``, ``read``, ``batches``, ``prepare_flush`` and
  the properties.
- ``flush`` and ``persist_mark`` may run on *one* other thread at the same time as those; see
  ``flushing``.
- What ``cut_start`` returns runs on that thread too, in the order of the flushes.
- ``truncate``, ``replace`` and ``close`` run alone: nothing else may be under way.

After the first failed write or sync every call raises ``StorageFailed``: nothing is retried.

A log may have lost its beginning: it starts where a snapshot ends. Its first segment may begin
below that; what lies there is read by nobody.

The module is longer than 400 lines because all of it is one owner's view of one list of segments.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.leader_epochs import starts_from
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, SnapshotId
from splitbrain.nodes.storage.durable_mark import DurableMarkFile, LogPosition, open_mark
from splitbrain.nodes.storage.errors import CorruptStorageError, NotFormattedError, StorageFailed
from splitbrain.nodes.storage.filesystem import FileSystem, FolderLock
from splitbrain.nodes.storage.flushing import FailureLatch, Flusher, FlushPoint, Tail
from splitbrain.nodes.storage.layout import DURABLE_LENGTH, LOCK, log_folder, segment_name
from splitbrain.nodes.storage.log_restart import begin_anew
from splitbrain.nodes.storage.recovery import LogScan, repair_log, scan_log
from splitbrain.nodes.storage.segment import Segment
from splitbrain.nodes.storage.snapshots import Load, check_whole, remove_snapshots, settle_snapshots
from splitbrain.nodes.wire.batches import (
    Payload,
    RecordBatch,
    decode_batch,
    encode_payloads,
    peek_batch,
    peek_header,
)
from splitbrain.nodes.wire.control import LeaderChange, encode_leader_change
from splitbrain.nodes.wire.errors import WireError

#: A segment is closed before an append would make it longer.
SEGMENT_BYTES: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 1024 * 1024


def _nobody(_: str) -> None:
    """Nobody listens."""


class LogStore:
    """The open log of one node; see the module for what may run at the same time.

    All that works on the disk raises StorageFailed where that refuses, now or earlier.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        folder: Path,
        scan: LogScan,
        mark: DurableMarkFile,
        lock: FolderLock,
        segment_bytes: int,
    ) -> None:
        """Used by ``open``, which makes everything durable first."""
        self._filesystem = filesystem
        self._data_folder = folder
        self._folder = log_folder(folder)
        self._segments = list(scan.segments)
        #: First offset of every epoch, appended ones included.
        self.epochs = scan.epochs
        #: First offset that the log holds.
        self.start_offset = scan.start_offset
        #: Of the record before the start.
        self._start_epoch = scan.start_epoch
        self._lock = lock
        self._segment_bytes = segment_bytes
        self._latch = FailureLatch()
        self._tail = self._tail_of_last_segment()
        durable = FlushPoint(self._tail, scan.epochs, ())
        self._flusher = Flusher(filesystem, self._folder, mark, durable, self._latch)

    @classmethod
    def open(
        cls,
        filesystem: FileSystem,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        load: Load = check_whole,
        ignored: Callable[[str], None] = _nobody,
    ) -> tuple[Self, LogShape]:
        """Recover the log of a formatted data folder; blocks. All that it returns is durable.

        ``load`` is given snapshots, newest first, until one is whole, which ``LogShape`` names
        last; ``ignored`` is told in a sentence of each that is not.

        Raises:
            NotFormattedError: the folder holds no log.
            StorageInUseError: another process holds the folder.
            CorruptStorageError: what was flushed is not intact; nothing was changed.
        """
        if not filesystem.exists(log_folder(folder)):
            raise NotFormattedError(folder, f"has no {log_folder(folder).name}")
        lock = filesystem.lock(folder / LOCK)
        scan: LogScan | None = None
        try:
            settle_snapshots(filesystem, folder)
            scan = scan_log(filesystem, folder, load=load)
            for problem in scan.problems:
                ignored(problem)
            scan = repair_log(filesystem, folder, scan)
            mark = open_mark(filesystem, log_folder(folder) / DURABLE_LENGTH)
            store = cls(filesystem, folder, scan, mark, lock, segment_bytes)
            mark.write(store._tail.position, store._tail.end_offset)
            mark.sync()
        except BaseException as error:
            if scan is not None:
                scan.close()
            lock.release()
            if isinstance(error, OSError):
                raise StorageFailed("recover", log_folder(folder), str(error)) from error
            raise
        shape = LogShape(
            start_offset=scan.start_offset,
            end_offset=scan.end_offset,
            epochs=scan.epochs,
            snapshots=scan.snapshots,
        )
        return store, shape

    @property
    def end_offset(self) -> Offset:
        """One past the last appended record."""
        return self._tail.end_offset

    @property
    def end_position(self) -> LogPosition:
        """Where the bytes of the last appended record end."""
        return self._tail.position

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record; NO_EPOCH where there never was one."""
        return self.epochs[-1].epoch if self.epochs else self._start_epoch

    def append_raw(self, raw: bytes, headers: tuple[BatchHeader, ...]) -> None:
        """Append whole batches byte for byte; they are readable at once, and not durable.

        ``headers`` come from ``split_batches`` of the same bytes, which has checked them. Raises
        ValueError: they do not follow the log's end; nothing was written.
        """
        self._latch.check()
        epochs = self._epochs_with(raw, headers)
        segment = self._segments[-1]
        try:
            if segment.size_bytes and segment.size_bytes + len(raw) > self._segment_bytes:
                segment = self._roll()
            segment.append(raw, headers)
        except OSError as error:
            self._latch.fail("append to", segment.path, error)
        self.epochs = epochs
        # Last: a flush that starts now sees all of the append or nothing.
        self._tail = self._tail_of_last_segment()

    def append_records(
        self, base_offset: Offset, epoch: Epoch, timestamp_ms: int, payloads: Sequence[Payload]
    ) -> BatchHeader:
        """Append one batch with these keys and values; ``base_offset`` is the log's end.

        Raises ValueError: it does not follow the log's end, is empty or too long.
        """
        raw = encode_payloads(base_offset, epoch, timestamp_ms, payloads)
        return self._append_encoded(raw, base_offset, epoch, len(payloads))

    def append_control(
        self, base_offset: Offset, epoch: Epoch, timestamp_ms: int, change: LeaderChange
    ) -> BatchHeader:
        """Append the control batch that opens a leader's epoch.

        Raises ValueError: it does not follow the log's end.
        """
        payload = encode_leader_change(change)
        raw = encode_payloads(base_offset, epoch, timestamp_ms, [payload], is_control=True)
        return self._append_encoded(raw, base_offset, epoch, 1)

    def prepare_flush(self) -> FlushPoint:
        """Return the extent of a flush that starts now; called by the owner."""
        return FlushPoint(self._tail, self.epochs, self._flusher.unflushed(self._segments))

    def flush(self, point: FlushPoint | None = None) -> Offset:
        """Make everything up to ``point`` (default: now) durable; return the flushed end."""
        self._latch.check()
        self._flusher.flush(self.prepare_flush() if point is None else point)
        return self._flusher.flushed.end_offset

    def persist_mark(self) -> None:
        """Make the durable-length mark of the last flush durable; blocks.

        Call it on the flushing thread after the flush was reported, so that nobody waits for it;
        the next flush does it first if nobody has.
        """
        self._latch.check()
        self._flusher.persist_mark()

    def truncate(self, end_offset: Offset) -> None:
        """Drop every record at or above ``end_offset``; durable, all before it too, on return.

        Runs alone. ``end_offset`` is the first offset of a batch, or the log's end. Raises
        ValueError: it is outside the log or within a batch; nothing was changed.
        """
        self._latch.check()
        if not self.start_offset <= end_offset <= self.end_offset:
            raise ValueError(f"offset {end_offset} is outside the log")
        index, position = self._locate_boundary(end_offset)
        segment = self._segments[index]
        self._flusher.roll_back(Tail(end_offset, LogPosition(segment.base_offset, position)))
        try:
            while len(self._segments) > index + 1:
                dropped = self._segments.pop()
                dropped.close()
                self._filesystem.remove(dropped.path)
            segment.cut(end_offset, position)
        except OSError as error:
            self._latch.fail("truncate", segment.path, error)
        self.epochs = tuple(entry for entry in self.epochs if entry.start_offset < end_offset)
        self._tail = self._tail_of_last_segment()
        self._flusher.settle(self.prepare_flush())

    def replace(self, snapshot_id: SnapshotId) -> None:
        """Drop the whole log: it is empty and starts where this snapshot ends; durable on return.

        Runs alone. The snapshot is durable; older ones go.
        """
        self._latch.check()
        self._flusher.forget()
        old, offset = self._segments, snapshot_id.end_offset
        try:
            paths = [dropped.path for dropped in old]
            segment = begin_anew(self._filesystem, self._folder, paths, offset)
            for dropped in old:
                dropped.close()
            remove_snapshots(self._filesystem, self._data_folder, snapshot_id)
        except OSError as error:
            self._latch.fail("replace", self._folder, error)
        self._segments = [segment]
        self.epochs = ()
        self.start_offset, self._start_epoch = offset, snapshot_id.epoch
        self._tail = self._tail_of_last_segment()
        self._flusher.settle(self.prepare_flush())

    def cut_start(self, snapshot_id: SnapshotId) -> Callable[[], None]:
        """Let the log start where this snapshot ends, which is durable; called by the owner.

        Returns what then frees the disk, on the flushing thread: older snapshots first, then the
        checkpoint's entries, then segments that lie below the start.
        """
        offset = snapshot_id.end_offset
        self.start_offset, self._start_epoch = offset, snapshot_id.epoch
        self.epochs = epochs = starts_from(self.epochs, offset)
        kept = next(
            (n for n, segment in enumerate(self._segments) if segment.end_offset > offset),
            len(self._segments) - 1,
        )
        dropped, self._segments = self._segments[:kept], self._segments[kept:]

        def free() -> None:
            self._latch.check()
            try:
                remove_snapshots(self._filesystem, self._data_folder, snapshot_id)
                self._flusher.write_epochs(epochs)
                for segment in dropped:
                    segment.close()
                    self._filesystem.remove(segment.path)
                if dropped:
                    self._filesystem.sync_folder(self._folder)
            except OSError as error:
                self._latch.fail("remove the beginning of", self._folder, error)

        return free

    def read(self, from_offset: Offset, end_offset: Offset, max_bytes: int) -> bytes:
        """Whole batches from the one that holds ``from_offset`` on, all below ``end_offset``.

        As many as fit into ``max_bytes``, but at least one; empty where there is none. One call
        does not cross a segment's end.

        Raises:
            ValueError: ``from_offset`` is below the log's start.
            CorruptStorageError: the way to it was intact and is not any more.
        """
        self._latch.check()
        tail = self._tail
        if from_offset < self.start_offset:
            raise ValueError(f"offset {from_offset} is below the log's start")
        end_offset = min(end_offset, tail.end_offset)
        if from_offset >= end_offset:
            return b""
        segment = self._segments[self._segment_index(from_offset)]
        limit = segment.size_bytes
        if segment.base_offset == tail.position.segment:
            limit = tail.position.byte
        try:
            position, base_offset = segment.find(from_offset, limit)
            raw = segment.read(position, limit, end_offset, max_bytes)
            if not raw:
                # It ends above what was asked for, or only says so.
                segment.check(position, base_offset, limit)
        except OSError as error:
            self._latch.fail("read", segment.path, error)
        self._check_headers(raw, base_offset, segment.path)
        return raw

    def batches(self, from_offset: Offset, end_offset: Offset) -> Iterator[RecordBatch]:
        """Decoded batches, from the one that holds ``from_offset``, all below ``end_offset``.

        Raises CorruptStorageError: a batch was intact when it was written and is not any more.
        """
        while raw := self.read(from_offset, end_offset, _READ_BYTES):
            position = 0
            while position < len(raw):
                _, last_offset, size_bytes = peek_batch(raw, position)
                try:
                    yield decode_batch(raw, position)
                except WireError as error:
                    path = self._segments[self._segment_index(from_offset)].path
                    raise CorruptStorageError(path, str(error), offset=from_offset) from error
                from_offset = Offset(last_offset + 1)
                position += size_bytes

    def close(self) -> None:
        """Close all files and give the folder back; what was not flushed may be lost."""
        for segment in self._segments:
            segment.close()
        self._flusher.close()
        self._lock.release()

    def _append_encoded(
        self, raw: bytes, base_offset: Offset, epoch: Epoch, record_count: int
    ) -> BatchHeader:
        last_offset = Offset(base_offset + record_count - 1)
        header = BatchHeader(
            base_offset=base_offset, last_offset=last_offset, epoch=epoch, size_bytes=len(raw)
        )
        self.append_raw(raw, (header,))
        return header

    def _epochs_with(self, raw: bytes, headers: tuple[BatchHeader, ...]) -> tuple[EpochStart, ...]:
        expected = self._tail.end_offset
        epochs = self.epochs
        last_epoch = self.last_epoch
        size_bytes = 0
        for header in headers:
            if header.base_offset != expected:
                raise ValueError(
                    f"batch at offset {header.base_offset}, the log ends at {expected}"
                )
            if header.epoch < last_epoch:
                raise ValueError(f"batch of epoch {header.epoch} after epoch {last_epoch}")
            if header.epoch > last_epoch or not epochs:
                start = EpochStart(epoch=header.epoch, start_offset=header.base_offset)
                if epochs and epochs[-1].start_offset == start.start_offset:
                    epochs = epochs[:-1]  # all its records are below the log's start
                epochs = (*epochs, start)
                last_epoch = header.epoch
            expected = header.last_offset + 1
            size_bytes += header.size_bytes
        if size_bytes != len(raw):
            raise ValueError(f"headers describe {size_bytes} bytes, {len(raw)} were given")
        return epochs

    def _roll(self) -> Segment:
        base_offset = self._tail.end_offset
        path = self._folder / segment_name(base_offset)
        file = self._filesystem.open(path, create=True)
        file.truncate(0)
        segment = Segment(base_offset, file)
        self._segments.append(segment)
        return segment

    def _locate_boundary(self, offset: Offset) -> tuple[int, int]:
        """Index of the segment and byte position at which the batch of ``offset`` starts."""
        if offset == self.end_offset:
            return len(self._segments) - 1, self._segments[-1].size_bytes
        index = self._segment_index(offset)
        segment = self._segments[index]
        position, base_offset = segment.find(offset, segment.size_bytes)
        if base_offset != offset:
            raise ValueError(f"offset {offset} is within the batch that starts at {base_offset}")
        return index, position

    def _check_headers(self, raw: bytes, offset: Offset, path: Path) -> None:
        """Hold base offset and epoch, which no checksum covers, to what the node knows."""
        cursor = 0
        while cursor < len(raw):
            header = peek_header(raw, cursor)
            if header.base_offset != offset:
                raise CorruptStorageError(
                    path, f"a batch says that it begins at {header.base_offset}", offset=offset
                )
            known = self.epochs[bisect_right(self.epochs, offset, key=_start_offset) - 1].epoch
            if header.epoch != known:
                raise CorruptStorageError(
                    path, f"a batch of epoch {known} says {header.epoch}", offset=offset
                )
            offset = Offset(header.last_offset + 1)
            cursor += header.size_bytes

    def _segment_index(self, offset: Offset) -> int:
        return bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1

    def _tail_of_last_segment(self) -> Tail:
        segment = self._segments[-1]
        position = LogPosition(segment.base_offset, segment.size_bytes)
        return Tail(segment.end_offset, position)


def _start_offset(start: EpochStart) -> Offset:
    return start.start_offset
