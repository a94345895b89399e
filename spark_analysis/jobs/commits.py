"""Acknowledged writes that the committed logs do not hold, and commits that nobody asked for.

Definitions, used by the jobs and by their reference in the tests:

- A write is *acknowledged* where it ended ok, unless it is a compare-and-set that was refused: it
  changed nothing, whether the log has a record of it or not.
- A node *holds* a write where its committed log has a record of the same epoch, offset, kind, key
  and value; where the system gave no position, of the same kind, key and value. What lies below
  the log's start offset is in the node's snapshot and counts as held.
- Of a node whose log was not dumped, or, for writes without a position, whose log has no
  beginning, nothing can be said: it is *unknown*.
- A write is **lost** where even with all unknown nodes no majority of the run's nodes holds it.
- A committed record is **phantom** where no operation explains it. A write with a position
  explains the record there. Every other write that may have happened (info, or ok without a
  position) explains one record of its kind, key and value; earlier records go first.
  Its reason is ``failed`` where such a write failed (and so certainly did not happen),
  ``duplicate`` where one was acknowledged elsewhere, else ``never-invoked``. A history that was
  torn off may lack the invocations of the last tenth of a second.

The verdict on lost commits belongs to ``checker``, which for sets looks at the final reads too and
counts equal writes without a position; these are the figures at any size.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_analysis.frames import conform
from spark_analysis.jobs.availability import PURE_KINDS
from spark_analysis.schemas import LOST, PHANTOM

_CONTENT: Final = ("run_id", "f", "key", "value")
_PLACE: Final = ("epoch", "offset", *_CONTENT)


def acknowledged_writes(operations: DataFrame) -> DataFrame:
    """The operations whose effect the committed logs must show.

    Args:
        operations: rows of ``OPERATIONS``.

    Returns:
        The rows of ``OPERATIONS`` that are acknowledged writes.
    """
    is_write = ~sql.col("f").isin(*PURE_KINDS)
    return operations.where((sql.col("type") == "ok") & is_write & ~refused())


def lost_commits(operations: DataFrame, committed: DataFrame, logs: DataFrame) -> DataFrame:
    """Acknowledged writes that no majority of the nodes can hold.

    Args:
        operations: rows of ``OPERATIONS``.
        committed: rows of ``COMMITTED``.
        logs: rows of ``LOGS``, one per node of the run.

    Returns:
        Rows of ``LOST``, in no order.
    """
    writes = _as_records(acknowledged_writes(operations))
    dumped = logs.where(sql.col("start_offset").isNotNull())
    records = committed.where(sql.col("f").isNotNull()).join(
        sql.broadcast(dumped.select("run_id", "node")), ["run_id", "node"], "left_semi"
    )
    nodes = logs.groupBy("run_id").agg(
        sql.count(sql.lit(1)).alias("nodes"),
        sql.count_if(sql.col("start_offset").isNull()).alias("not_dumped"),
        sql.collect_list("start_offset").alias("starts"),
        sql.collect_list(sql.when(sql.col("start_offset") > 0, sql.col("node"))).alias("cut_off"),
    )
    placed = sql.col("offset").isNotNull()
    judged = (
        _with_holders(writes.where(placed), records, _PLACE)
        .unionByName(_with_holders(writes.where(~placed), records, _CONTENT))
        .join(sql.broadcast(nodes), "run_id")
    )
    in_snapshots = sql.size(sql.filter("starts", lambda start: start > sql.col("offset")))
    # The snapshot of a node whose log was cut off at its beginning may hold a write that has no
    # position; nobody can tell.
    maybe_in_snapshots = sql.size(sql.array_except("cut_off", "holding"))
    holders = sql.size("holding") + sql.when(placed, in_snapshots).otherwise(sql.lit(0))
    unknown = sql.col("not_dumped") + sql.when(placed, sql.lit(0)).otherwise(maybe_in_snapshots)
    majority = sql.floor(sql.col("nodes") / 2) + 1
    lost = (
        judged.withColumn("holders", holders)
        .withColumn("unknown", unknown)
        .where(sql.col("holders") + sql.col("unknown") < majority)
        .withColumnsRenamed(
            {"value": "argument", "epoch": "position_epoch", "offset": "position_offset"}
        )
    )
    return conform(lost, LOST)


def phantom_commits(operations: DataFrame, committed: DataFrame) -> DataFrame:
    """Committed records, of any node, that no operation explains.

    Args:
        operations: rows of ``OPERATIONS``.
        committed: rows of ``COMMITTED``.

    Returns:
        Rows of ``PHANTOM``, in no order.
    """
    writes = _as_records(operations.where(~sql.col("f").isin(*PURE_KINDS)))
    placed = (sql.col("type") == "ok") & sql.col("offset").isNotNull()
    records = (
        committed.where(sql.col("f").isNotNull())
        .groupBy(*_PLACE)
        .agg(sql.sort_array(sql.collect_set("node")).alias("nodes"))
    )
    unplaced = _join(records, writes.where(placed), _PLACE, "left_anti")
    may_explain = (sql.col("type") == "info") | (
        (sql.col("type") == "ok") & sql.col("offset").isNull()
    )
    by_content = writes.groupBy(*_CONTENT).agg(
        sql.count_if(may_explain).alias("explaining"),
        sql.count_if(sql.col("type") == "fail").alias("failed"),
        sql.count_if(sql.col("type") == "ok").alias("acknowledged"),
    )
    order = Window.partitionBy(*_CONTENT).orderBy("offset", "epoch")
    ranked = unplaced.withColumn("rank", sql.row_number().over(order))
    phantom = (
        _join(ranked, by_content, _CONTENT, "left")
        .where(sql.col("rank") > sql.coalesce("explaining", sql.lit(0)))
        .withColumn(
            "reason",
            sql.when(sql.col("failed") > 0, "failed")
            .when(sql.col("acknowledged") > 0, "duplicate")
            .otherwise("never-invoked"),
        )
    )
    return conform(phantom, PHANTOM)


def refused() -> Column:
    """Whether an operation is a compare-and-set ended with the result [expected, new, false]."""
    refused = (sql.col("f") == "cas") & sql.col("result").endswith("false]")
    return sql.coalesce(refused, sql.lit(False))


def _as_records(operations: DataFrame) -> DataFrame:
    """Operations with the column names of committed records."""
    return operations.withColumnsRenamed(
        {"argument": "value", "position_epoch": "epoch", "position_offset": "offset"}
    )


def _with_holders(writes: DataFrame, records: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """The writes with ``holding``, the names of the nodes whose log has an equal record."""
    by_record = records.groupBy(*columns).agg(sql.collect_set("node").alias("holding"))
    return _join(writes, by_record, columns, "left").withColumn(
        "holding", sql.coalesce("holding", sql.array().cast("array<string>"))
    )


def _join(left: DataFrame, right: DataFrame, columns: tuple[str, ...], how: str) -> DataFrame:
    """Join where the columns are equal, null equal to null; the left side's columns stay."""
    renamed = right.withColumnsRenamed({name: f"right_{name}" for name in columns})
    condition = [left[name].eqNullSafe(renamed[f"right_{name}"]) for name in columns]
    return left.join(renamed, condition, how).drop(*(f"right_{name}" for name in columns))
