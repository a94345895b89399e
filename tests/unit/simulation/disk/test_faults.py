"""The simulated disk's faults, clause by clause."""

import errno
from random import Random

import pytest

from splitbrain.nodes.storage.filesystem import replace_file
from splitbrain.simulation.disk.file_system import SECTOR_BYTES, DiskFaultNote, MemoryFileSystem
from tests.unit.simulation.disk.one_file_disks import NEW, OLD, ROOT, A, durable_file


def test_armed_failure_strikes_as_often_as_told_where_told(disk: MemoryFileSystem) -> None:
    file = durable_file(disk, ROOT / "b.log", b"1234")
    disk.fail_next("write", errno.EIO, count=2, path_suffix=".log")
    disk.open(A).write_at(0, b"fine")
    for _ in range(2):
        with pytest.raises(OSError, match="EIO"):
            file.write_at(0, b"abcd")
    assert disk.read(ROOT / "b.log") == b"ab34"
    file.write_at(0, b"abcd")
    assert disk.faults_done == [DiskFaultNote("write-failed", "/b.log", None, errno.EIO)] * 2


@pytest.mark.parametrize("action", ["sync", "write", "truncate", "read", "rename", "remove"])
def test_every_action_can_be_made_to_fail(disk: MemoryFileSystem, action: str) -> None:
    file = disk.open(A)
    calls = {
        "sync": file.sync,
        "write": lambda: file.write_at(0, b""),
        "truncate": lambda: file.truncate(1),
        "read": lambda: disk.read(A),
        "rename": lambda: disk.rename(A, ROOT / "b"),
        "remove": lambda: disk.remove(A),
    }
    disk.fail_next(action, errno.EIO)
    with pytest.raises(OSError, match="EIO") as caught:
        calls[action]()
    assert (caught.value.errno, disk.read(A)) == (errno.EIO, OLD)
    assert [note.kind for note in disk.faults_done] == [f"{action}-failed"]


