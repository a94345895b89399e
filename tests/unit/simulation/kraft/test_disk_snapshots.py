"""Where a log starts is told from the bytes of its disk, rotten ones too."""

from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import EpochStart, SnapshotId
from splitbrain.nodes.storage.epoch_checkpoint import encode_epochs
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, log_folder
from splitbrain.nodes.storage.snapshots import snapshot_name
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.disk_snapshots import log_start

FOLDER = Path("/n1")
OLD, NEW = SnapshotId(Offset(4), Epoch(1)), SnapshotId(Offset(9), Epoch(2))
CHECKPOINT = encode_epochs((EpochStart(Epoch(1), Offset(5)), EpochStart(Epoch(2), Offset(7))))


def disk_with(checkpoint: bytes) -> MemoryFileSystem:
    disk = MemoryFileSystem(journals=False)
    log = log_folder(FOLDER)
    disk.make_folder(log)
    files = {EPOCH_CHECKPOINT: checkpoint, snapshot_name(OLD): b"old", snapshot_name(NEW): b"new"}
    for name, content in files.items():
        file = disk.open(log / name, create=True)
        file.write_at(0, content)
        file.sync()
    disk.sync_folder(log)
    return disk


def test_a_log_starts_at_the_oldest_snapshot_that_its_epochs_reach_down_to() -> None:
    assert log_start(disk_with(encode_epochs(())), FOLDER, NEW, 0) == 4
    assert log_start(disk_with(encode_epochs(())), FOLDER, NEW, 5) == 9
    assert log_start(disk_with(CHECKPOINT), FOLDER, NEW, 0) == 9


@pytest.mark.parametrize(
    "rotten",
    [
        CHECKPOINT.replace(b"5", b"5\x02"),
        CHECKPOINT.replace(b"5", b"\xb5"),
        CHECKPOINT.replace(b"1 5", b"1\x005"),
        CHECKPOINT[:2],
        b"",
    ],
)
def test_a_checkpoint_that_rotted_says_nothing_and_stops_no_run(rotten: bytes) -> None:
    assert log_start(disk_with(rotten), FOLDER, NEW, 0) == 4
