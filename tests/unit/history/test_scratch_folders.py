"""Temporary folders of dead processes go, those of living ones and foreign ones stay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.history.scratch_folders import remove_dead, scratch_folder

HOLDER = """
import sys
from splitbrain.history.scratch_folders import scratch_folder

with scratch_folder("test") as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_folder_is_removed_at_the_end_of_its_block(tmp_path: Path) -> None:
    with scratch_folder("test") as folder:
        assert folder.parent == tmp_path
        assert remove_dead() == []
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_and_no_sooner(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        assert remove_dead(tmp_path) == []
        holder.kill()
        holder.wait()
    assert remove_dead(tmp_path) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_our_lock_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "splitbrain-of-somebody").mkdir()
    (tmp_path / "other").mkdir()
    assert remove_dead(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 2


def test_neither_a_link_nor_a_pipe_is_taken_for_a_dead_processs_folder(tmp_path: Path) -> None:
    """Anybody may make a folder of such a name where temporary files are."""
    lock = ".splitbrain-scratch.lock"
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / lock).touch()
    (tmp_path / "splitbrain-link").symlink_to(victim)
    for name in ("splitbrain-locked-elsewhere", "splitbrain-pipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "splitbrain-locked-elsewhere" / lock).symlink_to(victim / lock)
    os.mkfifo(tmp_path / "splitbrain-pipe" / lock)
    asked: list[Path] = []
    assert remove_dead(tmp_path, before=asked.append) == [tmp_path / "splitbrain-pipe"]
    assert asked == [tmp_path / "splitbrain-pipe"]
    assert (victim / lock).exists()


def test_a_folder_with_somebody_elses_lock_is_foreign(tmp_path: Path) -> None:
    # As an environment for Python has one that was made by a tool of our days.
    foreign = tmp_path / "splitbrain-environment"
    foreign.mkdir()
    (foreign / ".lock").touch()
    assert remove_dead(tmp_path) == []
    assert foreign.is_dir()
