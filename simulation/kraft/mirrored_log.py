"""Content of one machine's log as decoded records, with the place of their bytes on its disk.

Built from the bytes that the disk holds durably when a life begins, and kept up from the effects
that were performed since; so what storage gets wrong shows at the next start at the latest. Whether
a record is durable is asked of the disk, never of the node. Of a log that has lost its beginning to
a snapshot the committed records stand in its place: that the snapshot tells the same is an
invariant of its own, and that it is durable is asked of the disk as of any record.

Must never change a disk, nor read it in a way that an armed fault could strike.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.storage.layout import log_folder, segment_base_offset, segment_name
from splitbrain.nodes.storage.snapshots import snapshot_name
from splitbrain.nodes.wire.batches import HEADER_BYTES, RecordBatch, decode_batch, peek_batch
from splitbrain.nodes.wire.errors import WireError
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.disk_snapshots import SnapshotStates, log_start

#: Content of a batch whose bytes are not intact.
_DAMAGED: Final = None


class Entry(NamedTuple):
    """One record."""

    epoch: int
    #: None: raft's own record.
    payload: bytes | None


class Place(NamedTuple):
    """Where one batch lies."""

    base_offset: int
    path: Path
    start: int
    #: One past its last byte.
    end: int


class Codec:
    """Decodes batches, each distinct one once: followers and restarts meet the same bytes."""

    def __init__(self, make_machine: Callable[[], StateMachine] = RegisterMachine) -> None:
        """``make_machine``: of the machine that snapshots tell the state of."""
        self.snapshots = SnapshotStates(make_machine)
        self._known: dict[bytes, tuple[int, list[Entry]] | None] = {}

    def decode(self, raw: bytes) -> tuple[int, list[Entry]] | None:
        """Base offset and records of exactly one batch; None: it is not intact."""
        if raw in self._known:
            return self._known[raw]
        try:
            batch = decode_batch(raw)
            decoded = (int(batch.base_offset), _entries(batch))
        except WireError:
            decoded = _DAMAGED
        self._known[raw] = decoded
        return decoded


class MirroredLog:
    """Records from offset 0 on, and where they lie."""

    def __init__(self, folder: Path, codec: Codec) -> None:
        """An empty log in a node's data folder."""
        #: Of the segments.
        self.folder = log_folder(folder)
        self._codec = codec
        self.entries: list[Entry] = []
        #: The newest snapshot when the log last lost its beginning; what lies below is its.
        self.snapshot_id: SnapshotId | None = None
        self._places: list[Place] = []
        self._bases: list[int] = []
        self._first_offset = 0
        #: So many records from the start are known to equal the committed ones.
        self.agreed = 0
        #: Where the last batch ends.
        self._tail: tuple[Path | None, int] = (None, 0)
        self._paths: dict[int, Path] = {}

    def append(self, entries: list[Entry], segment: int, end: int) -> None:
        """One batch was appended, its bytes end there."""
        path, start = self._start_of_append(segment)
        self._note(entries, path, start, end)

    def append_raw(self, raw: bytes, segment: int, end: int) -> None:
        """Whole batches were appended byte for byte, the last ends there."""
        path, _ = self._start_of_append(segment)
        self._walk(raw, path, end - len(raw))

    def truncate(self, end_offset: int) -> None:
        """Note that the records from here on are gone."""
        del self.entries[end_offset:]
        self.agreed = min(self.agreed, end_offset)
        while self._places and self._places[-1].base_offset >= end_offset:
            dropped = self._places.pop()
            self._bases.pop()
            self._tail = (dropped.path, dropped.start)

    def upto(self, end_offset: int) -> "MirroredLog":
        """The records below this offset, where a batch ends, in the places where they lie."""
        log = MirroredLog(self.folder.parent, self._codec)
        log.entries, log.agreed = self.entries[:], self.agreed
        log.snapshot_id = self.snapshot_id
        log._places, log._bases = self._places[:], self._bases[:]
        log._tail, log._paths = self._tail, dict(self._paths)
        log.truncate(end_offset)
        return log

    def is_durable(self, disk: MemoryFileSystem, first: int, end: int) -> bool:
        """Whether the disk keeps the records [first, end) whatever happens from now on."""
        if first < self.first_offset and first < end:
            if not self._has_snapshot(disk):
                return False
            first = self.first_offset
        if first >= end:
            return True
        index = max(bisect_right(self._bases, first) - 1, 0)
        while index < len(self._places):
            place = self._places[index]
            if place.base_offset >= end:
                break
            stop = place.end
            while (
                index + 1 < len(self._places)
                and self._places[index + 1].path is place.path
                and self._places[index + 1].base_offset < end
            ):
                index += 1
                stop = self._places[index].end
            if not disk.durable_equals(place.path, place.start, stop):
                return False
            index += 1
        return True

    @property
    def first_offset(self) -> int:
        """Where the records begin that lie on the disk; what is below is a snapshot's."""
        return 0 if self.snapshot_id is None else self._first_offset

    @property
    def first_batch_offset(self) -> int:
        """Of the first batch on the disk, which may lie below the log's start; its end if none."""
        return self._bases[0] if self._bases else len(self.entries)

    def batch_ends(self, first: int, end: int) -> list[int]:
        """Where the batches end that lie between these two offsets, both of them such ends."""
        bases = self._bases
        return [*bases[bisect_right(bases, first) : bisect_left(bases, end)], end]

    def cut_start(self, snapshot_id: SnapshotId, newest: SnapshotId) -> None:
        """The log starts where one snapshot ends, and all below the newest is in that one too."""
        self.snapshot_id = newest
        self._first_offset = snapshot_id.end_offset
        ends = [*self._bases[1:], len(self.entries)]
        kept = next((n for n, end in enumerate(ends) if end > snapshot_id.end_offset), None)
        path = self._tail[0] if kept is None else self._places[kept].path
        while self._places and self._places[0].path != path:
            self._places.pop(0)
            self._bases.pop(0)

    def replace(self, snapshot_id: SnapshotId, committed: Sequence[Entry]) -> None:
        """Note that the log is empty and starts where the snapshot ends."""
        end = snapshot_id.end_offset
        self.entries = list(committed[:end])
        self.agreed = 0
        self._places.clear()
        self._bases.clear()
        self._tail = (None, 0)
        self.snapshot_id, self._first_offset = snapshot_id, end

    def _has_snapshot(self, disk: MemoryFileSystem) -> bool:
        assert self.snapshot_id is not None
        path = self.folder / snapshot_name(self.snapshot_id)
        content = disk.durable_content(path)
        return content is not None and disk.durable_equals(path, 0, len(content))

    def position_of(self, offset: int) -> int:
        """How many bytes of the log lie before the batch that holds or follows ``offset``."""
        return sum(place.end - place.start for place in self._places if place.base_offset < offset)

    def read_disk(self, disk: MemoryFileSystem, committed: Sequence[Entry]) -> None:
        """Take what the disk holds durably: intact batches, up to the first gap or damage.

        And a snapshot for what is below; for all, where the log does not go on from it.
        """
        segments = segments_of(disk, self.folder)
        first = segments[0][0] if segments else 0
        newest = self._codec.snapshots.newest_whole(disk, self.folder.parent)
        if newest is not None:
            self.snapshot_id, self._first_offset = newest, first
            self.entries = list(committed[:first])
        for base_offset, path, content in segments:
            self._paths[base_offset] = path
            if base_offset != len(self.entries) or not self._walk(content, path, 0):
                break
        if newest is not None and not self._reaches(newest, first):
            self.replace(newest, committed)
        elif newest is not None:
            # Nobody reads what the disk has below the start, nor could its epochs be checked.
            start = log_start(disk, self.folder.parent, newest, first)
            self.entries[:start] = committed[:start]

    def _reaches(self, snapshot_id: SnapshotId, first: int) -> bool:
        end, entries = snapshot_id.end_offset, self.entries
        if not first <= end <= len(entries):
            return False
        return end == first or entries[end - 1].epoch == snapshot_id.epoch

    def _start_of_append(self, segment: int) -> tuple[Path, int]:
        path = self._paths.get(segment)
        if path is None:
            path = self._paths[segment] = self.folder / segment_name(segment)
        tail_path, tail = self._tail
        return path, tail if tail_path is path else 0

    def _walk(self, raw: bytes, path: Path, start: int) -> bool:
        position = 0
        while len(raw) - position >= HEADER_BYTES:
            size_bytes = peek_batch(raw, position)[2]
            if size_bytes < HEADER_BYTES:
                return False
            decoded = self._codec.decode(raw[position : position + size_bytes])
            if decoded is None or decoded[0] != len(self.entries):
                return False
            end = position + size_bytes
            self._note(decoded[1], path, start + position, start + end)
            position = end
        return position == len(raw)

    def _note(self, entries: list[Entry], path: Path, start: int, end: int) -> None:
        base_offset = len(self.entries)
        self.entries += entries
        self._places.append(Place(base_offset, path, start, end))
        self._bases.append(base_offset)
        self._tail = (path, end)


def segments_of(disk: MemoryFileSystem, folder: Path) -> list[tuple[int, Path, bytes]]:
    """Base offset, path and durable bytes of every segment file of a log folder, in order."""
    found: list[tuple[int, Path, bytes]] = []
    for text, content in disk.snapshot().files:
        path = Path(text)
        base_offset = segment_base_offset(path.name)
        if base_offset is not None and path.parent == folder:
            found.append((base_offset, path, content))
    return found


def _entries(batch: RecordBatch) -> list[Entry]:
    epoch = int(batch.epoch)
    if batch.is_control:
        return [Entry(epoch, None) for _ in batch.records]
    return [Entry(epoch, record.value or b"") for record in batch.records]
