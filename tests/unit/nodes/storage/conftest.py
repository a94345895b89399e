"""A formatted data folder, on the real disk and in memory."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.durable_lengths import CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.errors import StorageInUseError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.unit.nodes.storage.disks import Disk


@pytest.fixture
def identity() -> StorageIdentity:
    voters = tuple(
        Voter(NodeId(number), DirectoryId(f"{number:02x}" * 16), f"n{number}", 9093)
        for number in (1, 2, 3)
    )
    return StorageIdentity("test-cluster_1", NodeId(1), voters[0].directory_id, voters)


@pytest.fixture(params=["disk", "memory", "counting"])
def filesystem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FileSystem]:
    if request.param == "memory":
        yield MemoryFileSystem(in_use=StorageInUseError)
    elif request.param == "disk":
        yield DiskFileSystem()
    else:
        table = tmp_path.parent / f"{tmp_path.name}-durable_lengths.jsonl"
        lengths = DurableLengths(table, tmp_path, threading.Lock())
        yield CountingFileSystem(lengths)
        lengths.close()


@pytest.fixture
def parent(filesystem: FileSystem, tmp_path: Path) -> Path:
    filesystem.make_folder(tmp_path)
    return tmp_path


@pytest.fixture
def folder(filesystem: FileSystem, parent: Path, identity: StorageIdentity) -> Path:
    data = parent / "data"
    format_storage(filesystem, data, identity)
    return data


@pytest.fixture
def disk(identity: StorageIdentity) -> Disk:
    return Disk(identity)
