"""Duplicates: writes that stand more than once in a committed log, elements that one read repeated.

- A write is **committed twice** where one node's log has more records of its kind, key and value
  than operations may have written: those that ended ok or open. A record without operation is a
  phantom (``jobs.commits``), and one is no duplicate; two equal ones are both.
- An element is **read twice** where a read of a set, a key with an ``add``, returned it more than
  once. Elements are told apart by their JSON: a text and the number that it spells are two.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Duplicate
from splitbrain.spark_analysis.frames import as_records, conform, is_write
from splitbrain.spark_analysis.schemas import table_of

_CONTENT: Final = ("run_id", "f", "key", "value")


def duplicates(operations: DataFrame, committed: DataFrame) -> DataFrame:
    """Return a ``Duplicate`` for each node and write, and for each read and element."""
    found = _committed_twice(operations, committed).unionByName(
        _read_twice(operations), allowMissingColumns=True
    )
    return conform(found, table_of(Duplicate))


def _committed_twice(operations: DataFrame, committed: DataFrame) -> DataFrame:
    requests = (
        as_records(operations.where(is_write() & (sql.col("type") != "fail")))
        .groupBy(*_CONTENT)
        .agg(sql.count(sql.lit(1)).alias("requests"))
        .withColumnsRenamed({name: f"requested_{name}" for name in _CONTENT})
    )
    held = (
        committed.where(sql.col("f").isNotNull())
        .groupBy(*_CONTENT, "node")
        .agg(sql.count(sql.lit(1)).alias("count"), sql.min("offset").alias("first_offset"))
        # Single records need no lookup.
        .where(sql.col("count") > 1)
    )
    same = [held[name].eqNullSafe(requests[f"requested_{name}"]) for name in _CONTENT]
    return (
        held.join(requests, same, "left")
        .withColumn("expected", sql.greatest(sql.coalesce("requests", sql.lit(0)), sql.lit(1)))
        .where(sql.col("count") > sql.col("expected"))
        .withColumn("kind", sql.lit("committed"))
        .select(*_CONTENT, "kind", "node", "count", "expected", "first_offset")
    )


def _read_twice(operations: DataFrame) -> DataFrame:
    sets = (
        operations.where(sql.col("f") == "add")
        .select(sql.col("run_id").alias("set_run"), sql.col("key").alias("set_key"))
        .distinct()
    )
    reads = operations.where(
        (sql.col("f") == "read") & (sql.col("type") == "ok") & sql.col("result").startswith("[")
    )
    of_set = (reads["run_id"] == sets["set_run"]) & reads["key"].eqNullSafe(sets["set_key"])
    return (
        reads.join(sets, of_set, "left_semi")
        .withColumn("elements", sql.from_json("result", "array<string>"))
        # Equal JSON is equal text: few reads need the second look.
        .where(sql.size("elements") > sql.size(sql.array_distinct("elements")))
        .withColumn("elements", _as_json("result", "elements"))
        .select("run_id", "f", "key", "node", "index", sql.explode("elements").alias("value"))
        .groupBy("run_id", "f", "key", "node", "index", "value")
        .agg(sql.count(sql.lit(1)).alias("count"))
        .where(sql.col("count") > 1)
        .withColumn("kind", sql.lit("read"))
        .withColumn("expected", sql.lit(1).cast("long"))
    )


def _as_json(array: str, texts: str) -> Column:
    """Return the JSON of each element of an array, given as JSON and as Spark reads its texts.

    The texts have lost the quotes, a variant the digits of a number beyond 38: so the first shows
    how an element is written, the second whether it is a text.
    """
    variants = sql.try_parse_json(array).try_cast("array<variant>")

    def written(text: Column, variant: Column) -> Column:
        is_text = sql.schema_of_variant(variant) == "STRING"
        return sql.when(is_text, sql.to_json(variant)).otherwise(_or_null(text))

    return sql.coalesce(sql.zip_with(texts, variants, written), sql.transform(texts, _or_null))


def _or_null(text: Column) -> Column:
    return sql.coalesce(text, sql.lit("null"))
