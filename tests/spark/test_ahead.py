"""Work ahead of an analysis: all jobs on a copy of a living run, and results that hold later."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.analysis import run as rows
from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import analyze
from splitbrain.spark_analysis.ahead import work_ahead
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

#: Rows of the jobs that need neither logs nor what nodes said.
OF_CLIENTS = {
    *(rows.Latency, rows.Throughput, rows.ServiceWindow, rows.Unavailability),
    *(rows.StaleRead, rows.ClientError),
}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of the results that are computed."""
    found: list[Path] = []
    store = analyze.store_result

    def spied(*arguments: Any) -> Path:
        found.append(store(*arguments))
        return found[-1]

    monkeypatch.setattr(analyze, "store_result", spied)
    return found


def without_logs(folder: Path) -> Path:
    """Take the logs aside, as a run has none while its nodes are stopped; return their place."""
    return (folder / "nodes").rename(folder.parent / "later")


def told(analysis: RunAnalysis) -> RunAnalysis:
    return msgspec.structs.replace(analysis, seconds=0.0)


def test_all_jobs_are_carried_out_and_the_run_is_left_alone(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    folder = World(Shape(seed=61, seconds=2.0, faults=1)).write(tmp_path / "run")
    # A client is writing a line.
    with RunFolder(folder).history.open("ab") as history:
        history.write(b'{"time":1,"pro')
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with work_ahead(folder, session, lambda: False) as ahead:
        assert len(stored) == len(analyze.JOBS)
        # Half a line is no history that anything could hold for.
        assert not ahead.ready_for(folder)
    assert not any(path.exists() or path.is_relative_to(folder) for path in stored)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_results_of_the_clients_hold_once_the_logs_are_there(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    world = World(Shape(seed=63, seconds=2.0, faults=1))
    world.lose(next(event for event in world.acknowledged() if event.f == "write"), nodes=3)
    folder = world.write(tmp_path / "run")
    alone = analyze.analyze(folder, session)
    assert alone.lost is not None
    assert alone.lost.missing == 1
    later = without_logs(folder)
    with work_ahead(folder, session, lambda: False) as ahead:
        later.rename(folder / "nodes")
        ready = ahead.ready_for(folder)
        assert set(ready) == OF_CLIENTS
        stored.clear()
        assert told(analyze.analyze(folder, session, ready=ready)) == told(alone)
    assert len(stored) == len(analyze.JOBS) - len(OF_CLIENTS)


@pytest.mark.parametrize("changed", ["plan", "history", "faults"])
def test_nothing_holds_for_a_run_that_went_on_or_for_another_one(
    changed: str, tmp_path: Path, session: SparkSession
) -> None:
    folder = World(Shape(seed=64, seconds=1.0, faults=1)).write(tmp_path / "run")
    other = World(Shape(seed=65, seconds=1.0, faults=1)).write(tmp_path / "other" / "run")
    asked = itertools.count()
    with work_ahead(folder, session, lambda: next(asked) >= 2) as ahead:
        assert ahead.ready_for(folder)
        assert not ahead.ready_for(other)
        with getattr(RunFolder(folder), changed).open("ab") as file:
            file.write(b"\n")
        assert not ahead.ready_for(folder)


def test_it_ends_once_somebody_asks_and_what_is_done_by_then_holds(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    folder = World(Shape(seed=62, seconds=1.0, faults=0)).write(tmp_path / "run")
    asked = itertools.count()
    with work_ahead(folder, session, lambda: next(asked) >= 3) as ahead:
        assert len(stored) == 3
        assert set(ahead.ready_for(folder)) == set(list(analyze.JOBS)[:3])


def test_a_run_that_has_nothing_yet_is_worked_at_too(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    (tmp_path / "run").mkdir()
    with work_ahead(tmp_path / "run", session, lambda: False):
        assert len(stored) == len(analyze.JOBS)
