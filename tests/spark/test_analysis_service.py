"""The process that analyses one run after the other: answers, isolation, and its end."""

import os
import subprocess
from pathlib import Path

import pytest

from splitbrain.harness.judge.analysis_process import read_analysis
from splitbrain.harness.judge.analysis_service import AskedAnalysis, shared_analyses, start_analysis
from splitbrain.history.run_folder import RunFolder
from tests.awaiting import await_true
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def children(parent: int) -> set[int]:
    words = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    ).stdout.split()
    return {int(word) for word in words} & {int(p.name) for p in Path("/proc").glob("[0-9]*")}


def analyse(folder: Path) -> str | None:
    with start_analysis(folder) as analysis:
        assert isinstance(analysis, AskedAnalysis)
        return analysis.wait()


def test_runs_share_a_session_and_a_broken_one_spoils_itself_alone(tmp_path: Path) -> None:
    first = World(Shape(seed=51, seconds=2.0, faults=1)).write(tmp_path / "first")
    second = World(Shape(seed=52, seconds=2.0, faults=0)).write(tmp_path / "second")
    broken = World(Shape(seed=53, seconds=1.0, faults=0)).write(tmp_path / "broken")
    # A table's place is taken by a file.
    RunFolder(broken).operations.write_text("")
    before = children(os.getpid())
    with shared_analyses():
        assert analyse(first) is None
        (process,) = children(os.getpid()) - before
        problem = analyse(broken)
        assert problem is not None
        assert problem.startswith("The Spark analysis could not ")
        assert analyse(second) is None
        assert children(os.getpid()) - before == {process}

        # Whoever hangs up ends it, with its JVM; the next analysis has a new one.
        java = children(process)
        assert java
        with start_analysis(first) as analysis:
            assert analysis.wait(give_up=lambda: "interrupted") is not None
        await_true(lambda: not Path(f"/proc/{process}").exists(), 60)
        assert not any(Path(f"/proc/{each}").exists() for each in java)
        assert analyse(first) is None
        assert process not in children(os.getpid())
    assert children(os.getpid()) == before
    for folder in (first, second):
        analysis, problem = read_analysis(folder)
        assert problem is None
        assert analysis is not None
        assert analysis.run_id == folder.name
        assert analysis.lost is not None
        assert (analysis.lost.missing, analysis.lost.logs) == (0, 3)
