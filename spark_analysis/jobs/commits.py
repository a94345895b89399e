"""Acknowledged writes that the committed logs do not hold, and commits that nobody asked for.

Definitions, used by the jobs and by their reference in the tests:

- A write is *acknowledged* where it ended ok, unless it was refused (a compare-and-set met another
  value, a create found what it was to make, a delete found nothing) or is declared to leave no
  record (``frames.is_write``).
- A node *holds* a write where its committed log has a record of the same epoch, offset, kind, key
  and value; where the system gave no position, of the same kind, key and value. Kind and value are
  those that the system's records have (``frames.as_records``). A write below the log's start offset
  is in the node's snapshot and counts as held.
- Of a node whose log was not dumped, or, for writes without a position, whose log has no
  beginning, nothing can be said: it is *unknown*.
- A write is **lost** where even with all unknown nodes no majority of the run's nodes holds it.
- A committed record is **phantom** where no operation explains it. A write with a position
  explains the record there. Every other write that may have happened (info, or ok without a
  position) explains one record of its kind, key and value; earlier records go first.
  Its reason is ``failed`` where such a write failed (and so certainly did not happen),
  ``duplicate`` where one was acknowledged elsewhere, else ``never-invoked``. A history that was
  torn off may lack the invocations of the last tenth of a second.

``checker.lost_commits`` looks at the final reads of sets too and counts equal writes without a
position; these are the figures at any size.
"""

import functools
import operator
from typing import Final

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import LostCommit, PhantomCommit
from splitbrain.spark_analysis.frames import (
    Counted,
    as_records,
    conform,
    few_or_many,
    has_record,
    is_write,
)
from splitbrain.spark_analysis.schemas import table_of

_REQUEST: Final = ("f", "key", "value")
_CONTENT: Final = ("run_id", *_REQUEST)
_PLACE: Final = ("epoch", "offset", *_CONTENT)
#: Columns that stand for a row where rows by the million are compared, see ``_keyed``.
_KEY: Final = ("at", "content")
#: Set of nodes as a number: their bits, then how many of them are needed, then a bit for an
#: acknowledged write.
_NODES_MAX: Final = 48
_NODES_MASK: Final = (1 << _NODES_MAX) - 1
_NEEDED_MAX: Final = 255
_WRITTEN: Final = 1 << 62
#: Offsets named one by one, so that Parquet can skip row groups.
_NAMED_MAX: Final = 1_000


def acknowledged_writes(operations: DataFrame) -> DataFrame:
    """Return the rows of operations whose effect the committed logs must show."""
    return operations.where((sql.col("type") == "ok") & has_record())


def lost_commits(operations: DataFrame, committed: DataFrame, logs: DataFrame) -> DataFrame:
    """Return a ``LostCommit`` of each acknowledged write that no majority of the nodes can hold."""
    bits = _bits_of_nodes(logs).localCheckpoint(eager=False)
    nodes = _nodes_of_runs(logs, bits)
    # Where most logs are missing nothing is certain, and no write need be looked at.
    certain = nodes.where(sql.col("needed") > 0).select("run_id", "needed")
    judged = certain.localCheckpoint(eager=False)
    writes = as_records(acknowledged_writes(operations)).join(
        sql.broadcast(judged.select("run_id")), "run_id", "left_semi"
    )
    is_placed = sql.col("offset").isNotNull()
    holding = bits.join(judged, "run_id").select(
        _hash("run_id", "node").alias("of_node"),
        sql.col("bit").bitwiseOR(_shifted(sql.col("needed"), _NODES_MAX)).alias("holding"),
    )
    records = (
        committed.where(sql.col("f").isNotNull())
        .withColumn("of_node", _hash("run_id", "node"))
        .join(sql.broadcast(holding), "of_node")
    )
    # One key for each run stands for its writes without a position: without an offset it matches no
    # record, so the same reading shows whether there are any.
    marked = writes.withColumns({name: sql.when(is_placed, sql.col(name)) for name in _REQUEST})
    candidates = _hardly_held(marked, records, _PLACE)
    lost = _not_held(writes.where(is_placed), candidates, nodes, _PLACE)
    # Most systems give positions: then nothing of this is read a second time.
    if candidates.size and not candidates.rows.where(sql.col("at").isNull()).isEmpty():
        unplaced = writes.where(~is_placed)
        elsewhere = sql.broadcast(unplaced.select("run_id").distinct())
        others = records.join(elsewhere, "run_id", "left_semi")
        candidates = _hardly_held(unplaced, others, _CONTENT)
        lost = lost.unionByName(_not_held(unplaced, candidates, nodes, _CONTENT))
    return conform(
        # As it was asked for.
        lost.drop("f").withColumnsRenamed(
            {"asked_f": "f", "epoch": "position_epoch", "offset": "position_offset"}
        ),
        table_of(LostCommit),
    )


