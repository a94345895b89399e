"""Quorum state, leader-epoch checkpoint and durable-length mark: formats, crashes, damage."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import EpochStart, QuorumState
from splitbrain.nodes.storage.durable_mark import (
    DurableMark,
    LogPosition,
    open_mark,
    read_mark,
    write_new_mark,
)
from splitbrain.nodes.storage.epoch_checkpoint import encode_epochs, read_epochs, write_epochs
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.unit.nodes.storage.disks import Disk

ROOT = Path("/")
VOTED = QuorumState(Epoch(2), None, NodeId(1), DirectoryId("27c6803dc7cb42dd9baacd494ffacc81"))
FOLLOWING = QuorumState(Epoch(3), NodeId(2), None, None)

states = st.builds(
    lambda epoch, leader, voted: QuorumState(
        Epoch(epoch), leader, voted and NodeId(voted[0]), voted and DirectoryId(voted[1].hex())
    ),
    st.integers(0, 2**31 - 1),
    st.none() | st.integers(0, 2**31 - 1).map(NodeId),
    st.none() | st.tuples(st.integers(1, 2**31 - 1), st.binary(min_size=16, max_size=16)),
)


def put(memory: MemoryFileSystem, path: Path, content: bytes) -> None:
    file = memory.open(path, create=True)
    file.truncate(0)
    file.write_at(0, content)


def test_quorum_state_is_absent_then_the_last_one_written(
    filesystem: FileSystem, folder: Path
) -> None:
    file = QuorumStateFile(filesystem, folder)
    assert file.read() is None
    file.write(VOTED)
    file.write(FOLLOWING)
    assert QuorumStateFile(filesystem, folder).read() == FOLLOWING


def test_a_vote_found_after_a_kill_is_durable_once_the_log_is_open(disk: Disk) -> None:
    # Killed between the rename and the sync of its folder: the next life reads the vote, may act on
    # it without writing it again, and then the power goes.
    file = QuorumStateFile(disk, disk.folder)
    disk.fault = lambda action, _: errno.EIO if action == "sync-folder" else None
    with pytest.raises(StorageFailed):
        file.write(VOTED)
    disk.fault = None
    disk.kill()
    assert QuorumStateFile(disk, disk.folder).read() == VOTED
    LogStore.open(disk, disk.folder)
    disk.crash()
    assert QuorumStateFile(disk, disk.folder).read() == VOTED


def test_quorum_state_is_kafkas_line(disk: Disk) -> None:
    file = QuorumStateFile(disk, disk.folder)
    file.write(VOTED)
    assert file.path.name == "quorum-state"
    # The example in the documentation of Kafka's FileQuorumStateStore.
    assert disk.read(file.path) == (
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
        b'"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
    )


def test_quorum_state_of_version_0_is_read(disk: Disk) -> None:
    file = QuorumStateFile(disk, disk.folder)
    disk.overwrite(
        file.path,
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":3,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}',
    )
    assert file.read() == QuorumState(Epoch(2), NodeId(1), NodeId(3), NO_DIRECTORY)


@given(states)
def test_quorum_states_come_back(state: QuorumState) -> None:
    memory = MemoryFileSystem()
    memory.make_folder(Path("/d/__cluster_metadata-0"))
    file = QuorumStateFile(memory, Path("/d"))
    file.write(state)
    assert file.read() == state


def test_power_loss_within_a_write_leaves_the_old_or_the_new_state(disk: Disk) -> None:
    QuorumStateFile(disk, disk.folder).write(VOTED)
    for action in ("truncate", "write", "sync", "rename", "sync-folder"):
        disk.fault = lambda done, _, failing=action: errno.EIO if done == failing else None
        file = QuorumStateFile(disk, disk.folder)
        with pytest.raises(StorageFailed):
            file.write(FOLLOWING)
        disk.fault = None
        with pytest.raises(StorageFailed):  # nothing is retried after a failure
            file.write(FOLLOWING)
        disk.crash()
        assert QuorumStateFile(disk, disk.folder).read() == VOTED


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"data_version":2}',
        b'{"leaderId":-1,"leaderEpoch":-2,"votedId":1,"data_version":1}',
        b'{"leaderId":-5,"leaderEpoch":2,"votedId":1,"data_version":1}',
        b'{"leaderId":-1,"leaderEpoch":2147483648,"votedId":1,"data_version":1}',
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":2147483648,"data_version":1}',
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"x","data_version":1}',
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"data_versi',
    ],
)
def test_damaged_quorum_state_is_corrupt_and_not_a_forgotten_vote(
    disk: Disk, content: bytes
) -> None:
    file = QuorumStateFile(disk, disk.folder)
    disk.overwrite(file.path, content)
    with pytest.raises(CorruptStorageError, match="quorum-state"):
        file.read()


EPOCHS = (EpochStart(Epoch(1), Offset(0)), EpochStart(Epoch(4), Offset(17)))


def test_epoch_checkpoint_has_kafkas_lines() -> None:
    assert encode_epochs(EPOCHS) == b"0\n2\n1 0\n4 17\n"
    memory = MemoryFileSystem()
    write_epochs(memory, ROOT / "c", EPOCHS)
    memory.crash()
    assert read_epochs(memory, ROOT / "c") == EPOCHS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not an epoch checkpoint"),
        (b"0\n", "not an epoch checkpoint"),
        (b"1\n0\n", "version is 1"),
        (b"0\n2\n1 0\n", "announces 2 entries and has 1"),
        (b"0\n1\n1 0 3\n", "not an epoch checkpoint"),
        (b"0\n1\n1 -1\n", "not an epoch checkpoint"),
        (b"0\n2\n4 0\n1 17\n", "epoch 1 follows epoch 4"),
        (b"0\n2\n1 17\n4 17\n", "epoch 4 follows epoch 1"),
        (b"\xff\n", "not an epoch checkpoint"),
    ],
)
def test_damaged_epoch_checkpoint_is_corrupt(content: bytes, problem: str) -> None:
    memory = MemoryFileSystem()
    put(memory, ROOT / "c", content)
    with pytest.raises(CorruptStorageError, match=problem):
        read_epochs(memory, ROOT / "c")


def test_missing_epoch_checkpoint_and_mark_are_corrupt() -> None:
    memory = MemoryFileSystem()
    with pytest.raises(CorruptStorageError, match="missing"):
        read_epochs(memory, ROOT / "c")
    with pytest.raises(CorruptStorageError, match="missing"):
        read_mark(memory, ROOT / "m")


def _mark(memory: MemoryFileSystem) -> Path:
    path = ROOT / "m"
    write_new_mark(memory, path, DurableMark(0, LogPosition(0, 0), 0))
    memory.sync_folder(ROOT)
    return path


def test_newest_mark_holds_upwards_and_downwards() -> None:
    memory = MemoryFileSystem()
    path = _mark(memory)
    file = open_mark(memory, path)
    for position, end_offset in ((100, 3), (200, 7), (50, 1)):
        file.write(LogPosition(0, position), end_offset)
    file.sync()
    memory.crash()
    assert read_mark(memory, path) == DurableMark(3, LogPosition(0, 50), 1)


def test_unsynced_mark_may_be_lost_and_the_one_before_stays() -> None:
    memory = MemoryFileSystem()
    path = _mark(memory)
    file = open_mark(memory, path)
    file.write(LogPosition(0, 100), 3)
    file.sync()
    file.write(LogPosition(0, 200), 7)
    memory.crash()
    assert read_mark(memory, path).end_offset == 3


def test_one_damaged_slot_leaves_the_other_and_two_are_corrupt() -> None:
    memory = MemoryFileSystem()
    path = _mark(memory)
    file = open_mark(memory, path)
    file.write(LogPosition(0, 100), 3)
    memory.rot(path, 512 + 20)
    assert read_mark(memory, path).end_offset == 0
    memory.rot(path, 20)
    with pytest.raises(CorruptStorageError, match="neither of its slots"):
        read_mark(memory, path)


def test_mark_is_synced_once_for_each_statement() -> None:
    memory = MemoryFileSystem()
    file = open_mark(memory, _mark(memory))
    memory.journal.clear()
    file.sync()
    file.write(LogPosition(0, 100), 3)
    file.sync()
    file.sync()
    assert [action for action, _ in memory.journal] == ["write", "sync"]
