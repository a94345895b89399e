"""The process that analyses one run after the other: answers, isolation, and its end."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.analysis.across import AcrossRequest, Findings
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.figure import FiguresAnswer, FiguresRequest, SelectedRun, Subject
from splitbrain.harness.judge.analysis_process import AskedAnalysis, read_analysis, start_analysis
from splitbrain.harness.pool.spark_service import ask_spark, shared_session
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.awaiting import await_true
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def children(parent: int) -> set[int]:
    words = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    ).stdout.split()
    return {int(word) for word in words} & {int(p.name) for p in Path("/proc").glob("[0-9]*")}


def niceness(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


def analyse(folder: Path) -> str | None:
    told: list[tuple[int, int]] = []
    with start_analysis(folder) as analysis:
        assert isinstance(analysis, AskedAnalysis)
        problem = analysis.wait(took=lambda done, total: told.append((done, total)))
    if problem is None:
        assert told == sorted(told)
        assert len({done for done, _ in told}) > 1
    return problem


def looked_at_all_and_measured(first: Path, second: Path, lake: Path) -> None:
    """Ask the other questions of a night, of which one is about a lake that is not there."""
    across = f"{PACKAGE}.spark_analysis.across_process"
    missing = ask_spark(across, AcrossRequest(str(lake), None), name="across", timeout_s=None)
    assert missing.code == 3
    assert str(lake) in missing.error_line
    ingest_runs(LocalStore(lake), [first, second])
    answered = ask_spark(across, AcrossRequest(str(lake), None), name="across", timeout_s=None)
    assert msgspec.json.decode(answered.answer, type=Findings).runs == 2
    run = SelectedRun(
        folder=str(first), system="kraft", version="1", workload="register", runtime="docker"
    )
    request = FiguresRequest((run,), (Subject("latency_p99_ms"),))
    answered = ask_spark(
        f"{PACKAGE}.spark_analysis.gate_process", request, name="gate", timeout_s=None
    )
    ((value, samples, _),) = msgspec.json.decode(
        answered.answer, type=FiguresAnswer
    ).figures.values()
    assert value is not None
    assert samples > 0


def test_runs_share_a_session_and_a_broken_one_spoils_itself_alone(tmp_path: Path) -> None:
    first = World(Shape(seed=51, seconds=2.0, faults=1)).write(tmp_path / "first")
    second = World(Shape(seed=52, seconds=2.0, faults=0)).write(tmp_path / "second")
    broken = World(Shape(seed=53, seconds=1.0, faults=0)).write(tmp_path / "broken")
    # A table's place is taken by a file.
    RunFolder(broken).operations.write_text("")
    before = children(os.getpid())
    with shared_session() as service:
        assert service is not None
        # It starts beside the nodes of a run, and gives way to all until the clients are through.
        service.prepare(first)
        await_true(lambda: {niceness(each) for each in children(os.getpid()) - before} == {19}, 60)
        (process,) = children(os.getpid()) - before
        service.begin()
        assert niceness(process) == (0 if os.geteuid() == 0 else 19)
        assert analyse(first) is None
        assert {niceness(each) for each in children(process)} <= {niceness(process)}
        problem = analyse(broken)
        assert problem is not None
        assert problem.startswith("The Spark analysis could not ")
        assert analyse(second) is None
        looked_at_all_and_measured(first, second, tmp_path / "lake")
        assert children(os.getpid()) - before == {process}

        # Whoever hangs up ends it, with its JVM.
        java = children(process)
        assert java
        with start_analysis(first) as analysis:
            assert analysis.wait(give_up=lambda: "interrupted") is not None
        await_true(lambda: not Path(f"/proc/{process}").exists(), 60)
        assert not any(Path(f"/proc/{each}").exists() for each in java)
    assert children(os.getpid()) == before
    for folder in (first, second):
        analysis, problem = read_analysis(folder)
        assert problem is None
        assert analysis is not None
        assert analysis.run_id == folder.name
        assert analysis.lost is not None
        assert (analysis.lost.missing, analysis.lost.logs) == (0, 3)