def test_failed_sync_is_told_once_and_its_pages_never_reach_the_disk(
    disk: MemoryFileSystem,
) -> None:
    file = disk.open(A)
    file.write_at(0, NEW + b"grown")
    disk.fail_next("sync", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        file.sync()
    file.sync()
    assert disk.read(A) == NEW + b"grown"
    assert not disk.durable_equals(A, 0, 1)
    # Written again they do.
    file.write_at(0, b"again")
    file.sync()
    disk.crash(Random(1))
    assert disk.read(A) == b"again" + NEW[5:SECTOR_BYTES] + OLD[SECTOR_BYTES:]


def test_failed_sync_of_a_job_in_flight_undone_leaves_the_pages_dirty(
    disk: MemoryFileSystem,
) -> None:
    file = disk.open(A)
    file.write_at(0, NEW)
    disk.fail_next("sync", errno.EIO)
    disk.begin_job()
    with pytest.raises(OSError, match="EIO"):
        file.sync()
    disk.end_job()
    disk.kill(steps=0)
    disk.open(A).sync()
    assert disk.durable_content(A) == NEW


def test_failed_sync_of_a_folder_can_be_repeated(disk: MemoryFileSystem) -> None:
    disk.fail_next("sync-folder", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        replace_file(disk, A, NEW)
    assert disk.durable_content(A) == OLD
    disk.sync_folder(ROOT)
    assert disk.durable_content(A) == NEW


def test_full_disk_takes_what_fits(disk: MemoryFileSystem) -> None:
    assert disk.used_bytes == 900
    disk.capacity_bytes = 1000
    file = disk.open(A)
    with pytest.raises(OSError, match="ENOSPC"):
        file.write_at(800, b"x" * 300)
    assert (file.size(), file.read_at(999, 1)) == (1000, b"x")
    assert disk.faults_done == [DiskFaultNote("disk-full", "/a", 1000, errno.ENOSPC)]
    file.write_at(0, b"overwriting is fine")
    with pytest.raises(OSError, match="ENOSPC"):
        replace_file(disk, ROOT / "b", b"1")
    file.truncate(900)
    replace_file(disk, ROOT / "b", b"1")
    disk.clear_faults()
    file.write_at(900, bytes(5000))


def test_reads_fail_until_cleared(disk: MemoryFileSystem) -> None:
    durable_file(disk, ROOT / "b", b"fine")
    disk.fail_reads("/a")
    for _ in range(3):
        with pytest.raises(OSError, match="EIO"):
            disk.open(A).read_at(7, 1)
    with pytest.raises(OSError, match="EIO"):
        disk.read(A)
    assert disk.read(ROOT / "b") == b"fine"
    disk.clear_faults()
    assert disk.read(A) == OLD
    assert disk.faults_done == [
        DiskFaultNote("read-failed", "/a", 7, errno.EIO),
        DiskFaultNote("read-failed", "/a", 0, errno.EIO),
    ]


def test_rot_is_there_after_a_restart_and_noted(disk: MemoryFileSystem) -> None:
    disk.rot(A, 3, 0x10)
    disk.crash()
    assert disk.read(A) == OLD[:3] + bytes([OLD[3] ^ 0x10]) + OLD[4:]
    assert disk.faults_done == [DiskFaultNote("rot", "/a", 3)]
    with pytest.raises(IndexError, match="no byte 900"):
        disk.rot(A, 900)


def test_rot_is_drawn_from_flushed_bytes_of_the_wanted_files(disk: MemoryFileSystem) -> None:
    file = durable_file(disk, ROOT / "b.log", b"x" * 10)
    disk.open(ROOT / "unnamed.log", create=True).write_at(0, b"no")
    file.write_at(4, b"y" * 20)
    disk.begin_job()
    file.write_at(0, b"z")
    file.sync()
    disk.end_job()
    random = Random(1)
    drawn = [disk.rot_choices(random, ".log") for _ in range(200)]
    # The sync in flight takes the file's whole sector along.
    assert drawn == [None] * 200
    disk.complete_job()
    choices = [choice for _ in range(300) if (choice := disk.rot_choices(random, ".log"))]
    assert {choice[0] for choice in choices} == {ROOT / "b.log"}
    assert {choice[1] for choice in choices} == set(range(24))
    assert {choice[2] for choice in choices} == {1 << bit for bit in range(8)}
    assert disk.rot_choices(random, "none") is None


def test_rot_amid_a_job_stays_whatever_becomes_of_the_job(disk: MemoryFileSystem) -> None:
    rotten = OLD[:850] + bytes([OLD[850] ^ 1]) + OLD[851:]
    for steps in (0, 1):
        durable_file(disk, A, OLD)
        disk.begin_job()
        disk.open(A).write_at(0, b"x")
        disk.end_job()
        disk.rot(A, 850)
        disk.crash(steps=steps)
        assert disk.read(A) == rotten


def test_older_state_can_be_put_back(disk: MemoryFileSystem) -> None:
    disk.make_folder(ROOT / "folder")
    disk.open(A).write_at(0, b"unsynced")
    snapshot = disk.snapshot()
    replace_file(disk, A, NEW)
    replace_file(disk, ROOT / "folder" / "b", NEW)
    disk.begin_job()
    replace_file(disk, ROOT / "c", NEW)
    disk.end_job()
    disk.restore(snapshot)
    assert (disk.list(ROOT), disk.list(ROOT / "folder")) == (["a", "folder"], [])
    assert (disk.read(A), disk.durable_content(A)) == (OLD, OLD)
    assert not disk.job_in_flight
    assert disk.faults_done == [DiskFaultNote("restored", "/")]


def test_wiped_disk_is_empty(disk: MemoryFileSystem) -> None:
    file = disk.open(A)
    disk.make_folder(ROOT / "folder")
    disk.wipe()
    assert (disk.list(ROOT), disk.durable_content(A)) == ([], None)
    assert disk.faults_done == [DiskFaultNote("wiped", "/")]
    with pytest.raises(ValueError, match="end of its process"):
        file.size()


def test_wrong_faults_are_refused(disk: MemoryFileSystem) -> None:
    with pytest.raises(ValueError, match="no disk fault 'fsync'"):
        disk.fail_next("fsync", errno.EIO)
    with pytest.raises(ValueError, match="no errno"):
        disk.fail_next("sync", 9999)
    with pytest.raises(ValueError, match="not 0 times"):
        disk.fail_next("sync", errno.EIO, count=0)