def phantom_commits(operations: DataFrame, committed: DataFrame) -> DataFrame:
    """Return a ``PhantomCommit`` of each committed record, of any node, without operation."""
    writes = as_records(operations.where(is_write()))
    placed = (sql.col("type") == "ok") & sql.col("offset").isNotNull()
    records = committed.where(sql.col("f").isNotNull())
    places = few_or_many(_only_in(records, writes.where(placed)))
    unexplained = few_or_many(
        _same(records, places, _PLACE)
        .groupBy(*_PLACE)
        .agg(sql.sort_array(sql.collect_set("node")).alias("nodes"))
    )
    may_explain = (sql.col("type") == "info") | (
        (sql.col("type") == "ok") & sql.col("offset").isNull()
    )
    contents = unexplained.few(_keyed(unexplained.rows, _CONTENT, *_CONTENT).distinct())
    by_content = (
        _keyed(writes, _CONTENT, "type", "offset")
        .join(contents, list(_KEY))
        .groupBy(*_CONTENT)
        .agg(
            sql.count_if(may_explain).alias("explaining"),
            sql.count_if(sql.col("type") == "fail").alias("failed"),
            sql.count_if(sql.col("type") == "ok").alias("acknowledged"),
        )
    )
    order = Window.partitionBy(*_CONTENT).orderBy("offset", "epoch")
    ranked = unexplained.rows.withColumn("rank", sql.row_number().over(order))
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
    return conform(phantom, table_of(PhantomCommit))


def _bits_of_nodes(logs: DataFrame) -> DataFrame:
    """Give each node of a run with a dumped log a bit, so that a set of them is one number."""
    number = sql.row_number().over(Window.partitionBy("run_id").orderBy("node")) - 1
    refusal = sql.raise_error(sql.lit(f"a run of more than {_NODES_MAX} nodes"))
    bit = sql.when(number < _NODES_MAX, _shifted(sql.lit(1), number)).otherwise(refusal)
    dumped = logs.where(sql.col("start_offset").isNotNull())
    return dumped.select("run_id", "node", bit.alias("bit"))


def _shifted(number: Column, places: Column | int) -> Column:
    return sql.call_function("shiftleft", number.cast("long"), sql.lit(places))


def _nodes_of_runs(logs: DataFrame, bits: DataFrame) -> DataFrame:
    """Count the nodes of each run, and those of unknown logs."""
    has_no_beginning = sql.col("start_offset") > 0
    majority = sql.floor(sql.count(sql.lit(1)) / 2) + 1
    not_dumped = sql.count_if(sql.col("start_offset").isNull())
    return (
        logs.join(sql.broadcast(bits), ["run_id", "node"], "left")
        .groupBy("run_id")
        .agg(
            majority.alias("majority"),
            not_dumped.alias("not_dumped"),
            # Holders that are enough, whatever the unknown logs hold.
            sql.least(majority - not_dumped, sql.lit(_NEEDED_MAX)).alias("needed"),
            sql.collect_list("start_offset").alias("starts"),
            sql.coalesce(sql.bit_or(sql.when(has_no_beginning, sql.col("bit"))), sql.lit(0)).alias(
                "cut_off"
            ),
        )
    )


def _hardly_held(writes: DataFrame, records: DataFrame, columns: tuple[str, ...]) -> Counted:
    """Return the keys of writes that a majority may not hold, and the nodes that hold each.

    Writes and records meet in one aggregation of a few numbers, which needs neither a sort nor the
    other columns of a write. Nearly all are held, and the exact condition is for the few others.
    """
    holding = sql.col("holding")
    needed = sql.shiftright(holding.bitwiseAND(sql.lit(_NEEDED_MAX << _NODES_MAX)), _NODES_MAX)
    asked = _keyed(writes, columns, sql.lit(_WRITTEN).alias("holding"))
    return few_or_many(
        _by_key(asked, _keyed(records, columns, "holding"))
        .agg(sql.bit_or("holding").alias("holding"))
        .where(holding >= _WRITTEN)
        .where((_holders(holding) < needed) | (needed == 0))
    )


