"""Figures of the gate: ``python -m splitbrain.spark_analysis.gate_process REQUEST OWNER``.

Answers a ``FiguresRequest`` with a ``FiguresAnswer``, see ``owned_process.answer``. Only here the
gate knows where tables come from: run folders, ingested if necessary, and runs of lakes.
"""

import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.figure import FiguresAnswer, FiguresRequest, SelectedRun
from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.gate_figures import SELECTED_RUNS, gate_figures
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.lake.reader import PARTITIONS, lake_at
from splitbrain.spark_analysis.owned_process import answer
from splitbrain.spark_analysis.session import one_sentence, spark_session

_FAILED: Final = (
    "measure the runs with Spark",
    "all that were selected",
    "Run splitbrain analyze on one of them to see more; the runs themselves are not affected.",
)


def measure(request: FiguresRequest) -> FiguresAnswer:
    """Compute the requested figures, in a session of its own.

    Raises:
        HarnessError: a run cannot be read, there is no Java, or Spark failed.
    """
    with spark_session() as session, one_sentence(*_FAILED):
        tables, runs, damage = open_selection(session, request.runs)
        rows = gate_figures(tables, runs, list(dict.fromkeys(request.subjects))).collect()
    figures = {row["subject"]: (row["value"], row["samples"], row["worst_in"]) for row in rows}
    return FiguresAnswer(figures, tuple(damage))


def open_selection(
    session: SparkSession, runs: Sequence[SelectedRun]
) -> tuple[RunTables, DataFrame, list[str]]:
    """Return the tables of the runs, rows of ``SELECTED_RUNS``, and the damage.

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
    """Return a run's id and location; ingest a run in a folder."""
    if run.folder is None:
        assert run.run_id is not None, "a run of a lake has an id"
        return run.run_id, str(run.lake)
    ingested = ingest(Path(run.folder))
    damage += (f"{run.folder}: {sentence}" for sentence in ingested.damage)
    return ingested.run_id, run.folder


def _of_lake(session: SparkSession, lake: str, selected: DataFrame) -> RunTables:
    """Open a lake with the rows of the selected runs and the columns that jobs need."""
    ids = sql.broadcast(selected.select("run_id"))
    tables = lake_at(session, lake)
    return RunTables(
        *(
            getattr(tables, name).drop(*PARTITIONS).join(ids, "run_id", "left_semi")
            for name in RunTables._fields
        )
    )


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], FiguresRequest, measure))
