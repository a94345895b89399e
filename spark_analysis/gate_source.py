"""Where the gate's figures get their tables from; the one place that knows.

Run folders, ingested where they were not, and runs of lakes. Nothing else of the gate knows how
runs are stored.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.figure import Subject
from splitbrain.spark_analysis.gate_selection import SELECTED_RUNS
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.lake.hadoop_store import HadoopStore
from splitbrain.spark_analysis.lake.reader import PARTITIONS, open_lake
from splitbrain.spark_analysis.lake.store import LocalStore, local_root
from splitbrain.spark_analysis.tables import RunTables, open_tables


class SelectedRun(msgspec.Struct, frozen=True):
    """One run to be measured, and what conditions on runs look at."""

    #: One of the two: a folder, or a lake and the run's id in it.
    folder: str | None
    system: str
    version: str
    workload: str
    runtime: str
    lake: str | None = None
    run_id: str | None = None


class FiguresRequest(msgspec.Struct, frozen=True):
    """What the gate asks of Spark."""

    #: At least one.
    runs: tuple[SelectedRun, ...]
    #: Figures of ``figure_catalogue``; at least one.
    subjects: tuple[Subject, ...]


class FiguresAnswer(msgspec.Struct, frozen=True):
    """What Spark answers."""

    #: Subject's text to its value and samples.
    figures: dict[str, tuple[float | None, int]]
    #: What of the runs could not be read, one sentence each.
    damage: tuple[str, ...]


def open_selection(
    session: SparkSession, runs: Sequence[SelectedRun]
) -> tuple[RunTables, DataFrame, list[str]]:
    """The tables of the runs, rows of ``SELECTED_RUNS``, and what could not be read.

    Raises:
        HarnessError: a folder cannot be read or written, or two runs are one to the jobs.
    """
    damage: list[str] = []
    rows: list[tuple[str, ...]] = []
    place_by_id: dict[str, str] = {}
    for run in runs:
        run_id, place = _identified(run, damage)
        if place_by_id.setdefault(run_id, place) != place:
            raise HarnessError(
                "measure the runs",
                place,
                f"it holds the same run as {place_by_id[run_id]}",
                "Select one of them.",
            )
        rows.append((run_id, run.system, run.version, run.workload, run.runtime))
    selected = session.createDataFrame(rows, SELECTED_RUNS)
    parts = [
        _of_lake(session, lake, selected) for lake in sorted({run.lake for run in runs if run.lake})
    ]
    folders = [Path(run.folder) for run in runs if run.folder is not None]
    if folders:
        parts.append(open_tables(session, folders))
    together = (
        functools.reduce(DataFrame.unionByName, tables) for tables in zip(*parts, strict=True)
    )
    return RunTables(*together), selected, damage


def _identified(run: SelectedRun, damage: list[str]) -> tuple[str, str]:
    """Id of a run and where it stands; a run in a folder is ingested for it."""
    if run.folder is None:
        assert run.run_id is not None, "a run of a lake has an id"
        return run.run_id, str(run.lake)
    ingested = ingest(Path(run.folder))
    damage += (f"{run.folder}: {sentence}" for sentence in ingested.damage)
    return ingested.run_id, run.folder


def _of_lake(session: SparkSession, lake: str, selected: DataFrame) -> RunTables:
    """The tables of a lake, with the rows of the selected runs and the jobs' columns alone."""
    ids = sql.broadcast(selected.select("run_id"))
    root = local_root(lake)
    store = HadoopStore(session, lake) if root is None else LocalStore(root)
    tables = open_lake(session, store)
    return RunTables(
        *(
            getattr(tables, name).drop(*PARTITIONS).join(ids, "run_id", "left_semi")
            for name in RunTables._fields
        )
    )
