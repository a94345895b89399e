"""Snapshot files: written under another name, synced, checked, renamed; half-written ones ignored.

A file gets a snapshot's name only once its bytes were read back whole, and is reported as written
only once that name is durable: the log below it may be removed then. Rot and foreign files are
found by reading, and told in a sentence.

Source: KIP-630; Kafka's names: ``<end offset>-<epoch>.checkpoint``, ``.part`` behind it while it is
being written, ``.deleted`` once it is to go.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.filesystem import DataFile, FileSystem
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.segment import scan_batches
from splitbrain.nodes.wire.batches import RecordBatch, decode_batch
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.snapshots import SnapshotReader

SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"
_OFFSET_DIGITS: Final = 20
_EPOCH_DIGITS: Final = 10

_Result = TypeVar("_Result")
#: Reads a snapshot's batches to the end; raises WireError where they are no whole snapshot.
Load = Callable[[SnapshotId, Iterator[RecordBatch]], None]


def check_whole(snapshot_id: SnapshotId, batches: Iterator[RecordBatch]) -> None:
    """Read a snapshot and keep nothing of it; raises WireError: it is not whole."""
    deque(SnapshotReader(snapshot_id, batches).records(), maxlen=0)


class FoundSnapshots(NamedTuple):
    """Content of a folder."""

    #: The newest one that is whole; None if there is none.
    newest: SnapshotId | None
    #: One sentence for each newer file that is not.
    problems: tuple[str, ...]


def snapshot_name(snapshot_id: SnapshotId) -> str:
    """Return the file's name."""
    return (
        f"{snapshot_id.end_offset:0{_OFFSET_DIGITS}d}-{snapshot_id.epoch:0{_EPOCH_DIGITS}d}{SUFFIX}"
    )


def snapshot_id_in(name: str) -> SnapshotId | None:
    """Return the snapshot that a file of this name holds; None if it names none."""
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    digits = (len(offset), len(epoch)) == (_OFFSET_DIGITS, _EPOCH_DIGITS)
    if not (name.endswith(SUFFIX) and dash and digits and (offset + epoch).isascii()):
        return None
    if not (offset + epoch).isdigit():
        return None
    return SnapshotId(Offset(int(offset)), Epoch(int(epoch)))


def snapshot_path(folder: Path, snapshot_id: SnapshotId) -> Path:
    """Where the snapshot lies in a data folder."""
    return log_folder(folder) / snapshot_name(snapshot_id)


class SnapshotWriter:
    """Writes one snapshot, whether from the node's own image or from what a leader sends.

    Each call raises StorageFailed where the disk refuses.
    """

    def __init__(self, filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId) -> None:
        """Begins anew where an earlier attempt was left; ``folder`` is the data folder."""
        self._filesystem = filesystem
        #: Id of the snapshot that this becomes.
        self.snapshot_id = snapshot_id
        self._path = snapshot_path(folder, snapshot_id)
        self._part = self._path.with_name(self._path.name.removesuffix(SUFFIX) + PART_SUFFIX)
        #: Bytes so far; where the next ones of a fetched snapshot belong.
        self.size_bytes = 0
        try:
            self._file: DataFile = filesystem.open(self._part, create=True)
        except OSError as error:
            raise StorageFailed("write", self._part, str(error)) from error
        self._tried(lambda: self._file.truncate(0))

    def append(self, data: bytes) -> None:
        """Add bytes; they need not end with a batch."""
        self._tried(lambda: self._file.write_at(self.size_bytes, data))
        self.size_bytes += len(data)

    def freeze(self) -> None:
        """Make it a snapshot; blocks until it is durable, name and all.

        Raises CorruptStorageError: it is not whole; it got no name.
        """
        self.sync()
        try:
            self._tried(lambda: _read_through(self._file, self.snapshot_id, check_whole))
        finally:
            self._file.close()
        self.publish()

    def sync(self) -> None:
        """The first half of ``freeze``, for who reads it back in pieces: the bytes are durable."""
        self._tried(self._file.sync)

    def read_back(self) -> Iterator[RecordBatch]:
        """Yield the written batches, each fully checked; the reader checks the rest.

        Raises CorruptStorageError: at the first batch that is cut short or wrong.
        """
        batches = _batches(self._file)
        while (batch := self._tried(lambda: next(batches, None))) is not None:
            yield batch

    def publish(self) -> None:
        """The last half of ``freeze``: it gets its name; to be called once it was found whole."""
        self._file.close()
        self._tried(lambda: self._filesystem.rename(self._part, self._path))
        self._tried(lambda: self._filesystem.sync_folder(self._path.parent))

    def abandon(self) -> None:
        """Give it up; what was written goes."""
        self._file.close()
        self._tried(lambda: self._filesystem.remove(self._part))

    def _tried(self, action: Callable[[], _Result]) -> _Result:
        try:
            return action()
        except OSError as error:
            self._file.close()
            raise StorageFailed("write", self._part, str(error)) from error


