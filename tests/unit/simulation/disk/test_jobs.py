"""The simulated disk's jobs, ends of processes and durability oracle, clause by clause."""

import errno
from random import Random

import pytest

from splitbrain.nodes.storage.filesystem import replace_file
from splitbrain.simulation.disk.content import Content, Patch
from splitbrain.simulation.disk.file_system import SECTOR_BYTES, MemoryFileSystem
from tests.unit.simulation.disk.one_file_disks import NEW, OLD, ROOT, A, durable_file, one_file_disk


def test_job_is_durable_once_complete_and_not_before(disk: MemoryFileSystem) -> None:
    disk.begin_job()
    replace_file(disk, A, NEW)
    assert disk.end_job() == 5
    assert [action for action, _ in disk.job_steps] == [
        "create",
        "write",
        "sync",
        "rename",
        "sync-folder",
    ]
    assert (disk.read(A), disk.durable_content(A)) == (NEW, OLD)
    assert not disk.durable_equals(A, 0, 1)
    disk.complete_job()
    assert (disk.job_steps, disk.job_in_flight, disk.durable_content(A)) == ((), False, NEW)
    disk.crash()
    assert disk.read(A) == NEW


@pytest.mark.parametrize(("steps", "content"), [(0, OLD), (3, OLD), (4, OLD), (5, NEW)])
def test_crash_in_flight_keeps_the_steps_that_it_is_told(
    disk: MemoryFileSystem, steps: int, content: bytes
) -> None:
    disk.begin_job()
    replace_file(disk, A, NEW)
    disk.end_job()
    after = disk.crash(steps=steps)
    assert (after.steps, after.steps_kept, disk.read(A)) == (5, steps, content)


def test_rename_never_survives_without_the_sync_before_it() -> None:
    kept: set[int] = set()
    for seed in range(200):
        filesystem = one_file_disk()
        filesystem.begin_job()
        replace_file(filesystem, A, NEW)
        filesystem.end_job()
        kept.add(filesystem.crash(Random(seed)).steps_kept)
        assert filesystem.read(A) in {OLD, NEW}
    assert kept == {0, 1, 2, 3, 4, 5}


def test_what_is_appended_after_the_sync_of_a_job_is_not_covered_by_it(
    disk: MemoryFileSystem,
) -> None:
    file = disk.open(A)
    file.write_at(900, b"1" * 100)
    disk.begin_job()
    file.sync()
    disk.end_job()
    file.write_at(1000, b"2" * 100)
    file.write_at(0, b"x")
    disk.complete_job()
    assert disk.durable_content(A) == OLD + b"1" * 100
    assert disk.durable_equals(A, 1, 1000)
    assert not disk.durable_equals(A, 0, 2)
    file.sync()
    assert disk.durable_content(A) == b"x" + OLD[1:] + b"1" * 100 + b"2" * 100


def test_what_the_owner_did_meanwhile_outlives_the_steps_that_never_happened(
    disk: MemoryFileSystem,
) -> None:
    file = disk.open(A)
    disk.begin_job()
    file.truncate(100)
    disk.open(ROOT / "job", create=True).write_at(0, b"job")
    disk.end_job()
    disk.open(ROOT / "owner", create=True).write_at(0, b"owner")
    disk.kill(steps=0)
    assert (disk.list(ROOT), disk.read(A)) == (["a", "owner"], OLD)
    assert disk.read(ROOT / "owner") == b"owner"


def test_sync_outside_the_job_in_flight_holds_from_its_completion_and_in_a_crash(
    disk: MemoryFileSystem,
) -> None:
    for complete in (True, False):
        file = durable_file(disk, ROOT / "b", b"")
        disk.begin_job()
        replace_file(disk, A, NEW)
        disk.end_job()
        file.write_at(0, b"owner")
        file.sync()
        assert disk.durable_content(ROOT / "b") == b""
        if complete:
            disk.complete_job()
        disk.crash()
        assert disk.read(ROOT / "b") == b"owner"


def test_job_that_raises_counts_as_far_as_it_came(disk: MemoryFileSystem) -> None:
    disk.fail_next("rename", errno.EIO)
    disk.begin_job()
    with pytest.raises(OSError, match="EIO"):
        replace_file(disk, A, NEW)
    assert disk.end_job() == 3
    disk.complete_job()
    disk.sync_folder(ROOT)
    disk.crash()
    assert (disk.read(A), disk.read(ROOT / "a.tmp")) == (OLD, NEW)


