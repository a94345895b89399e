"""The figures of ``finding_figures``: what the jobs found in the selected runs, as one row each.

Must never judge, and no data is null, never zero.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.figure import Condition
from splitbrain.spark_analysis.gate_selection import Selection, one_row
from splitbrain.spark_analysis.jobs.client_errors import client_errors
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.elections import election_timeline, without_fault
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads

Conditions = Sequence[Condition]
_REGISTER_WRITES: Final = ("write", "cas")


def divergence(selection: Selection, conditions: Conditions) -> DataFrame:
    """Figures of logs that differ."""
    tables = selection.tables
    found = selection.once("divergences", lambda: first_divergences(tables.committed, tables.logs))
    told = _dumped(selection, conditions, logs=2)
    pairs = _count(selection.chosen(found, conditions), "pairs")
    return one_row(
        told.crossJoin(pairs), {"diverged_logs": _known(sql.col("pairs"), sql.col("samples"))}
    )


def duplicated(selection: Selection, conditions: Conditions) -> DataFrame:
    """Figures of what is there more often than it may be."""
    tables = selection.tables
    found = selection.once("duplicates", lambda: duplicates(tables.operations, tables.committed))
    sets = selection.once(
        "runs with sets", lambda: _runs_that_read(tables.operations, sql.col("f") == "add")
    )
    counts = selection.chosen(found, conditions).agg(
        sql.count_if(sql.col("kind") == "committed").alias("committed"),
        sql.count_if(sql.col("kind") == "read").alias("read"),
    )
    everything = counts.crossJoin(_dumped(selection, conditions, logs=1)).crossJoin(
        _count(selection.chosen(sets, conditions), "sets")
    )
    return one_row(
        everything,
        {
            "duplicated_commits": _known(sql.col("committed"), sql.col("samples")),
            "duplicated_elements": _known(sql.col("read"), sql.col("sets")),
        },
    )


def stale_read(selection: Selection, conditions: Conditions) -> DataFrame:
    """Figures of reads of what was overwritten."""
    operations = selection.tables.operations
    found = selection.once("stale reads", lambda: stale_reads(operations))
    registers = selection.once(
        "runs with registers",
        lambda: _runs_that_read(operations, sql.col("f").isin(*_REGISTER_WRITES)),
    )
    ages = selection.chosen(found, conditions).agg(
        sql.count(sql.lit(1)).alias("count"),
        sql.coalesce(sql.max("age_ms"), sql.lit(0.0)).alias("longest"),
    )
    samples = sql.col("samples")
    return one_row(
        ages.crossJoin(_count(selection.chosen(registers, conditions), "samples")),
        {
            "stale_reads": _known(sql.col("count"), samples),
            "stale_read_max_ms": _known(sql.col("longest"), samples),
        },
    )


def election(selection: Selection, conditions: Conditions) -> DataFrame:
    """Figures of elections."""
    tables = selection.tables
    timeline = selection.once(
        "elections",
        lambda: election_timeline(tables.state_events, tables.faults, tables.operations),
    )
    unprovoked = selection.once(
        "elections without fault", lambda: without_fault(timeline, tables.faults)
    )
    told = selection.chosen(tables.state_events.select("run_id").distinct(), conditions)
    gaps = selection.chosen(timeline, conditions).agg(
        sql.coalesce(sql.max("leaderless_ms"), sql.lit(0.0)).alias("longest")
    )
    epochs = selection.chosen(unprovoked, conditions).agg(
        sql.count_distinct("run_id", "epoch").alias("epochs")
    )
    samples = sql.col("samples")
    return one_row(
        _count(told, "samples").crossJoin(gaps).crossJoin(epochs),
        {
            "elections_without_fault": _known(sql.col("epochs"), samples),
            "leaderless_max_ms": _known(sql.col("longest"), samples),
        },
    )


def outcome(selection: Selection, conditions: Conditions) -> DataFrame:
    """Shares of the operations that did not end ok."""
    operations = selection.tables.operations
    asked = selection.once(
        "operations asked",
        lambda: operations.groupBy("run_id", "f").agg(sql.count(sql.lit(1)).alias("count")),
    )
    errors = selection.once("client errors", lambda: client_errors(operations))
    counts = selection.chosen(errors, conditions, operation="f").agg(
        *(
            sql.coalesce(
                sql.sum(sql.when(sql.col("type") == kind, sql.col("count"))), sql.lit(0)
            ).alias(kind)
            for kind in ("fail", "info")
        )
    )
    all_of = selection.chosen(asked, conditions, operation="f").agg(
        sql.sum("count").alias("samples")
    )
    samples = sql.col("samples")
    return one_row(
        counts.crossJoin(all_of),
        {
            # Nothing asked is null: a sum of no rows.
            "operations_failed": (sql.col("fail") / samples, samples),
            "operations_open": (sql.col("info") / samples, samples),
        },
    )


def _known(value: Column, samples: Column) -> tuple[Column, Column]:
    """The value where anything could be found."""
    return sql.when(samples > 0, value), samples


def _count(frame: DataFrame, name: str) -> DataFrame:
    return frame.agg(sql.count(sql.lit(1)).alias(name))


def _dumped(selection: Selection, conditions: Conditions, *, logs: int) -> DataFrame:
    """``samples``: runs with so many dumped logs."""
    runs = (
        selection.tables.logs.where(sql.col("start_offset").isNotNull())
        .groupBy("run_id")
        .agg(sql.count(sql.lit(1)).alias("logs"))
        .where(sql.col("logs") >= logs)
    )
    return _count(selection.chosen(runs, conditions), "samples")


def _runs_that_read(operations: DataFrame, writes: Column) -> DataFrame:
    """``run_id`` of runs with an acknowledged read, and with an operation of those."""
    is_read = (sql.col("f") == "read") & (sql.col("type") == "ok")
    return (
        operations.groupBy("run_id")
        .agg(sql.bool_or(is_read).alias("read"), sql.bool_or(writes).alias("wrote"))
        .where(sql.col("read") & sql.col("wrote"))
        .select("run_id")
    )
