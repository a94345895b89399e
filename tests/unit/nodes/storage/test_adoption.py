"""A stopped controller of Kafka leaves a folder that becomes one of ours; no other folder does."""

import struct
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId, Voter
from splitbrain.nodes.storage.epoch_checkpoint import write_epochs
from splitbrain.nodes.storage.errors import (
    AlreadyFormattedError,
    CorruptStorageError,
    DynamicVotersError,
    ForeignStorageError,
    NotFormattedError,
    StorageInUseError,
)
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, adopt_storage, load_identity
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, log_folder, segment_name
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.snapshots import snapshot_path, write_snapshot
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.nodes.wire.control import VOTERS_TYPE
from splitbrain.nodes.wire.snapshots import encode_snapshot
from tests.unit.nodes.storage.disks import Disk

_SNAPSHOT = SnapshotId(Offset(4), Epoch(2))


@pytest.fixture
def kafkas(disk: Disk) -> Path:
    """Return the content of Kafka's folder too: identity, log, checkpoint and a snapshot."""
    log, _ = LogStore.open(disk, disk.folder)
    for number, epoch in enumerate((1, 2, 2)):
        payloads = [(None, b"%d" % (2 * number + part)) for part in range(2)]
        log.append_records(Offset(2 * number), Epoch(epoch), 9, payloads)
    log.flush()
    log.close()
    write_snapshot(disk, disk.folder, _SNAPSHOT, encode_snapshot(_SNAPSHOT, 5, [b"state"]))
    disk.remove(disk.folder / "voters.json")
    disk.remove(log_folder(disk.folder) / "durable-length")
    return disk.folder


def voters_of(identity: StorageIdentity) -> tuple[Voter, ...]:
    """As Kafka's static voters are: by their node ids alone."""
    return tuple(
        Voter(voter.node_id, NO_DIRECTORY, voter.host, voter.port) for voter in identity.voters
    )


def test_kafkas_folder_is_none_of_ours_before(disk: Disk, kafkas: Path) -> None:
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(disk, kafkas)
    with pytest.raises(CorruptStorageError, match="durable-length"):
        LogStore.open(disk, kafkas)


def test_an_adopted_folder_has_its_identity_and_its_log(
    disk: Disk, kafkas: Path, identity: StorageIdentity
) -> None:
    adopt_storage(disk, kafkas, voters_of(identity))
    found = load_identity(disk, kafkas, cluster_id="test-cluster_1", node_id=identity.node_id)
    assert found.directory_id == identity.directory_id
    assert found.voters == voters_of(identity)
    log, shape = LogStore.open(disk, kafkas)
    assert (shape.start_offset, shape.end_offset) == (4, 6)
    assert shape.snapshots == (_SNAPSHOT,)
    log.close()


def test_a_folder_is_adopted_once(disk: Disk, kafkas: Path, identity: StorageIdentity) -> None:
    adopt_storage(disk, kafkas, voters_of(identity))
    with pytest.raises(AlreadyFormattedError):
        adopt_storage(disk, kafkas, voters_of(identity))


def test_nobodys_folder_and_one_without_a_log_are_not_adopted(
    filesystem: FileSystem, parent: Path, identity: StorageIdentity
) -> None:
    filesystem.make_folder(parent / "data")
    with pytest.raises(NotFormattedError, match=r"meta\.properties"):
        adopt_storage(filesystem, parent / "data", identity.voters)
    properties = filesystem.open(parent / "data" / "meta.properties", create=True)
    properties.write_at(
        0, b"version=1\ncluster.id=test-cluster_1\nnode.id=1\ndirectory.id=AQEBAQEBAQEBAQEBAQEBAQ\n"
    )
    properties.close()
    with pytest.raises(NotFormattedError, match="__cluster_metadata-0"):
        adopt_storage(filesystem, parent / "data", identity.voters)


@pytest.mark.parametrize("where", ["log", "snapshot"])
def test_a_log_that_names_its_voters_is_not_adopted(
    disk: Disk, kafkas: Path, identity: StorageIdentity, where: str
) -> None:
    if where == "log":
        file = disk.open(log_folder(kafkas) / segment_name(0))
        file.write_at(file.size(), _voters_batch(Offset(6)))
    else:
        header, _, footer = encode_snapshot(_SNAPSHOT, 5, [b"state"])
        file = disk.open(snapshot_path(kafkas, _SNAPSHOT))
        file.truncate(0)
        file.write_at(0, header + _voters_batch(Offset(1)) + footer)
    file.close()
    with pytest.raises(DynamicVotersError, match="static voters"):
        adopt_storage(disk, kafkas, voters_of(identity))
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(disk, kafkas)


def _voters_batch(offset: Offset) -> bytes:
    """A control record as Kafka writes it where voters come and go."""
    payload = struct.pack(">hh", 0, VOTERS_TYPE), bytes((0, 0, 1, 0))
    return encode_payloads(offset, _SNAPSHOT.epoch, 9, [payload], is_control=True)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "named"), [("other", None, "cluster"), (None, NodeId(99), "node")]
)
def test_anothers_folder_is_not_adopted(
    disk: Disk,
    kafkas: Path,
    identity: StorageIdentity,
    cluster_id: str | None,
    node_id: NodeId | None,
    named: str,
) -> None:
    with pytest.raises(ForeignStorageError, match=f"names {named}"):
        adopt_storage(disk, kafkas, voters_of(identity), cluster_id=cluster_id, node_id=node_id)


def test_voters_that_name_another_folder_of_this_node_are_refused(
    disk: Disk, kafkas: Path, identity: StorageIdentity
) -> None:
    other = DirectoryId("ab" * 16)
    voters = tuple(Voter(each.node_id, other, each.host, each.port) for each in identity.voters)
    with pytest.raises(ForeignStorageError, match="names directory"):
        adopt_storage(disk, kafkas, voters)


def test_a_folder_in_use_is_not_adopted(
    disk: Disk, kafkas: Path, identity: StorageIdentity
) -> None:
    lock = disk.lock(kafkas / ".lock")
    with pytest.raises(StorageInUseError):
        adopt_storage(disk, kafkas, voters_of(identity))
    lock.release()
    adopt_storage(disk, kafkas, voters_of(identity))


def test_a_log_whose_beginning_no_snapshot_tells_is_not_adopted(
    disk: Disk, kafkas: Path, identity: StorageIdentity
) -> None:
    log = log_folder(kafkas)
    disk.remove(snapshot_path(kafkas, _SNAPSHOT))
    disk.rename(log / segment_name(0), log / segment_name(4))
    write_epochs(disk, log / EPOCH_CHECKPOINT, ())
    with pytest.raises(CorruptStorageError, match="no snapshot"):
        adopt_storage(disk, kafkas, identity.voters)
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(disk, kafkas)
