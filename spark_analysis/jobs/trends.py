"""Trends: availability, failover and latency, run after run, and where their level changed.

Definitions, used by the jobs and by their reference in the tests:

- A *trend* is one measure of the runs of one system, workload and runtime, in the order of their
  starts. Runtimes stand apart because simulated time is virtual.
- ``availability`` of a run is the mean over its verified faults of the availability while they
  lasted, ``failover_ms`` the median over those that moved the leader, ``latency_p99_ms`` that of
  its ok operations other than final reads (availability and failover as in ``jobs.availability``).
- Runs with a planted bug or an expected violation, of unknown start or without such a figure are
  no points of it.
- Changes are sought among the last ``POINTS_MAX`` points of a trend.

Also adds up how often each fault met each role, epoch phase and workload, as counted when each run
was judged (``docs/faults/coverage.md``); a fault that hit nodes in two roles counts in both.
"""

from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.across import Change, Met, Point
from splitbrain.spark_analysis.change_points import change_points
from splitbrain.spark_analysis.frames import arrow_functions, conform, struct_type
from splitbrain.spark_analysis.schemas import table_of

#: Whether more is better, by measure.
MEASURES: Final = {"availability": True, "failover_ms": False, "latency_p99_ms": False}
#: The search takes time with the square of it.
POINTS_MAX: Final = 200
TREND: Final = ("system", "workload", "runtime", "measure")
_NS_PER_MS: Final = 1e6


def trend_points(operations: DataFrame, windows: DataFrame, runs: DataFrame) -> DataFrame:
    """Return a ``Point`` of each measure of every run, from the rows of ``ServiceWindow``."""
    by_fault = (
        windows.where("verified")
        .groupBy("run_id")
        .agg(
            sql.avg("availability_during").alias("availability"),
            sql.percentile("failover_ms", 0.5).alias("failover_ms"),
        )
    )
    latency = (
        operations.where(~sql.col("final") & (sql.col("type") == "ok"))
        .groupBy("run_id")
        .agg(
            (sql.percentile(sql.col("end_ns") - sql.col("start_ns"), 0.99) / _NS_PER_MS).alias(
                "latency_p99_ms"
            )
        )
    )
    measured = (
        runs.where((sql.size("bugs") == 0) & ~sql.col("expected"))
        .where(sql.col("started_at").isNotNull())
        .select(
            *("run_id", "system", "started_at"),
            sql.coalesce("workload", sql.lit("unknown")).alias("workload"),
            sql.coalesce("runtime", sql.lit("unknown")).alias("runtime"),
            sql.col("system_version").alias("version"),
        )
        .join(by_fault, "run_id", "left")
        .join(latency, "run_id", "left")
    )
    values = sql.array(
        *(
            sql.struct(sql.lit(name).alias("measure"), sql.col(name).alias("value"))
            for name in MEASURES
        )
    )
    points = measured.select("*", sql.inline(values)).where(sql.col("value").isNotNull())
    return conform(points, table_of(Point))


def trend_changes(points: DataFrame) -> DataFrame:
    """Return each ``Change`` of level, each trend by itself, in parallel."""
    newest = Window.partitionBy(*TREND).orderBy(sql.desc("started_at"), sql.desc("run_id"))
    recent = points.withColumn("age", sql.row_number().over(newest)).where(
        sql.col("age") <= POINTS_MAX
    )
    with arrow_functions():
        return recent.groupBy(*TREND).applyInArrow(_changes, struct_type(table_of(Change)))


def _changes(points: pa.Table) -> pa.Table:
    rows = changes_of(points.sort_by([("age", "descending")]).to_pylist())
    return pa.Table.from_pylist(rows, table_of(Change).schema.remove_metadata())


def changes_of(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of ``Change`` for the points of one trend in the order of time."""
    rows: list[dict[str, Any]] = []
    for change in change_points([point["value"] for point in points]):
        point = points[change.place]
        more_is_better = MEASURES[point["measure"]]
        rows.append(
            {
                **{name: point[name] for name in (*TREND, "started_at", "run_id")},
                "before": change.before,
                "after": change.after,
                "p_value": change.p_value,
                "worse": (change.after < change.before) == more_is_better,
            }
        )
    return rows


def fault_coverage(coverage: DataFrame) -> DataFrame:
    """Return in ``Met`` the sums over all runs of a lake."""
    added = coverage.groupBy("system", "workload", "kind", "role", "phase").agg(
        sql.count_distinct("run_id").alias("runs"),
        sql.sum("faults").alias("faults"),
        sql.sum("bitten").alias("bitten"),
    )
    return conform(added, table_of(Met))