def _not_held(
    writes: DataFrame, candidates: Counted, nodes: DataFrame, columns: tuple[str, ...]
) -> DataFrame:
    """Return the writes, with ``holders`` and ``unknown``, that no majority can hold."""
    holding = sql.col("holding")
    candidates_held = _same(writes, candidates, columns).join(sql.broadcast(nodes), "run_id")
    holders, unknown = _holders(holding), sql.col("not_dumped")
    if "offset" in columns:
        in_snapshots = sql.size(sql.filter("starts", lambda start: start > sql.col("offset")))
        all_holders = holders + in_snapshots
    else:
        # The snapshot of a node whose log was cut off at its beginning may hold a write without a
        # position.
        unknown += sql.bit_count(sql.col("cut_off").bitwiseAND(sql.bitwise_not(holding)))
        all_holders = holders
    return (
        candidates_held.where(all_holders + unknown < sql.col("majority"))
        .withColumns({"holders": all_holders, "unknown": unknown})
        .drop("holding", *nodes.drop("run_id").columns)
    )


def _holders(holding: Column) -> Column:
    return sql.bit_count(holding.bitwiseAND(sql.lit(_NODES_MASK)))


def _only_in(records: DataFrame, writes: DataFrame) -> DataFrame:
    """Return the keys of records, each once, for whose place no write was acknowledged."""
    stands = _keyed(records, _PLACE, sql.lit(True).alias("stands"))
    return (
        _by_key(stands, _keyed(writes, _PLACE, sql.lit(False)))
        .agg(sql.bool_and("stands").alias("only"))
        .where("only")
        .drop("only")
    )


def _same(frame: DataFrame, keys: Counted, columns: tuple[str, ...]) -> DataFrame:
    """Return the rows of a frame with one of these keys, and the columns beside the key."""
    if "offset" in columns and keys.size <= _NAMED_MAX:
        named = keys.rows.where(sql.col("at").isNotNull()).select("at").distinct()
        # Nearly always there is none, which need not be asked a second time.
        offsets = [row["at"] for row in named.collect()] if keys.size else []
        frame = frame.where(sql.col("offset").isin(offsets))
    return _keyed(frame, columns, *frame.columns).join(keys.few(keys.rows), list(_KEY)).drop(*_KEY)


def _keyed(frame: DataFrame, columns: tuple[str, ...], *kept: str | Column) -> DataFrame:
    """Return numbers for these columns, as the columns of ``_KEY``, and the kept columns.

    Rows are held to be equal if their offset, where that is a column, and a hash of 64 bits of the
    others are: rows of numbers are compared at half the cost of rows with texts. That misleads only
    where a row that has no equal one meets the hash of another: one of 1,000 among 100,000,000 in
    one analysis of 180,000,000.
    """
    hashed = [name for name in columns if name != "offset"]
    at = sql.col("offset") if "offset" in columns else sql.lit(0).cast("long")
    # A hash ignores null: without this a null and its neighbour could change places.
    nulls = [sql.col(name).isNull() for name in hashed]
    content = sql.when(functools.reduce(operator.or_, nulls), _hash(*hashed, *nulls)).otherwise(
        _hash(*hashed)
    )
    return frame.select(at.alias("at"), content.alias("content"), *kept)


def _by_key(some: DataFrame, others: DataFrame) -> GroupedData:
    """Return the rows of both by the columns of ``_KEY``.

    Rows of one key lie far apart, so to group each piece before the exchange, as Spark would, is a
    pass over all of them that leaves as many. Pieces of a given number are not merged behind it,
    which would cost a fifth of the time.
    """
    pieces = int(str(some.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return some.unionAll(others).repartition(pieces, *_KEY).groupBy(*_KEY)


def _hash(*columns: str | Column) -> Column:
    return sql.xxhash64(*columns)


def _join(left: DataFrame, right: DataFrame, columns: tuple[str, ...], how: str) -> DataFrame:
    """Join where the columns are equal, null equal to null; the left side's columns stay."""
    renamed = right.withColumnsRenamed({name: f"right_{name}" for name in columns})
    condition = [left[name].eqNullSafe(renamed[f"right_{name}"]) for name in columns]
    return left.join(renamed, condition, how).drop(*(f"right_{name}" for name in columns))
