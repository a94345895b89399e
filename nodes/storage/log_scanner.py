"""Walks the segments of a log and holds each batch to what is known of it.

A batch is held to the one before it, to its checksum, and from the log's start on to the
leader-epoch checkpoint. Below the start, of which the checkpoint tells nothing, the last batch is
held to the snapshot that the log was cut at. ``recovery`` decides what a damage means.
"""

from pathlib import Path

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.quorum.persistent import EpochStart, SnapshotId
from splitbrain.nodes.storage.durable_mark import LogPosition
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.segment import Segment, scan_batches
from splitbrain.nodes.wire.errors import CorruptBatchError


class Damage(msgspec.Struct, frozen=True):
    """The first place where the log is not intact; all before it is."""

    path: Path
    #: Byte position in the file.
    position: int
    #: Offset that the batch there should have.
    offset: Offset
    problem: str


class LogScanner:
    """Walks the segments and keeps what was intact so far."""

    def __init__(
        self,
        filesystem: FileSystem,
        checkpoint: tuple[EpochStart, ...],
        base_offset: Offset,
        start_offset: Offset,
        cut_at: SnapshotId | None,
    ) -> None:
        """No segment is scanned yet.

        ``base_offset`` is the first segment's; ``start_offset`` the log's, where ``checkpoint``
        begins; ``cut_at`` the snapshot that the log agreed with when it was cut there, if any.
        """
        self._filesystem = filesystem
        self._checkpoint = checkpoint
        #: Next entry of the checkpoint that no batch has reached.
        self._next_entry = 0
        self._epoch = NO_EPOCH
        self._base_offset = base_offset
        self._start_offset = start_offset
        self._cut_at = cut_at
        #: Where the intact batches change their epoch, those below the start included.
        self._changes: list[EpochStart] = []
        self.segments: list[Segment] = []
        self.epochs: list[EpochStart] = []
        self.end_offset = base_offset
        self.damage: Damage | None = None
        self.last_path = Path()

    @property
    def end_position(self) -> LogPosition:
        """Where the intact bytes end."""
        if not self.segments:
            return LogPosition(0, 0)
        last = self.segments[-1]
        return LogPosition(last.base_offset, last.size_bytes)

    def scan_segment(self, base_offset: Offset, path: Path) -> bool:
        """Check one file; False if nothing in it belongs to the log."""
        self.last_path = path
        if base_offset != self.end_offset:
            problem = f"the segment follows offset {self.end_offset}, there is a gap or an overlap"
            self.damage = Damage(path, 0, self.end_offset, problem)
            return False
        file = self._filesystem.open(path)
        segment = Segment(base_offset, file)
        self.segments.append(segment)
        try:
            for _, header in scan_batches(file, file.size()):
                problem = self._objection(header)
                if problem is not None:
                    self._note_damage(segment, problem)
                    break
                segment.note(header)
                if not self._changes or header.epoch != self._changes[-1].epoch:
                    self._changes.append(EpochStart(header.epoch, header.base_offset))
                self.end_offset = segment.end_offset
        except CorruptBatchError as error:
            self._note_damage(segment, error.problem)
        return True

    def agrees_with(self, snapshot_id: SnapshotId) -> bool:
        """Whether the log goes on where the snapshot ends, and is the one that it stands for."""
        end = snapshot_id.end_offset
        if not self._base_offset <= end <= self.end_offset:
            return False
        before = [change.epoch for change in self._changes if change.start_offset < end]
        return not before or before[-1] == snapshot_id.epoch

    def close(self) -> None:
        """Close all files."""
        for segment in self.segments:
            segment.close()

    def _note_damage(self, segment: Segment, problem: str) -> None:
        self.damage = Damage(segment.path, segment.size_bytes, self.end_offset, problem)

    def _objection(self, header: BatchHeader) -> str | None:
        if header.base_offset != self.end_offset:
            return f"offset {header.base_offset} follows {self.end_offset - 1}"
        if header.epoch < self._epoch:
            return f"epoch {header.epoch} follows {self._epoch}"
        if header.base_offset < self._start_offset:
            self._epoch = header.epoch
            return self._objection_below(header)
        opens_epoch = header.epoch > self._epoch or not self.epochs
        entry = self._entry_below(header.last_offset + 1)
        if opens_epoch:
            wanted = EpochStart(epoch=header.epoch, start_offset=header.base_offset)
            if entry != wanted:
                return f"epoch {header.epoch} starts here, the leader-epoch checkpoint disagrees"
            self._next_entry += 1
            if self._entry_below(header.last_offset + 1) is not None:
                return "the leader-epoch checkpoint starts another epoch within the batch"
            self._epoch = Epoch(header.epoch)
            self.epochs.append(wanted)
        elif entry is not None:
            return f"epoch {header.epoch} goes on, the checkpoint starts epoch {entry.epoch}"
        return None

    def _objection_below(self, header: BatchHeader) -> str | None:
        """Hold a batch below the start to what was known when the log was cut."""
        if header.last_offset >= self._start_offset:
            return "the log's start lies within a batch"
        cut_at, is_last = self._cut_at, header.last_offset + 1 == self._start_offset
        if cut_at is not None and is_last and header.epoch != cut_at.epoch:
            return (
                f"epoch {header.epoch} ends here, but the log was cut where the snapshot of epoch "
                f"{cut_at.epoch} ends"
            )
        return None

    def _entry_below(self, end_offset: int) -> EpochStart | None:
        """Return the next entry of the checkpoint, if it starts below ``end_offset``."""
        if self._next_entry >= len(self._checkpoint):
            return None
        entry = self._checkpoint[self._next_entry]
        return entry if entry.start_offset < end_offset else None
