"""The lock of a run folder: who holds it, who may look at it, and where there is none."""

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.folder import store
from splitbrain.harness.folder.store import create_run, is_alive
from splitbrain.runtimes.dead_runs import claimed

ROOT = Path(__file__).parents[4]

#: A harness with a child that outlives it and was to get every open file.
HARNESS = """
import pathlib, subprocess, sys
from splitbrain.harness.folder.store import create_run

living = create_run(pathlib.Path(sys.argv[1]), "t", 7)
wait = "import sys; sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", wait], stdin=0, stdout=2, close_fds=False)
print(living.folder.lock, flush=True)
sys.stdin.read()
"""


def test_a_file_system_without_locks_is_refused_and_nothing_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _kind: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("splitbrain.harness.folder.store.fcntl.flock", refuse)
    with pytest.raises(HarnessError, match=r"keeps no locks.*--runs-folder") as told:
        create_run(tmp_path, "t", 7)
    assert told.value.exit_code == 3
    assert list((tmp_path / "t").iterdir()) == []


def test_a_look_at_the_lock_does_not_keep_a_run_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = store._locked

    def looked_at(lock: Path) -> int:
        looker = lock.open("w")
        fcntl.flock(looker, fcntl.LOCK_SH)
        threading.Timer(0.02, looker.close).start()
        return locked(lock)

    monkeypatch.setattr(store, "_locked", looked_at)
    with create_run(tmp_path, "t", 7) as living:
        assert is_alive(living.folder)


def test_a_run_that_is_being_swept_is_dead(tmp_path: Path) -> None:
    with create_run(tmp_path, "t", 7) as living:
        pass
    with claimed(living.folder.lock) as dead:
        assert dead
        assert not is_alive(living.folder)


def test_a_child_that_outlives_its_harness_does_not_make_the_run_look_alive(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as harness:
        assert harness.stdout is not None
        lock = Path(harness.stdout.readline().strip())
        folder = store.RunFolder(lock.parent)
        assert is_alive(folder)
        harness.kill()
        harness.wait()
        assert not is_alive(folder)
