"""Where the gate's figures get their tables from; the one place that knows.

Today the run folders that were selected, ingested where they were not. A lake takes its place here:
nothing else of the gate knows how runs are stored.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from contracts.errors import HarnessError
from contracts.figure import Subject
from spark_analysis.gate_figures import SELECTED_RUNS
from spark_analysis.ingest import ingest
from spark_analysis.tables import RunTables, open_tables


class SelectedRun(msgspec.Struct, frozen=True):
    """One run to be measured, and what conditions on runs look at."""

    folder: str
    system: str
    version: str
    workload: str
    runtime: str


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
    rows: list[tuple[str, ...]] = []
    folder_by_id: dict[str, str] = {}
    damage: list[str] = []
    for run in runs:
        ingested = ingest(Path(run.folder))
        other = folder_by_id.setdefault(ingested.run_id, run.folder)
        if other != run.folder:
            raise HarnessError(
                "measure the runs",
                run.folder,
                f"it has the same run id as {other}",
                "Select one of them.",
            )
        damage += (f"{run.folder}: {sentence}" for sentence in ingested.damage)
        rows.append((ingested.run_id, run.system, run.version, run.workload, run.runtime))
    tables = open_tables(session, [Path(run.folder) for run in runs])
    return tables, session.createDataFrame(rows, SELECTED_RUNS), damage
