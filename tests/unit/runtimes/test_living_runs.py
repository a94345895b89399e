"""A run lives while somebody holds its lock: what a sweep may touch hangs on nothing else."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from runtimes.docker.sweep import is_living
from runtimes.docker.watchdog import owner_died


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


def test_the_word_done_is_an_end_in_order() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"done\n")
    os.close(writing)
    assert not owner_died(os.getpid(), reading)
    os.close(reading)


def test_a_closed_pipe_without_the_word_is_a_death() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    assert owner_died(os.getpid(), reading)
    os.close(reading)


def test_a_death_is_seen_though_another_process_keeps_the_pipe_open() -> None:
    reading, writing = os.pipe()
    with sleeper() as owner:
        owner.kill()
        assert owner_died(owner.pid, reading)
    os.close(writing)
    os.close(reading)


def test_an_owner_that_is_long_gone_is_a_death() -> None:
    reading, writing = os.pipe()
    with sleeper() as owner:
        owner.kill()
    assert owner_died(owner.pid, reading)
    os.close(writing)
    os.close(reading)
