"""All runs of a lake: ``python -m splitbrain.spark_analysis.across_process REQUEST OWNER``.

Answers an ``AcrossRequest`` with ``Findings``, see ``owned_process.answer``. Output is bounded at
any size of the lake: each table is cut at its most telling rows, and says how many there were.
"""

import datetime as dt
import sys
from typing import Final, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.across import (
    AcrossRequest,
    Cell,
    Change,
    Failure,
    Findings,
    Flake,
    Met,
    Point,
    RowAcross,
    Shown,
    ShownPoints,
)
from splitbrain.spark_analysis.frames import rows_of
from splitbrain.spark_analysis.jobs.availability import fault_windows
from splitbrain.spark_analysis.jobs.outcomes import (
    failures_since,
    flakes,
    outcome_matrix,
    run_fingerprints,
)
from splitbrain.spark_analysis.jobs.trends import (
    POINTS_MAX,
    TREND,
    fault_coverage,
    trend_changes,
    trend_points,
)
from splitbrain.spark_analysis.lake.reader import LakeTables, lake_at
from splitbrain.spark_analysis.owned_process import answer
from splitbrain.spark_analysis.session import one_sentence, spark_session

#: Rows of one table in the output.
ROWS_MAX: Final = 500
TRENDS_MAX: Final = 60
_Row = TypeVar("_Row", bound=RowAcross)


def answer_to(request: AcrossRequest) -> Findings:
    """Look at all runs, in a session of its own.

    Raises:
        HarnessError: the lake cannot be read, there is no Java, or Spark failed.
    """
    failed = ("look at all runs", request.lake, "Check that the lake can be read; it is as it was.")
    with spark_session(application="splitbrain across") as session, one_sentence(*failed):
        return look_across(session, request)


def look_across(session: SparkSession, request: AcrossRequest) -> Findings:
    """Run all jobs over the runs of a lake.

    Raises:
        HarnessError: there is no run in it, or a later version wrote it.
        OSError: it cannot be read.
    """
    lake = lake_at(session, request.lake)
    since = request.since or _last_day(lake)
    fingerprints = run_fingerprints(lake.verdicts, lake.runs).localCheckpoint()
    windows = fault_windows(lake.operations, lake.faults)
    points = trend_points(lake.operations, windows, lake.runs).localCheckpoint()
    changes = trend_changes(points).localCheckpoint()
    by_state = sql.array_position(sql.array(*map(sql.lit, ("new", "known", "resolved"))), "state")
    return Findings(
        lake=request.lake,
        since=since,
        runs=lake.runs.count(),
        matrix=_shown(
            outcome_matrix(lake.runs, lake.faults),
            Cell,
            *("expected", "system", "workload", "version", "fault"),
        ),
        failures=_shown(
            failures_since(fingerprints, lake.runs, since),
            Failure,
            *("expected", by_state, sql.desc("runs_since"), "fingerprint"),
        ),
        flakes=_shown(
            flakes(fingerprints, lake.runs),
            Flake,
            *(sql.desc("runs"), "plan_digest", "fingerprint"),
        ),
        coverage=_shown(
            fault_coverage(lake.coverage),
            Met,
            *(sql.desc("faults"), "system", "kind", "role", "phase", "workload"),
        ),
        points=shown_points(points, changes),
        changes=_shown(changes, Change, sql.desc("started_at"), *TREND),
    )


def _last_day(lake: LakeTables) -> dt.datetime:
    row = lake.runs.agg(sql.max("started_at").alias("last")).toArrow().to_pylist()[0]
    last: dt.datetime = row["last"] or dt.datetime.fromtimestamp(0, dt.UTC)
    return last.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _shown(frame: DataFrame, row: type[_Row], *order: str | Column) -> Shown[_Row]:
    kept = frame.localCheckpoint()
    return Shown(rows_of(kept, row, *order, limit=ROWS_MAX), kept.count())


def shown_points(points: DataFrame, changes: DataFrame) -> ShownPoints:
    """Choose trends that became worse, then changed ones, then the longest.

    A trend that became worse must never be left out for one that is merely longer.
    """
    lengths = points.groupBy(*TREND).agg(sql.count(sql.lit(1)).alias("length")).localCheckpoint()
    changed = changes.groupBy(*TREND).agg(sql.max(sql.col("worse").cast("int")).alias("worse"))
    chosen_trends = (
        lengths.join(changed, list(TREND), "left")
        .orderBy(sql.desc_nulls_last("worse"), sql.desc("length"), *TREND)
        .limit(TRENDS_MAX)
    )
    newest = Window.partitionBy(*TREND).orderBy(sql.desc("started_at"), sql.desc("run_id"))
    chosen = (
        points.join(sql.broadcast(chosen_trends.select(*TREND)), list(TREND), "left_semi")
        .withColumn("age", sql.row_number().over(newest))
        .where(sql.col("age") <= POINTS_MAX)
    )
    shown = rows_of(chosen, Point, *TREND, "started_at", "run_id", limit=TRENDS_MAX * POINTS_MAX)
    return ShownPoints(shown, points.count(), lengths.count())


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], AcrossRequest, answer_to))
