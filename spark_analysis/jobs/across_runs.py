"""Figures over all runs of a lake: latency by what surrounded it, and what faults of a kind did.

Definitions, used by the jobs and by their reference in the tests:

- A fault is *in force* from its injection until it was seen removed, or for ever where it was not;
  one that was never injected is not.
- The ``fault`` of an operation is ``kind:target`` of the faults that were in force in its run when
  it was invoked: each once, in the order of the alphabet, with ``+`` between; ``none`` where there
  was none.
- Final reads are left out. Open operations (info) are counted and have no latency.
"""

from collections.abc import Sequence
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from splitbrain.spark_analysis.frames import conform, struct_type
from splitbrain.spark_analysis.schemas import FAULT_EFFECTS, LATENCY_BY

Dimension = Literal["system", "f", "second", "node", "fault"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("system", "f", "second", "node", "fault")
NO_FAULT: Final = "none"
_NS_PER_MS: Final = 1e6
_NS_PER_SECOND: Final = 1_000_000_000
_FOREVER_NS: Final = 2**63 - 1


def latency_by(
    operations: DataFrame, faults: DataFrame, by: Sequence[Dimension] = DIMENSIONS
) -> DataFrame:
    """Exact latency quantiles over all runs, by outcome and any of the dimensions.

    A quantile p of n sorted values stands at rank p * (n - 1), linear between neighbours.

    Args:
        operations: rows of ``OPERATIONS``, with the column ``system`` where that is asked for.
        faults: rows of ``FAULTS`` of the same runs; few beside the operations.
        by: dimensions of the result; none gives one row for each outcome.

    Returns:
        Rows of ``LATENCY_BY``, in no order.
    """
    load = operations.where(~sql.col("final")).withColumns(
        {
            "latency_ns": sql.col("end_ns") - sql.col("start_ns"),
            "second": sql.floor(sql.col("start_ns") / sql.lit(_NS_PER_SECOND)).cast("long"),
        }
    )
    if "fault" in by:
        load = _with_fault(load, faults)
    grouped = load.groupBy(*by, "type").agg(
        sql.count(sql.lit(1)).alias("count"),
        sql.percentile("latency_ns", [0.5, 0.95, 0.99]).alias("quantiles"),
        (sql.max("latency_ns") / _NS_PER_MS).alias("max_ms"),
    )
    figures = {
        name: sql.col("quantiles")[place] / _NS_PER_MS
        for place, name in enumerate(("p50_ms", "p95_ms", "p99_ms"))
    }
    unasked = {
        field.name: sql.lit(None).cast(field.dataType)
        for field in struct_type(LATENCY_BY)
        if field.name in DIMENSIONS and field.name not in by
    }
    return conform(grouped.withColumns(figures | unasked), LATENCY_BY)


def fault_effects(windows: DataFrame, runs: DataFrame) -> DataFrame:
    """What faults of each kind and target did to each system, over all its runs.

    Args:
        windows: rows of ``WINDOWS``, see ``jobs.availability.fault_windows``.
        runs: rows of ``RUNS`` with the column ``system``.

    Returns:
        Rows of ``FAULT_EFFECTS``, in no order; a quantile is null where there is no value.
    """
    systems = sql.broadcast(runs.select("run_id", "system"))
    grouped = (
        windows.join(systems, "run_id")
        .groupBy("system", "kind", "target")
        .agg(
            sql.count_distinct("run_id").alias("runs"),
            sql.count(sql.lit(1)).alias("faults"),
            sql.count_if("verified").alias("verified"),
            sql.min("availability_during").alias("availability_during_min"),
            sql.avg("availability_during").alias("availability_during_mean"),
            *_distribution("failover", "failovers"),
            *_distribution("recovery", "recoveries"),
        )
    )
    return conform(grouped, FAULT_EFFECTS)


def _distribution(name: str, count: str) -> list[Column]:
    value = f"{name}_ms"
    return [
        sql.count(value).alias(count),
        sql.percentile(value, 0.5).alias(f"{name}_p50_ms"),
        sql.percentile(value, 0.99).alias(f"{name}_p99_ms"),
        sql.max(value).alias(f"{name}_max_ms"),
    ]


def _with_fault(operations: DataFrame, faults: DataFrame) -> DataFrame:
    """Operations with ``fault``: each looks into the few windows of its run, without a shuffle."""
    window = sql.struct(
        sql.col("invoked_ns").alias("start_ns"),
        sql.coalesce("removed_ns", sql.lit(_FOREVER_NS)).alias("end_ns"),
        sql.concat_ws(":", "kind", "target").alias("label"),
    )
    by_run = (
        faults.where(sql.col("invoked_ns").isNotNull())
        .groupBy("run_id")
        .agg(sql.collect_list(window).alias("windows"))
    )
    start = sql.col("start_ns")
    in_force = sql.filter(
        "windows", lambda one: (one["start_ns"] <= start) & (start < one["end_ns"])
    )
    labels = sql.array_sort(sql.array_distinct(sql.transform(in_force, lambda one: one["label"])))
    told = sql.when(sql.size(labels) > 0, sql.array_join(labels, "+")).otherwise(NO_FAULT)
    return operations.join(sql.broadcast(by_run), "run_id", "left").withColumn(
        "fault", sql.coalesce(told, sql.lit(NO_FAULT))
    )
