"""The two file systems agree, and the one in memory crashes as a real one may."""

import errno
from pathlib import Path
from random import Random

import pytest

from splitbrain.nodes.storage.disk import DiskFileSystem, ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.errors import StorageInUseError
from splitbrain.nodes.storage.filesystem import FileSystem, replace_file
from splitbrain.simulation.disk.file_system import SECTOR_BYTES, MemoryFileSystem
from tests.unit.nodes.storage.foreign_locks import asked_as_java_does, locked_as_java_does

ROOT = Path("/")


def test_files_hold_what_was_written_where_it_was_written(
    filesystem: FileSystem, parent: Path
) -> None:
    file = filesystem.open(parent / "a", create=True)
    file.write_at(3, b"defg")
    file.write_at(0, b"abc")
    assert file.read_at(2, 3) == b"cde"
    assert file.read_at(5, 100) == b"fg"
    assert file.read_at(50, 1) == b""
    file.truncate(4)
    file.truncate(6)
    file.sync()
    assert (file.size(), filesystem.read(parent / "a")) == (6, b"abcd\0\0")
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read_at(0, 1)


def test_names_are_listed_renamed_and_removed(filesystem: FileSystem, parent: Path) -> None:
    replace_file(filesystem, parent / "b", b"old")
    replace_file(filesystem, parent / "b", b"new")
    filesystem.make_folder(parent / "c" / "d")
    filesystem.open(parent / "a", create=True).close()
    assert filesystem.list(parent) == ["a", "b", "c"]
    assert filesystem.read(parent / "b") == b"new"
    filesystem.remove(parent / "a")
    filesystem.sync_folder(parent)
    assert (filesystem.exists(parent / "a"), filesystem.exists(parent / "c")) == (False, True)


def test_missing_names_are_missing(filesystem: FileSystem, parent: Path) -> None:
    for action in (
        lambda: filesystem.open(parent / "none"),
        lambda: filesystem.read(parent / "none"),
        lambda: filesystem.list(parent / "none"),
        lambda: filesystem.remove(parent / "none"),
        lambda: filesystem.open(parent / "none" / "x", create=True),
    ):
        with pytest.raises(FileNotFoundError):
            action()


def test_a_lock_has_one_holder(filesystem: FileSystem, parent: Path) -> None:
    lock = filesystem.lock(parent / ".lock")
    with pytest.raises(StorageInUseError, match="another process holds"):
        filesystem.lock(parent / ".lock")
    lock.release()
    lock.release()
    filesystem.lock(parent / ".lock").release()


def test_read_only_file_system_writes_nothing(tmp_path: Path) -> None:
    DiskFileSystem().open(tmp_path / "a", create=True).close()
    file = ReadOnlyDiskFileSystem().open(tmp_path / "a")
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write_at(0, b"x")
    file.close()
    with pytest.raises(FileNotFoundError):
        ReadOnlyDiskFileSystem().open(tmp_path / "b", create=True)


def test_unsynced_bytes_are_lost_at_a_crash() -> None:
    filesystem = MemoryFileSystem()
    file = filesystem.open(ROOT / "a", create=True)
    filesystem.sync_folder(ROOT)
    file.write_at(0, b"kept")
    file.sync()
    file.write_at(2, b"lost")
    filesystem.crash()
    assert filesystem.read(ROOT / "a") == b"kept"


def test_unsynced_names_are_undone_at_a_crash() -> None:
    filesystem = MemoryFileSystem()
    replace_file(filesystem, ROOT / "a", b"old")
    filesystem.open(ROOT / "b", create=True)
    filesystem.rename(ROOT / "a", ROOT / "c")
    filesystem.remove(ROOT / "c")
    filesystem.crash()
    assert filesystem.list(ROOT) == ["a"]
    assert filesystem.read(ROOT / "a") == b"old"


def test_replacement_without_a_folder_sync_can_be_undone() -> None:
    filesystem = MemoryFileSystem()
    replace_file(filesystem, ROOT / "a", b"old")
    filesystem.fault = lambda action, _: errno.EIO if action == "sync-folder" else None
    with pytest.raises(OSError, match="EIO"):
        replace_file(filesystem, ROOT / "a", b"new")
    assert filesystem.read(ROOT / "a") == b"new"
    filesystem.crash()
    assert filesystem.read(ROOT / "a") == b"old"


def test_crash_tears_by_sector_and_every_mixture_occurs() -> None:
    old, new = b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES
    seen: set[bytes] = set()
    for seed in range(60):
        filesystem = MemoryFileSystem()
        file = filesystem.open(ROOT / "a", create=True)
        filesystem.sync_folder(ROOT)
        file.write_at(0, old * 2)
        file.sync()
        file.write_at(0, new * 2)
        filesystem.crash(Random(seed))
        seen.add(filesystem.read(ROOT / "a"))
    assert seen == {old * 2, old + new, new + old, new * 2}


def test_grown_file_keeps_any_part_of_its_growth() -> None:
    sizes: set[int] = set()
    for seed in range(40):
        filesystem = MemoryFileSystem()
        file = filesystem.open(ROOT / "a", create=True)
        filesystem.sync_folder(ROOT)
        file.write_at(0, b"x" * 2000)
        filesystem.crash(Random(seed))
        content = filesystem.read(ROOT / "a")
        sizes.add(len(content))
        assert set(content) <= {0, ord("x")}
    assert min(sizes) < 500
    assert max(sizes) > 1500


def test_full_disk_takes_part_of_a_write() -> None:
    filesystem = MemoryFileSystem()
    file = filesystem.open(ROOT / "a", create=True)
    filesystem.fault = lambda action, _: errno.ENOSPC if action == "write" else None
    with pytest.raises(OSError, match="ENOSPC"):
        file.write_at(0, b"12345678")
    assert file.read_at(0, 8) == b"1234"


def test_a_lock_and_one_of_javas_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with locked_as_java_does(path), pytest.raises(StorageInUseError):
        DiskFileSystem().lock(path)
    lock = DiskFileSystem().lock(path)
    with asked_as_java_does(path) as answer:
        assert answer == "refused"
    lock.release()
    with asked_as_java_does(path) as answer:
        assert answer == "held"
