"""A stopped controller of Kafka leaves a folder that becomes one of ours; no other folder does."""

from pathlib import Path

import pytest

from nodes.quorum.identifiers import NO_DIRECTORY, Epoch, Offset
from nodes.quorum.persistent import SnapshotId, Voter
from nodes.storage.epoch_checkpoint import write_epochs
from nodes.storage.errors import AlreadyFormattedError, CorruptStorageError, NotFormattedError
from nodes.storage.filesystem import FileSystem
from nodes.storage.identity import StorageIdentity, adopt_storage, load_identity
from nodes.storage.layout import EPOCH_CHECKPOINT, log_folder, segment_name
from nodes.storage.log import LogStore
from nodes.storage.memory import MemoryFileSystem
from nodes.storage.snapshots import snapshot_path, write_snapshot
from nodes.wire.snapshots import encode_snapshot

_SNAPSHOT = SnapshotId(Offset(4), Epoch(2))


@pytest.fixture
def kafkas(memory: MemoryFileSystem, memory_folder: Path) -> Path:
    """What is in Kafka's folder too: identity, log, checkpoint and a snapshot."""
    log, _ = LogStore.open(memory, memory_folder)
    for number, epoch in enumerate((1, 2, 2)):
        payloads = [(None, b"%d" % (2 * number + part)) for part in range(2)]
        log.append_records(Offset(2 * number), Epoch(epoch), 9, payloads)
    log.flush()
    log.close()
    write_snapshot(memory, memory_folder, _SNAPSHOT, encode_snapshot(_SNAPSHOT, 5, [b"state"]))
    memory.remove(memory_folder / "voters.json")
    memory.remove(log_folder(memory_folder) / "durable-length")
    return memory_folder


def voters_of(identity: StorageIdentity) -> tuple[Voter, ...]:
    """As Kafka's static voters are: by their node ids alone."""
    return tuple(
        Voter(voter.node_id, NO_DIRECTORY, voter.host, voter.port) for voter in identity.voters
    )


def test_kafkas_folder_is_none_of_ours_before(memory: MemoryFileSystem, kafkas: Path) -> None:
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(memory, kafkas)
    with pytest.raises(CorruptStorageError, match="durable-length"):
        LogStore.open(memory, kafkas)


def test_an_adopted_folder_has_its_identity_and_its_log(
    memory: MemoryFileSystem, kafkas: Path, identity: StorageIdentity
) -> None:
    adopt_storage(memory, kafkas, voters_of(identity))
    found = load_identity(memory, kafkas, cluster_id="test-cluster_1", node_id=identity.node_id)
    assert found.directory_id == identity.directory_id
    assert found.voters == voters_of(identity)
    log, shape = LogStore.open(memory, kafkas)
    assert (shape.start_offset, shape.end_offset) == (4, 6)
    assert shape.snapshots == (_SNAPSHOT,)
    log.close()


def test_a_folder_is_adopted_once(
    memory: MemoryFileSystem, kafkas: Path, identity: StorageIdentity
) -> None:
    adopt_storage(memory, kafkas, voters_of(identity))
    with pytest.raises(AlreadyFormattedError):
        adopt_storage(memory, kafkas, voters_of(identity))


def test_nobodys_folder_and_one_without_a_log_are_not_adopted(
    filesystem: FileSystem, parent: Path, identity: StorageIdentity
) -> None:
    filesystem.make_folder(parent / "data")
    with pytest.raises(NotFormattedError, match=r"meta\.properties"):
        adopt_storage(filesystem, parent / "data", identity.voters)
    properties = filesystem.open(parent / "data" / "meta.properties", create=True)
    properties.write_at(
        0,
        b"version=1\ncluster.id=test-cluster_1\nnode.id=1\ndirectory.id=AQEBAQEBAQEBAQEBAQEBAQ\n",
    )
    properties.close()
    with pytest.raises(NotFormattedError, match="__cluster_metadata-0"):
        adopt_storage(filesystem, parent / "data", identity.voters)


def test_a_log_whose_beginning_no_snapshot_tells_is_not_adopted(
    memory: MemoryFileSystem, kafkas: Path, identity: StorageIdentity
) -> None:
    log = log_folder(kafkas)
    memory.remove(snapshot_path(kafkas, _SNAPSHOT))
    memory.rename(log / segment_name(0), log / segment_name(4))
    write_epochs(memory, log / EPOCH_CHECKPOINT, ())
    with pytest.raises(CorruptStorageError, match="no snapshot"):
        adopt_storage(memory, kafkas, identity.voters)
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(memory, kafkas)
