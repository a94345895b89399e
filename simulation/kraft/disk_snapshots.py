"""The snapshots that a simulated disk holds durably, read by the wire's rules alone.

Must never change a disk, nor read it in a way that an armed fault could strike.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from splitbrain.nodes.quorum.errors import UnreadableRecordError
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, log_folder
from splitbrain.nodes.storage.snapshots import snapshot_id_in, snapshot_name
from splitbrain.nodes.wire.batches import RecordBatch, decode_batch, peek_batch
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.snapshots import SnapshotReader
from splitbrain.simulation.disk.file_system import MemoryFileSystem


class SnapshotStates:
    """States that durable snapshots tell, each distinct content read once: disks have the same."""

    def __init__(self, make_machine: Callable[[], StateMachine]) -> None:
        """``make_machine``: of the machine that snapshots tell the state of."""
        self._make_machine = make_machine
        self._known: dict[tuple[SnapshotId, bytes], StateMachine] = {}

    def state_in(
        self, disk: MemoryFileSystem, folder: Path, snapshot_id: SnapshotId
    ) -> StateMachine:
        """Return the state that a snapshot of a data folder tells; it must not be changed.

        Raises:
            WireError: there is none, or it is not whole.
        """
        content = disk.durable_content(log_folder(folder) / snapshot_name(snapshot_id))
        if content is None:
            raise WireError("no durable file has its name")
        known = self._known.get((snapshot_id, content))
        if known is None:
            known = self._known[snapshot_id, content] = self._read(snapshot_id, content)
        return known

    def newest_whole(self, disk: MemoryFileSystem, folder: Path) -> SnapshotId | None:
        """Return the snapshot that a life would begin with, whatever its log is."""
        for snapshot_id in reversed(_named(disk, folder)):
            try:
                self.state_in(disk, folder, snapshot_id)
            except WireError:
                continue
            return snapshot_id
        return None

    def _read(self, snapshot_id: SnapshotId, content: bytes) -> StateMachine:
        machine = self._make_machine()
        loading = machine.begin_loading()
        try:
            for record in SnapshotReader(snapshot_id, _batches(content)).records():
                loading.add(record.value or b"")
            loading.install(snapshot_id.end_offset)
        except UnreadableRecordError as error:
            raise WireError(str(error)) from error
        return machine


def log_start(disk: MemoryFileSystem, folder: Path, newest: SnapshotId, base_offset: int) -> int:
    """Where a log whose first segment begins at ``base_offset`` starts for the node."""
    floor = max(base_offset, _first_epoch_start(disk, folder))
    ends = [each.end_offset for each in _named(disk, folder) if floor <= each.end_offset]
    return min([*ends, newest.end_offset])


def _first_epoch_start(disk: MemoryFileSystem, folder: Path) -> int:
    """Of the epoch checkpoint; 0 where it has none or cannot be read: no life begins with that."""
    content = disk.durable_content(log_folder(folder) / EPOCH_CHECKPOINT) or b""
    try:
        first = content.decode("ascii").splitlines()[2]
        return int(first.split()[1])
    except (ValueError, IndexError):
        return 0


def _named(disk: MemoryFileSystem, folder: Path) -> list[SnapshotId]:
    log = log_folder(folder)
    paths = [Path(text) for text, _ in disk.snapshot().files if ".checkpoint" in text]
    found = [snapshot_id_in(path.name) for path in paths if path.parent == log]
    return sorted(each for each in found if each is not None and each.end_offset > 0)


def _batches(content: bytes) -> Iterator[RecordBatch]:
    position = 0
    while position < len(content):
        yield decode_batch(content, position)
        position += peek_batch(content, position)[2]
