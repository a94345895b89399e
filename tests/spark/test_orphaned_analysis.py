"""An analysis whose harness was killed ends by itself, whatever Spark was doing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.harness.pool.spark_child import OWNED
from tests.awaiting import await_true
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]


def programs_in(scratch: Path) -> dict[int, str]:
    """Processes that were told to keep their files below a folder, with their programs' names."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={scratch}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue
    return found


def has_java(scratch: Path) -> bool:
    return "java" in programs_in(scratch).values()


def has_session(scratch: Path) -> bool:
    """Whether Spark's block manager has made its folder: the session is all but there."""
    return any(scratch.glob("splitbrain-spark-*/blockmgr-*"))


@pytest.mark.parametrize("reached", [has_java, has_session])
def test_an_analysis_whose_harness_is_killed_takes_its_jvm_and_files_along(
    reached: object, tmp_path: Path
) -> None:
    folder = World(Shape(seed=44, seconds=3.0, faults=1)).write(tmp_path / "run")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as owner:
        analysis = subprocess.Popen(
            [sys.executable, "-m", OWNED, "splitbrain.spark_analysis", str(folder), str(owner.pid)],
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        await_true(lambda: reached(scratch), 300)  # type: ignore[operator]
        owner.kill()
    assert analysis.wait(100) != 0
    await_true(lambda: not programs_in(scratch), 60)
    assert list(scratch.iterdir()) == []
