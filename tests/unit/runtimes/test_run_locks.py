"""A path that somebody else named decides neither which file is written nor whose process ends."""

import contextlib
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.names import RunId
from splitbrain.runtimes.dead_runs import (
    DEAD,
    NoRunLockError,
    claimed,
    is_living,
    is_swept,
    open_run_lock,
)
from splitbrain.runtimes.local import process_table, sweep
from splitbrain.runtimes.owners import Owner

ME = os.getuid()
PRECIOUS = b"what a stranger must not touch"
_OPEN = Path("/proc/self/fd")
#: Of a process that is certainly gone.
GONE = Owner("", "", "", 2**22 + 1, 1).word()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A run's lock by its name, and empty as a living run's is, of which nobody spoke."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "lock").touch()
    return folder / "lock"


def a_link_to_a_file(run: Path, victim: Path) -> Path:
    (run / "lock").unlink()
    (run / "lock").symlink_to(victim)
    return run / "lock"


def a_link_for_the_run_folder(run: Path, victim: Path) -> Path:
    (run.parent / "other").symlink_to(victim.parent)
    return run.parent / "other" / "lock"


def a_link_above_the_run_folder(run: Path, victim: Path) -> Path:
    (run / "up").symlink_to(victim.parent.parent)
    return run / "up" / victim.parent.name / "lock"


def a_way_through_the_parent(run: Path, victim: Path) -> Path:
    (run / "up").symlink_to(victim.parent)
    return run / "up" / ".." / victim.parent.name / "lock"


def a_file_of_another_name(_: Path, victim: Path) -> Path:
    return victim.rename(victim.with_name("passwd"))


def a_file_with_content(_: Path, victim: Path) -> Path:
    victim.write_bytes(PRECIOUS)
    return victim


def a_pipe(run: Path, _: Path) -> Path:
    (run / "lock").unlink()
    os.mkfifo(run / "lock")
    return run / "lock"


def a_folder(run: Path, _: Path) -> Path:
    (run / "lock").unlink()
    (run / "lock").mkdir()
    return run / "lock"


FORGED: list[Callable[[Path, Path], Path]] = [
    a_link_to_a_file,
    a_link_for_the_run_folder,
    a_link_above_the_run_folder,
    a_way_through_the_parent,
    a_file_of_another_name,
    a_file_with_content,
    a_pipe,
    a_folder,
]


def contents(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("forge", FORGED)
def test_a_forged_lock_is_never_held_nor_written(
    run: Path, victim: Path, forge: Callable[[Path, Path], Path]
) -> None:
    lock = forge(run, victim)
    before = contents(run.parents[1])
    for owner in ("", GONE):
        assert is_living(lock, owner)
        with claimed(lock, owner) as dead:
            assert not dead
    assert not is_swept(lock)
    assert contents(run.parents[1]) == before


def test_a_lock_of_another_user_than_the_one_who_named_it_is_not_believed(run: Path) -> None:
    lock = run / "lock"
    assert is_living(lock, GONE, ME + 1)
    with claimed(lock, GONE, user=ME + 1) as dead:
        assert not dead
    assert lock.read_bytes() == b""
    with claimed(lock, GONE, user=ME) as dead:
        assert dead
    assert lock.read_bytes() == DEAD


def test_a_lock_that_is_exchanged_after_the_look_is_not_the_one_that_is_opened(
    run: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, fstat = run / "lock", os.fstat
    looked: list[int] = []

    def exchange(descriptor: int) -> os.stat_result:
        told = fstat(descriptor)
        if (_OPEN / str(descriptor)).readlink() == lock and not looked:
            looked.append(told.st_ino)
            lock.unlink()
            lock.symlink_to(victim)
        return told

    monkeypatch.setattr("splitbrain.runtimes.dead_runs.os.fstat", exchange)
    found = open_run_lock(lock, os.O_RDWR)
    try:
        assert [fstat(found).st_ino] == looked
    finally:
        os.close(found)


def test_a_refusal_leaves_no_descriptor_open(run: Path, victim: Path) -> None:
    forged = [a_link_above_the_run_folder(run, victim), a_pipe(run, victim)]
    before = sorted(_OPEN.iterdir())
    for lock in [*forged, Path("lock")]:
        with pytest.raises(NoRunLockError):
            open_run_lock(lock, os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        open_run_lock(run / "absent" / "lock", os.O_RDONLY)
    assert sorted(_OPEN.iterdir()) == before


# --- marks of processes -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _marks_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep by anybody else on this machine would end what is marked as of a dead run."""
    for name in ("RUN_VARIABLE", "LOCK_VARIABLE", "OWNER_VARIABLE"):
        monkeypatch.setattr(sweep, name, f"{getattr(sweep, name)}_{os.getpid()}")


@contextlib.contextmanager
def marked(lock: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that says that it is of the dead run of this lock."""
    marks = {
        sweep.RUN_VARIABLE: "run-7",
        sweep.LOCK_VARIABLE: str(lock),
        sweep.OWNER_VARIABLE: GONE,
    }
    program = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program],
        env=os.environ | marks, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_a_mark_with_a_lock_of_its_own_user_is_believed(run: Path) -> None:
    with marked(run / "lock") as process:
        (swept,) = sweep.sweep_machine(run / "lock")
        assert (swept.run_id, dict(swept.removed)) == ("run-7", {"processes": 1})
        assert process.wait(10) == -signal.SIGKILL
    assert (run / "lock").read_bytes() == DEAD


@pytest.mark.parametrize("forge", [a_file_with_content, a_file_of_another_name])
def test_marks_choose_no_file(run: Path, victim: Path, forge: Callable[[Path, Path], Path]) -> None:
    lock = forge(run, victim)
    before = lock.read_bytes()
    with marked(lock) as process:
        assert sweep.sweep_machine(lock) == []
        assert process.poll() is None
    assert lock.read_bytes() == before


def test_a_mark_of_another_user_ends_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's process names a run that is not that user's."""
    monkeypatch.setattr(sweep, "user_of", lambda _: ME + 1)
    with marked(run / "lock") as process:
        assert sweep.sweep_machine(run / "lock") == []
        assert sweep.end_run(RunId("run-7"), run / "lock", ME) == 0
        assert process.poll() is None
    assert (run / "lock").read_bytes() == b""


def test_a_mark_does_not_outlive_its_program(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with marked(run / "lock") as process:
        told = sweep.environment(process.pid)
        answers = iter([told, {}])
        monkeypatch.setattr(sweep, "environment", lambda _: next(answers))
        assert sweep._mark_of(process.pid) is None


@pytest.mark.parametrize(
    ("users", "is_secure", "expected"),
    [
        ("7 7 7 7", 0, 7),
        # Started by 7 with root's rights, as su is, and once it has made itself root wholly.
        ("7 0 0 0", 1, None),
        ("0 0 0 0", 1, None),
        ("7 7 0 7", 0, None),
    ],
)
def test_a_program_with_more_rights_than_its_starter_speaks_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str, is_secure: int, expected: int
) -> None:
    folder = tmp_path / "77"
    folder.mkdir()
    (folder / "status").write_text(
        "Name:\tsu\nUid:\t{}\nGid:\t0\n".format(users.replace(" ", "\t"))
    )
    (folder / "auxv").write_bytes(struct.pack("@LLLLLL", 6, 4096, 23, is_secure, 0, 0))
    monkeypatch.setattr(process_table, "_PROC", tmp_path)
    assert process_table.user_of(77) == expected
    assert process_table.user_of(78) is None


def test_a_process_of_ones_own_speaks_for_oneself() -> None:
    assert process_table.user_of(os.getpid()) == ME
