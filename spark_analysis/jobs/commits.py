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

from spark_analysis.frames import conform, few_or_many
from spark_analysis.jobs.availability import PURE_KINDS
from spark_analysis.schemas import LOST, PHANTOM

_CONTENT: Final = ("run_id", "f", "key", "value")
_PLACE: Final = ("epoch", "offset", *_CONTENT)
#: A set of nodes is a number of 64 bits, of which one is its sign.
_NODES_MAX: Final = 63


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
    bits = dumped.select("run_id", "node", _bit_of_node().alias("bit"))
    records = committed.where(sql.col("f").isNotNull()).join(
        sql.broadcast(bits), ["run_id", "node"]
    )
    has_place = sql.col("offset").isNotNull()
    placed, unplaced = writes.where(has_place), writes.where(~has_place)
    # Most systems give positions: then nothing of this is left to be read a second time.
    elsewhere = sql.broadcast(unplaced.select("run_id").distinct())
    nodes = _nodes_of_runs(logs, bits)
    return conform(
        _not_held(placed, records, nodes, _PLACE)
        .unionByName(
            _not_held(unplaced, records.join(elsewhere, "run_id", "left_semi"), nodes, _CONTENT)
        )
        .withColumnsRenamed(
            {"value": "argument", "epoch": "position_epoch", "offset": "position_offset"}
        ),
        LOST,
    )


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
    records = committed.where(sql.col("f").isNotNull())
    unexplained = few_or_many(_only_in(records, writes.where(placed)))
    may_explain = (sql.col("type") == "info") | (
        (sql.col("type") == "ok") & sql.col("offset").isNull()
    )
    contents = unexplained.few(unexplained.rows.select(*_CONTENT).distinct())
    by_content = (
        _join(writes, contents, _CONTENT, "left_semi")
        .groupBy(*_CONTENT)
        .agg(
            sql.count_if(may_explain).alias("explaining"),
            sql.count_if(sql.col("type") == "fail").alias("failed"),
            sql.count_if(sql.col("type") == "ok").alias("acknowledged"),
        )
    )
    order = Window.partitionBy(*_CONTENT).orderBy("offset", "epoch")
    ranked = unexplained.rows.withColumn("rank", sql.row_number().over(order))
    phantom = few_or_many(
        _join(ranked, by_content, _CONTENT, "left")
        .where(sql.col("rank") > sql.coalesce("explaining", sql.lit(0)))
        .withColumn(
            "reason",
            sql.when(sql.col("failed") > 0, "failed")
            .when(sql.col("acknowledged") > 0, "duplicate")
            .otherwise("never-invoked"),
        )
        .select(*_PLACE, "reason")
    )
    standing = (
        _join(records, phantom.few(phantom.rows), _PLACE, "inner")
        .groupBy(*_PLACE, "reason")
        .agg(sql.sort_array(sql.collect_set("node")).alias("nodes"))
    )
    return conform(standing, PHANTOM)


def refused() -> Column:
    """Whether an operation is a compare-and-set ended with the result [expected, new, false]."""
    refused = (sql.col("f") == "cas") & sql.col("result").endswith("false]")
    return sql.coalesce(refused, sql.lit(False))


def _as_records(operations: DataFrame) -> DataFrame:
    """Operations with the column names of committed records."""
    return operations.withColumnsRenamed(
        {"argument": "value", "position_epoch": "epoch", "position_offset": "offset"}
    )


def _bit_of_node() -> Column:
    """A bit for each node of a run, so that a set of nodes is one number."""
    number = sql.row_number().over(Window.partitionBy("run_id").orderBy("node")) - 1
    refusal = sql.raise_error(sql.lit(f"a run of more than {_NODES_MAX} nodes"))
    bit = sql.call_function("shiftleft", sql.lit(1).cast("long"), number)
    return sql.when(number < _NODES_MAX, bit).otherwise(refusal)


def _nodes_of_runs(logs: DataFrame, bits: DataFrame) -> DataFrame:
    """Of each run how many nodes there are, and what is not known of their logs."""
    has_no_beginning = sql.col("start_offset") > 0
    majority = sql.floor(sql.count(sql.lit(1)) / 2) + 1
    not_dumped = sql.count_if(sql.col("start_offset").isNull())
    return (
        logs.join(sql.broadcast(bits), ["run_id", "node"], "left")
        .groupBy("run_id")
        .agg(
            majority.alias("majority"),
            not_dumped.alias("not_dumped"),
            # That many holders are enough, whatever else is known.
            (majority - not_dumped).alias("needed"),
            sql.collect_list("start_offset").alias("starts"),
            sql.coalesce(sql.bit_or(sql.when(has_no_beginning, sql.col("bit"))), sql.lit(0)).alias(
                "cut_off"
            ),
        )
    )


def _not_held(
    writes: DataFrame, records: DataFrame, nodes: DataFrame, columns: tuple[str, ...]
) -> DataFrame:
    """The writes, with ``holders`` and ``unknown``, that no majority can hold.

    Writes and records meet in one aggregation of fixed width, which needs neither a sort nor the
    other columns of a write; these are fetched for the few that are not held.
    """
    nothing = sql.lit(0).cast("long")
    met = (
        writes.select(*columns, sql.lit(True).alias("written"), nothing.alias("bit"))
        .unionAll(records.select(*columns, sql.lit(False), "bit"))
        .groupBy(*columns)
        .agg(sql.bool_or("written").alias("written"), sql.bit_or("bit").alias("holding"))
        .where("written")
        # A narrow condition that is false for nearly all goes before the exact one.
        .join(sql.broadcast(nodes.select("run_id", "needed")), "run_id")
        .where(sql.bit_count("holding") < sql.col("needed"))
        .drop("needed")
        .join(sql.broadcast(nodes), "run_id")
    )
    holders, unknown = sql.bit_count("holding"), sql.col("not_dumped")
    if "offset" in columns:
        in_snapshots = sql.size(sql.filter("starts", lambda start: start > sql.col("offset")))
        all_holders = holders + in_snapshots
    else:
        # The snapshot of a node whose log was cut off at its beginning may hold a write that has no
        # position; nobody can tell.
        unknown += sql.bit_count(sql.col("cut_off").bitwiseAND(sql.bitwise_not("holding")))
        all_holders = holders
    lost = few_or_many(
        met.where(all_holders + unknown < sql.col("majority")).select(
            *columns, all_holders.alias("holders"), unknown.alias("unknown")
        )
    )
    return _join(writes, lost.few(lost.rows), columns, "inner")


def _only_in(records: DataFrame, writes: DataFrame) -> DataFrame:
    """The places of records, each once, at which no write was acknowledged."""
    return (
        records.select(*_PLACE, sql.lit(True).alias("stands"))
        .unionAll(writes.select(*_PLACE, sql.lit(False)))
        .groupBy(*_PLACE)
        .agg(sql.bool_and("stands").alias("only"))
        .where("only")
        .drop("only")
    )


def _join(left: DataFrame, right: DataFrame, columns: tuple[str, ...], how: str) -> DataFrame:
    """Join where the columns are equal, null equal to null; the left side's columns stay."""
    renamed = right.withColumnsRenamed({name: f"right_{name}" for name in columns})
    condition = [left[name].eqNullSafe(renamed[f"right_{name}"]) for name in columns]
    return left.join(renamed, condition, how).drop(*(f"right_{name}" for name in columns))
