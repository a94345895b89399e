"""A folder says whose it is, and a node takes no other."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.storage.directory_ids import from_kafka_text, to_kafka_text
from splitbrain.nodes.storage.errors import (
    AlreadyFormattedError,
    CorruptStorageError,
    ForeignStorageError,
    NotFormattedError,
)
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage, load_identity
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.unit.nodes.storage.disks import Disk


class PowerCut(Exception):
    pass


def test_formatted_folder_is_loaded_as_it_was_formatted(
    filesystem: FileSystem, folder: Path, identity: StorageIdentity
) -> None:
    assert load_identity(filesystem, folder) == identity
    assert load_identity(filesystem, folder, cluster_id="test-cluster_1", node_id=NodeId(1))


def test_meta_properties_that_kafka_wrote_are_read(disk: Disk, identity: StorageIdentity) -> None:
    text = "#\n#Sat Nov 21 02:27:03 UTC 2026\nnode.id=1\ndirectory.id=AQEBAQEBAQEBAQEBAQEBAQ\n"
    disk.overwrite(
        disk.folder / "meta.properties", (text + "version=1\ncluster.id=test-cluster_1\n").encode()
    )
    assert load_identity(disk, disk.folder) == identity


def test_other_cluster_and_other_node_are_refused(disk: Disk) -> None:
    with pytest.raises(
        ForeignStorageError, match="names cluster test-cluster_1, this node wants b"
    ):
        load_identity(disk, disk.folder, cluster_id="b")
    with pytest.raises(ForeignStorageError, match="names node 1, this node wants 2"):
        load_identity(disk, disk.folder, node_id=NodeId(2))


def test_missing_and_empty_folders_are_refused(filesystem: FileSystem, parent: Path) -> None:
    with pytest.raises(NotFormattedError, match="does not exist; format it first"):
        load_identity(filesystem, parent / "data")
    filesystem.make_folder(parent / "data")
    with pytest.raises(NotFormattedError, match=r"has no meta\.properties"):
        load_identity(filesystem, parent / "data")


def test_folder_is_formatted_once(
    filesystem: FileSystem, folder: Path, identity: StorageIdentity
) -> None:
    with pytest.raises(AlreadyFormattedError):
        format_storage(filesystem, folder, identity)


def test_folder_that_lost_its_identity_but_not_its_votes_is_not_formatted_over(
    disk: Disk, identity: StorageIdentity
) -> None:
    disk.remove(disk.folder / "meta.properties")
    disk.open(disk.folder / "__cluster_metadata-0" / "quorum-state", create=True)
    with pytest.raises(AlreadyFormattedError):
        format_storage(disk, disk.folder, identity)


def test_crash_at_any_moment_of_formatting_leaves_nothing_or_all(identity: StorageIdentity) -> None:
    folder = Path("/node/data")
    finished = False
    moment = 0
    while not finished:
        memory = MemoryFileSystem()
        remaining = moment

        def cut(_action: str, _path: Path) -> None:
            nonlocal remaining
            if remaining == 0:
                raise PowerCut
            remaining -= 1

        memory.fault = cut
        try:
            format_storage(memory, folder, identity)
            finished = True
        except PowerCut:
            pass
        memory.fault = None
        memory.crash()
        try:
            assert load_identity(memory, folder) == identity
        except NotFormattedError:
            assert not finished
            format_storage(memory, folder, identity)
        moment += 1
    assert moment > 10


@pytest.mark.parametrize(
    ("line", "replacement", "problem"),
    [
        (b"version=1", b"version=0", "version is 0"),
        (b"node.id=1\n", b"", "has no node.id"),
        (b"node.id=1", b"node.id=x", "invalid literal"),
        (b"AQEB", b"AQ", "128-bit"),
    ],
)
def test_damaged_meta_properties_are_corrupt(
    disk: Disk, line: bytes, replacement: bytes, problem: str
) -> None:
    path = disk.folder / "meta.properties"
    content = disk.read(path).replace(line, replacement)
    disk.overwrite(path, content)
    with pytest.raises(CorruptStorageError, match=problem):
        load_identity(disk, disk.folder)


def test_lost_or_damaged_voters_are_corrupt(disk: Disk) -> None:
    disk.rot(disk.folder / "voters.json", 0)
    with pytest.raises(CorruptStorageError, match=r"voters\.json"):
        load_identity(disk, disk.folder)
    disk.remove(disk.folder / "voters.json")
    with pytest.raises(CorruptStorageError, match="missing"):
        load_identity(disk, disk.folder)


def test_no_rotten_bit_of_an_identity_passes_for_another_one(
    disk: Disk, identity: StorageIdentity
) -> None:
    """Directory ids are what the voter set counts by: a changed one must not vote, nor be one."""
    changed = 0
    for name in ("meta.properties", "voters.json"):
        path = disk.folder / name
        for position in range(len(disk.read(path))):
            for bit in range(8):
                disk.rot(path, position, 1 << bit)
                try:
                    assert load_identity(disk, disk.folder) == identity, (name, position, bit)
                except CorruptStorageError:
                    changed += 1
                disk.rot(path, position, 1 << bit)
    assert changed > 1_000


def test_a_folder_of_an_older_build_has_no_checksum_and_is_read(
    disk: Disk, identity: StorageIdentity
) -> None:
    path = disk.folder / "voters.json"
    content = re.sub(rb'"checksum": \d+,', b"", disk.read(path))
    disk.overwrite(path, content)
    with pytest.raises(CorruptStorageError, match="checksum does not fit"):
        load_identity(disk, disk.folder)
    disk.overwrite(path, content.replace(b'"version": 2', b'"version": 1'))
    assert load_identity(disk, disk.folder) == identity


@pytest.mark.parametrize("cluster_id", ["", "a b", "a=b", "ä", "a\n"])
def test_cluster_id_that_a_properties_file_cannot_hold_is_refused(
    disk: Disk, identity: StorageIdentity, cluster_id: str
) -> None:
    wrong = StorageIdentity(cluster_id, identity.node_id, identity.directory_id, ())
    with pytest.raises(ValueError, match="cluster id"):
        format_storage(disk, Path("/other"), wrong)


@given(st.binary(min_size=16, max_size=16))
def test_directory_ids_have_kafkas_spelling(raw: bytes) -> None:
    directory_id = DirectoryId(raw.hex())
    text = to_kafka_text(directory_id)
    assert (len(text), from_kafka_text(text)) == (22, directory_id)


def test_known_directory_id_is_spelled_as_kafka_spells_it() -> None:
    # The example in the documentation of Kafka's FileQuorumStateStore.
    assert from_kafka_text("J8aAPcfLQt2bqs1JT_rMgQ") == "27c6803dc7cb42dd9baacd494ffacc81"


@given(st.text(max_size=24))
def test_what_is_no_spelling_of_an_id_is_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert to_kafka_text(from_kafka_text(text)) == text


@pytest.mark.parametrize("text", ["", "ab", "A" * 32, "zz" * 16])
def test_what_is_no_directory_id_is_not_written(text: str) -> None:
    with pytest.raises(ValueError, match=r"directory id|hex"):
        to_kafka_text(DirectoryId(text))