def write_snapshot(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId, batches: Iterable[bytes]
) -> int:
    """Write a whole snapshot; its size in bytes once it is durable.

    Raises:
        CorruptStorageError: the batches are no whole snapshot of this name.
        StorageFailed: the disk refused.
    """
    writer = SnapshotWriter(filesystem, folder, snapshot_id)
    for batch in batches:
        writer.append(batch)
    writer.freeze()
    return writer.size_bytes


def read_snapshot(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId
) -> Iterator[RecordBatch]:
    """Yield the snapshot's batches, header and footer among them, each fully checked.

    Raises:
        CorruptStorageError: at the first batch that is cut short or wrong.
        FileNotFoundError: there is no such snapshot.
    """
    file = filesystem.open(snapshot_path(folder, snapshot_id))
    try:
        yield from _batches(file)
    finally:
        file.close()


def read_chunk(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId, position: int, max_bytes: int
) -> tuple[bytes, int]:
    """Up to ``max_bytes`` from a position in the file, and the file's size, for a peer's fetch.

    Raises FileNotFoundError: there is no such snapshot.
    """
    file = filesystem.open(snapshot_path(folder, snapshot_id))
    try:
        return file.read_at(position, max_bytes), file.size()
    finally:
        file.close()


def list_snapshots(filesystem: FileSystem, folder: Path) -> tuple[SnapshotId, ...]:
    """Snapshots in a data folder by their names, the oldest first; none was read."""
    names = filesystem.list(log_folder(folder))
    found = [snapshot_id for name in names if (snapshot_id := snapshot_id_in(name)) is not None]
    # Kafka's bootstrap snapshot ends at 0: it stands for nothing of the log.
    return tuple(sorted(snapshot_id for snapshot_id in found if snapshot_id.end_offset > 0))


def find_snapshots(
    filesystem: FileSystem, folder: Path, load: Load = check_whole
) -> FoundSnapshots:
    """Return the newest snapshot that is whole, and what is wrong with newer ones.

    ``load`` is given the id and the batches of one after the other, newest first, until one is
    whole: it reads to the end, and what it makes of that one stands. Raises OSError: the disk
    refused.
    """
    problems: list[str] = []
    for snapshot_id in reversed(list_snapshots(filesystem, folder)):
        file = filesystem.open(snapshot_path(folder, snapshot_id))
        try:
            _read_through(file, snapshot_id, load)
        except CorruptStorageError as error:
            problems.append(f"snapshot {file.path.name} is ignored: {error.problem}")
        else:
            return FoundSnapshots(snapshot_id, tuple(problems))
        finally:
            file.close()
    return FoundSnapshots(None, tuple(problems))


def settle_snapshots(filesystem: FileSystem, folder: Path) -> tuple[str, ...]:
    """At a start: remove what earlier lives left unfinished, and make the names durable.

    Returns the names that were removed. A name that is found may be one that only the page cache
    knows: nothing may rely on it before this.

    Raises:
        OSError: the disk refused.
    """
    log = log_folder(folder)
    names = [name for name in filesystem.list(log) if name.endswith((PART_SUFFIX, DELETED_SUFFIX))]
    for name in names:
        filesystem.remove(log / name)
    if names or list_snapshots(filesystem, folder):
        filesystem.sync_folder(log)
    return tuple(names)


def remove_snapshots(filesystem: FileSystem, folder: Path, before: SnapshotId) -> None:
    """Remove all that are older than this one, which is durable; their names go for good first.

    Raises OSError: the disk refused; some may be left, to be removed at the next start.
    """
    log = log_folder(folder)
    marked: list[Path] = []
    for snapshot_id in list_snapshots(filesystem, folder):
        if snapshot_id < before:
            path = snapshot_path(folder, snapshot_id)
            marked.append(path.with_name(path.name.removesuffix(SUFFIX) + DELETED_SUFFIX))
            filesystem.rename(path, marked[-1])
    if marked:
        filesystem.sync_folder(log)
    for path in marked:
        filesystem.remove(path)


def _read_through(file: DataFile, snapshot_id: SnapshotId, load: Load) -> None:
    try:
        load(snapshot_id, _batches(file))
    except WireError as error:
        raise CorruptStorageError(file.path, str(error)) from error


def _batches(file: DataFile) -> Iterator[RecordBatch]:
    end = 0
    try:
        for position, header in scan_batches(file, file.size()):
            yield decode_batch(file.read_at(position, header.size_bytes))
            end = position + header.size_bytes
    except WireError as error:
        raise CorruptStorageError(file.path, str(error), position=end) from error
