"""Rehearsal of an analysis with a living run: all jobs, until a question comes, and no trace."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import analyze
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of the results that are stored."""
    found: list[Path] = []
    store = analyze.store_result

    def spied(*arguments: Any) -> Path:
        found.append(store(*arguments))
        return found[-1]

    monkeypatch.setattr(analyze, "store_result", spied)
    return found


def test_a_rehearsal_carries_out_all_jobs_and_leaves_the_run_alone(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    folder = World(Shape(seed=61, seconds=2.0, faults=1)).write(tmp_path / "run")
    # A client is writing a line.
    with RunFolder(folder).history.open("ab") as history:
        history.write(b'{"time":1,"pro')
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    analyze.rehearse(folder, session, lambda: False)
    assert len(stored) == len(analyze.JOBS)
    assert not any(path.exists() or path.is_relative_to(folder) for path in stored)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_rehearsal_ends_once_somebody_asks(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    folder = World(Shape(seed=62, seconds=1.0, faults=0)).write(tmp_path / "run")
    asked = itertools.count()
    analyze.rehearse(folder, session, lambda: next(asked) >= 3)
    assert len(stored) == 3


def test_a_run_that_has_nothing_yet_is_rehearsed_too(
    tmp_path: Path, session: SparkSession, stored: list[Path]
) -> None:
    (tmp_path / "run").mkdir()
    analyze.rehearse(tmp_path / "run", session, lambda: False)
    assert len(stored) == len(analyze.JOBS)
