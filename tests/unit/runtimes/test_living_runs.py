"""A run lives while somebody holds its lock: what a sweep may touch hangs on nothing else."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from splitbrain.runtimes.dead_runs import claimed, is_living
from splitbrain.runtimes.owners import Owner, is_known_dead, orphans, owner_of_word, this_process
from splitbrain.runtimes.watchdog import owner_died


def test_a_held_lock_is_a_living_run(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_living(path)
        assert is_living(path)
    assert not is_living(path)


def test_a_lock_that_is_gone_or_was_never_there_is_a_dead_run(tmp_path: Path) -> None:
    assert not is_living(tmp_path / "absent" / "lock")


def test_looking_leaves_the_lock_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    assert not is_living(path)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_lock_of_a_killed_process_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = (
        "import fcntl,sys;f=open(sys.argv[1],'w');fcntl.flock(f,fcntl.LOCK_EX);"
        "print('held',flush=True);sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert is_living(path)
        holder.kill()
        holder.wait()
        assert not is_living(path)


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("lives", "word", "is_closed", "died"),
    [
        pytest.param(True, b"done\n", True, False, id="an end in order"),
        pytest.param(True, b"", True, True, id="closed without the word"),
        pytest.param(False, b"", False, True, id="dead, and another process keeps the pipe open"),
        pytest.param(False, b"", True, True, id="long gone"),
    ],
)
def test_an_owner_died_or_ended_well(lives: bool, word: bytes, is_closed: bool, died: bool) -> None:
    reading, writing = os.pipe()
    os.write(writing, word)
    if is_closed:
        os.close(writing)
    with sleeper() as owner:
        if not lives:
            owner.kill()
        if not lives and is_closed:
            owner.wait()
        assert owner_died(owner.pid, reading) is died
        owner.kill()
    os.close(reading)
    if not is_closed:
        os.close(writing)


# --- sweeps among themselves ------------------------------------------------------------------


def test_a_dead_run_is_held_by_one_sweep_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with claimed(lock) as first, claimed(lock) as second:
        assert (first, second) == (True, False)
        # It is dead all the same: nobody must report it as going on.
        assert not is_living(lock)
    with claimed(lock) as again:
        assert again


def test_a_patient_sweep_waits_for_the_one_before_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with claimed(lock):
            held.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    threading.Timer(0.05, release.set).start()
    with claimed(lock, patience_s=10) as second:
        assert second
        assert release.is_set()
    holder.join()


def test_a_living_run_is_never_held_by_a_sweep_and_not_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with claimed(lock, patience_s=60) as dead:
            assert not dead
    assert lock.read_bytes() == b""


def test_a_look_does_not_keep_a_sweep_from_a_dead_run(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    look = lock.open("rb")
    fcntl.flock(look, fcntl.LOCK_SH)
    threading.Timer(0.05, look.close).start()
    with claimed(lock) as dead:
        assert dead


# --- the second witness -----------------------------------------------------------------------


def test_a_run_whose_folder_was_deleted_lives_as_long_as_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "absent" / "lock"
    mine = this_process()
    assert is_living(lock, mine.word())
    with claimed(lock, mine.word()) as dead:
        assert not dead
    gone = msgspec.structs.replace(mine, started_ticks=mine.started_ticks - 1)
    assert not is_living(lock, gone.word())
    with claimed(lock, gone.word()) as dead:
        assert dead


def test_an_unreadable_lock_counts_as_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr("splitbrain.runtimes.dead_runs.os.open", refuse)
    assert is_living(tmp_path / "lock")
    gone = msgspec.structs.replace(this_process(), process=2**22 + 1)
    assert not is_living(tmp_path / "lock", gone.word())


def test_without_locks_nobody_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("splitbrain.runtimes.dead_runs.fcntl.flock", refuse)
    (tmp_path / "lock").touch()
    assert is_living(tmp_path / "lock")
    with claimed(tmp_path / "lock") as dead:
        assert not dead


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        ({}, False),
        ({"started_ticks": 1}, True),
        ({"boot": "another start of this machine"}, True),
        # Not to be seen from here, so not known to be dead.
        ({"process_namespace": "1", "started_ticks": 1}, False),
        ({"machine": "another", "boot": "another", "started_ticks": 1}, False),
    ],
)
def test_an_owner_is_dead_only_where_known(change: dict[str, str | int], dead: bool) -> None:
    owner = msgspec.structs.replace(this_process(), **change)
    assert is_known_dead(owner) is dead
    assert owner_of_word(owner.word()) == owner


def test_a_start_may_be_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two containers of one image on two machines that share an engine."""
    monkeypatch.setattr("splitbrain.runtimes.owners._MACHINE", tmp_path / "absent")
    mine = this_process()
    elsewhere = msgspec.structs.replace(mine, boot="another start, here or elsewhere")
    assert not is_known_dead(elsewhere)
    assert is_living(tmp_path / "absent" / "lock", elsewhere.word())
    assert is_known_dead(msgspec.structs.replace(mine, started_ticks=1))


def test_a_hidden_process_is_not_known_to_be_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted with hidepid, /proc shows nobody the processes of other users."""

    def refuse(*_: object) -> None:
        raise PermissionError

    hidden = msgspec.structs.replace(this_process(), process=2**22 + 1)
    assert is_known_dead(hidden)
    monkeypatch.setattr("splitbrain.runtimes.owners.os.kill", refuse)
    assert not is_known_dead(hidden)


def test_a_process_that_waits_to_be_reaped_is_dead() -> None:
    with sleeper() as child:
        mine = this_process()
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        owner = Owner(mine.machine, mine.boot, mine.process_namespace, child.pid, int(fields[19]))
        assert not is_known_dead(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_known_dead(owner)


@pytest.mark.parametrize("word", ["", "a/b/c", "a/b/c/d/e", "a/b/c/1/2/3"])
def test_what_is_no_word_of_ours_names_nobody(word: str) -> None:
    assert owner_of_word(word) is None


# --- watchdogs --------------------------------------------------------------------------------


def test_a_process_is_an_orphan_when_its_owner_is_dead_and_only_then(tmp_path: Path) -> None:
    # Looks like a watchdog, and reads its input like one.
    program = "import sys; print(flush=True); sys.stdin.read()"

    def like_a_watchdog(owner: int) -> subprocess.Popen[bytes]:
        words = ["-m", "splitbrain.runtimes.watchdog", "docker", "run", str(tmp_path), str(owner)]
        child = subprocess.Popen(
            [sys.executable, "-c", program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        # Until the new program runs, the system may show an empty command line for it.
        assert child.stdout is not None
        assert child.stdout.read(1) == b"\n"
        return child

    with sleeper() as dead:
        dead.kill()
    with like_a_watchdog(os.getpid()) as idle, like_a_watchdog(dead.pid) as working:
        found = orphans({"splitbrain.runtimes.watchdog"})
        others = orphans({"another.module"})
        for child in (idle, working):
            child.kill()
    assert working.pid in found
    assert idle.pid not in found
    assert working.pid not in others
    assert working.pid not in orphans({"splitbrain.runtimes.watchdog"})
