"""Files that were opened for a look are closed again, whatever was found."""

from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.storage.disk import DiskFile, DiskFileSystem
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.reading import read_committed


class Watched(DiskFileSystem):
    """Remembers the files that it opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[DiskFile] = []

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        file = super().open(path, create=create)
        self.opened.append(file)
        return file

    def still_open(self) -> list[str]:
        """Names of files that can still be read."""
        names: list[str] = []
        for file in self.opened:
            try:
                file.size()
            except (OSError, ValueError):
                continue
            names.append(file.path.name)
        return names


@pytest.fixture
def stopped(tmp_path: Path, identity: StorageIdentity) -> Path:
    """Data folder of a stopped node with four records, each in a segment of its own."""
    folder = tmp_path / "data"
    format_storage(DiskFileSystem(), folder, identity)
    store, _ = LogStore.open(DiskFileSystem(), folder, segment_bytes=150)
    for offset in range(4):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
    store.flush()
    store.close()
    return folder


def test_a_folder_that_was_read_is_closed(stopped: Path) -> None:
    filesystem = Watched()
    assert len(list(read_committed(stopped, filesystem=filesystem))) == 4
    assert len(filesystem.opened) == 4
    assert filesystem.still_open() == []


def test_a_folder_that_was_read_in_part_is_closed(stopped: Path) -> None:
    filesystem = Watched()
    assert len(list(read_committed(stopped, 1, filesystem=filesystem))) == 1
    assert filesystem.still_open() == []


def test_a_folder_that_cannot_be_opened_is_closed(stopped: Path) -> None:
    checkpoint = stopped / "__cluster_metadata-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n0\n")
    filesystem = Watched()
    with pytest.raises(CorruptStorageError):
        LogStore.open(filesystem, stopped)
    assert filesystem.still_open() == []


def test_a_log_that_is_closed_has_closed_its_files(stopped: Path) -> None:
    filesystem = Watched()
    store, _ = LogStore.open(filesystem, stopped)
    assert filesystem.still_open()
    store.close()
    assert filesystem.still_open() == []
