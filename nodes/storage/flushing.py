"""Makes what was appended durable: the half of the log that may run on another thread.

Order within one flush: the durable-length mark of the flush before, then the leader-epoch
checkpoint, then the segments, then the folder if a segment is new; then the new mark is stated, to
be synced later. So the checkpoint knows an epoch before its first batch counts as flushed, and the
mark lags by at most one flush group. Works on a ``FlushPoint``, a snapshot that later appends do
not touch, and publishes its result by single assignments.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.quorum.persistent import EpochStart
from splitbrain.nodes.storage.durable_mark import DurableMarkFile, LogPosition
from splitbrain.nodes.storage.epoch_checkpoint import write_epochs
from splitbrain.nodes.storage.errors import StorageFailed
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT
from splitbrain.nodes.storage.log_restart import NOTHING
from splitbrain.nodes.storage.segment import Segment


class Tail(NamedTuple):
    """The end of the log at one moment."""

    end_offset: Offset
    position: LogPosition


class FlushPoint(NamedTuple):
    """Extent that a flush shall make durable; taken by the log's owner."""

    tail: Tail
    epochs: tuple[EpochStart, ...]
    #: Segments that may hold unflushed bytes, oldest first.
    segments: tuple[Segment, ...]


class FailureLatch:
    """Remembers the first failure of a log; the log is over then."""

    def __init__(self) -> None:
        self._failure: StorageFailed | None = None

    def check(self) -> None:
        """Raise the failure, if there was one."""
        if self._failure is not None:
            raise self._failure

    def fail(self, action: str, path: Path, error: OSError) -> NoReturn:
        """Note a failure and raise it."""
        self._failure = StorageFailed(action, path, str(error))
        raise self._failure from error


class Flusher:
    """Knows what of one log is durable, and makes it more; StorageFailed where the disk refuses."""

    def __init__(
        self,
        filesystem: FileSystem,
        folder: Path,
        mark: DurableMarkFile,
        durable: FlushPoint,
        latch: FailureLatch,
    ) -> None:
        """``folder`` is the log's own; ``durable`` is what recovery has made durable."""
        self._filesystem = filesystem
        self._folder = folder
        self._checkpoint = folder / EPOCH_CHECKPOINT
        self._mark = mark
        self._latch = latch
        #: Up to where the log is durable.
        self.flushed = durable.tail
        self._durable_epochs = durable.epochs
        #: Base offset of the newest segment whose name is durable.
        self._newest_name = durable.tail.position.segment

    def unflushed(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """Those of a log's segments that may hold unflushed bytes."""
        first = self.flushed.position.segment
        return tuple(segment for segment in segments if segment.base_offset >= first)

    def flush(self, point: FlushPoint) -> None:
        """Make everything up to ``point`` durable; nothing happens if it is."""
        if point.tail.end_offset <= self.flushed.end_offset:
            return
        self.persist_mark()
        self._make_durable(point)
        self._state_mark()

    def persist_mark(self) -> None:
        """Make the mark of the last flush durable."""
        try:
            self._mark.sync()
        except OSError as error:
            self._latch.fail("sync", self._mark.path, error)

    def roll_back(self, target: Tail) -> None:
        """Lower the mark to ``target``, durably, before the log is truncated to it.

        A mark above the file's end would pass for corruption after a crash.
        """
        if self._mark.mark.position > target.position:
            self._write_mark(target)
            self.persist_mark()
        self.flushed = min(self.flushed, target)

    def forget(self) -> None:
        """Let the mark say nothing, durably, before a snapshot takes the place of the log."""
        self._write_mark(Tail(Offset(0), NOTHING))
        self.persist_mark()
        self.flushed = Tail(Offset(0), NOTHING)
        self._durable_epochs = ()
        self._newest_name = 0

    def write_epochs(self, epochs: tuple[EpochStart, ...]) -> None:
        """Make the checkpoint of a log that has lost its beginning durable; raises OSError."""
        if epochs != self._durable_epochs:
            write_epochs(self._filesystem, self._checkpoint, epochs)
            self._durable_epochs = epochs

    def settle(self, point: FlushPoint) -> None:
        """Make a truncated log durable: checkpoint, content, names, mark."""
        self._newest_name = min(self._newest_name, point.tail.position.segment)
        self._make_durable(point)
        # Also where no segment is new: the names of the dropped ones must be gone for good.
        self._sync_names()
        self._state_mark()
        self.persist_mark()

    def close(self) -> None:
        """Close the mark's file."""
        self._mark.close()

    def _make_durable(self, point: FlushPoint) -> None:
        path = self._checkpoint
        try:
            if point.epochs != self._durable_epochs:
                write_epochs(self._filesystem, path, point.epochs)
                self._durable_epochs = point.epochs
            for segment in point.segments:
                path = segment.path
                segment.file.sync()
        except OSError as error:
            self._latch.fail("sync", path, error)
        if point.tail.position.segment > self._newest_name:
            self._sync_names()
            self._newest_name = point.tail.position.segment
        self.flushed = point.tail

    def _sync_names(self) -> None:
        try:
            self._filesystem.sync_folder(self._folder)
        except OSError as error:
            self._latch.fail("sync", self._folder, error)

    def _state_mark(self) -> None:
        if self._mark.mark.position != self.flushed.position:
            self._write_mark(self.flushed)

    def _write_mark(self, tail: Tail) -> None:
        try:
            self._mark.write(tail.position, tail.end_offset)
        except OSError as error:
            self._latch.fail("write", self._mark.path, error)