def test_killed_process_leaves_all_it_wrote_or_a_drawn_part_of_its_job(
    disk: MemoryFileSystem,
) -> None:
    disk.begin_job()
    replace_file(disk, A, NEW)
    disk.end_job()
    after = disk.kill()
    assert (after.steps_kept, disk.read(A)) == (5, NEW)
    kept: set[int] = set()
    for seed in range(100):
        disk.begin_job()
        disk.open(A).write_at(0, b"1")
        disk.open(A).write_at(1, b"2")
        disk.end_job()
        after = disk.kill(Random(seed))
        kept.add(after.steps_kept)
        assert disk.read(A)[:2] == (NEW[:2], b"1n", b"12")[after.steps_kept]
        durable_file(disk, A, NEW)
    assert kept == {0, 1, 2}


def test_jobs_do_not_overlap(disk: MemoryFileSystem) -> None:
    for wrong in (disk.end_job, disk.complete_job):
        with pytest.raises(ValueError, match="no job"):
            wrong()
    disk.begin_job()
    with pytest.raises(ValueError, match="no job is in flight that has ended"):
        disk.complete_job()
    with pytest.raises(ValueError, match="a job is in flight"):
        disk.begin_job()
    disk.end_job()
    with pytest.raises(ValueError, match="a job is in flight"):
        disk.begin_job()
    with pytest.raises(ValueError, match="has 0 steps, not 1"):
        disk.crash(steps=1)
    disk.crash()
    disk.begin_job()


def test_open_files_and_locks_end_with_their_process(disk: MemoryFileSystem) -> None:
    for end in (disk.crash, disk.kill):
        file = disk.open(A)
        stale = disk.lock(ROOT / ".lock")
        end()
        with pytest.raises(ValueError, match="end of its process"):
            file.write_at(0, b"from beyond")
        file.close()
        lock = disk.lock(ROOT / ".lock")
        stale.release()
        with pytest.raises(BlockingIOError, match="lock"):
            disk.lock(ROOT / ".lock")
        lock.release()


def test_sync_takes_only_what_was_written_since_the_last_one(
    disk: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    settle = Content.settle

    def counting(self: Content, patch: Patch) -> None:
        taken.append(sum(len(data) for _, data in patch.parts))
        settle(self, patch)

    monkeypatch.setattr(Content, "settle", counting)
    file = durable_file(disk, ROOT / "log", b"x" * 100_000)
    taken.clear()
    for position in range(100_000, 110_000, 100):
        file.write_at(position, b"y" * 100)
        file.sync()
    assert max(taken) <= 2 * SECTOR_BYTES
    file.sync()
    assert taken[-1] == 0


def test_journal_can_be_switched_off(disk: MemoryFileSystem) -> None:
    assert disk.journal == []


def test_content_is_durable_once_synced_and_its_name_too() -> None:
    disk = MemoryFileSystem(journals=False)
    file = disk.open(A, create=True)
    file.write_at(0, b"12")
    assert not disk.durable_equals(A, 0, 2)
    file.sync()
    assert (disk.durable_equals(A, 0, 2), disk.durable_content(A)) == (False, None)
    disk.sync_folder(ROOT)
    assert (disk.durable_equals(A, 0, 2), disk.durable_content(A)) == (True, b"12")
    assert not disk.durable_equals(A, 0, 3)
    assert not disk.durable_equals(ROOT / "none", 0, 0)


def test_name_that_a_crash_may_take_away_is_not_durable(disk: MemoryFileSystem) -> None:
    disk.rename(A, ROOT / "b")
    assert not disk.durable_equals(ROOT / "b", 0, 1)
    disk.rename(ROOT / "b", A)
    # The first rename alone may survive.
    assert not disk.durable_equals(A, 0, 1)
    disk.sync_folder(ROOT)
    assert disk.durable_equals(A, 0, 900)


def test_crash_tells_what_it_took(disk: MemoryFileSystem) -> None:
    disk.open(A).write_at(10, b"1234")
    disk.open(ROOT / "b", create=True)
    after = disk.crash()
    assert (after.lost_bytes, after.names_undone) == (4, 1)


def test_one_seed_gives_one_outcome() -> None:
    def outcome(seed: int) -> list[tuple[str, bytes]]:
        disk = MemoryFileSystem(journals=False)
        for name in ("b", "a", "d", "c"):
            durable_file(disk, ROOT / name, OLD * 5).write_at(0, NEW * 6)
            disk.open(ROOT / f"{name}2", create=True)
        disk.crash(Random(seed))
        return [(name, disk.read(ROOT / name)) for name in disk.list(ROOT)]

    assert outcome(1) == outcome(1)
    assert outcome(1) != outcome(2)
