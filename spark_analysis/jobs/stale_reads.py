"""Reads of registers that returned what was certainly overwritten when they were invoked.

Works where a value tells its write: within a run and key, values that one write alone may have
written, and the initial value (null) where none wrote it. Writes are ``write`` and ``cas``; of
those that ended ok a refused one wrote nothing, failed ones did not happen, open ones may have.
Values of one JSON text are equal, and so are a text and the number that it spells: such values are
not unique and left out, never mistaken.

- A write was **overwritten** at the earliest completion of an acknowledged write of the key that
  was invoked after the first one had completed; an open write never was, since it may come late.
  The initial value was overwritten by the earliest completion of any acknowledged write.
- A read that ended ok is **stale** where the write of its value was overwritten before the read was
  invoked. Its age is the time from then to its invocation, in ms; its age in versions counts the
  acknowledged writes that certainly lie between: invoked after the one that was read had completed,
  completed before the read was invoked.

Every such read is a violation of linearizability; not every violation is such a read.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import StaleRead
from splitbrain.spark_analysis.frames import conform, is_refused
from splitbrain.spark_analysis.schemas import table_of

_OBJECT: Final = ("run_id", "key")
_NS_PER_MS: Final = 1e6
#: Time of the initial value.
_BEFORE_ALL_NS: Final = -1


def stale_reads(operations: DataFrame) -> DataFrame:
    """Return every ``StaleRead``; only registers are looked at."""
    registers = operations.where(sql.col("f").isin("read", "write", "cas")).withColumn(
        # One null that is equal to itself.
        "key",
        sql.struct("key"),
    )
    writes = _writes(registers)
    acknowledged = writes.where(sql.col("type") == "ok")
    reads = registers.where((sql.col("f") == "read") & (sql.col("type") == "ok")).select(
        *(*_OBJECT, "index", "process", "node", "start_ns", "end_ns", "result"),
        _item("result", plain=True).alias("value"),
    )
    versions = _overwritten(_versions(writes, registers), acknowledged)
    value = (
        sql.coalesce("value", sql.lit("")).alias("told"),
        sql.col("value").isNull().alias("none"),
    )
    stale = (
        reads.select("*", *value)
        .join(
            versions.select(*_OBJECT, "written_ns", "overwritten_ns", *value),
            [*_OBJECT, "told", "none"],
        )
        .where(sql.col("overwritten_ns") < sql.col("start_ns"))
    )
    between = acknowledged.select(
        *_OBJECT, sql.col("start_ns").alias("begun_ns"), sql.col("end_ns").alias("done_ns")
    )
    aged = (
        stale.join(between, [*_OBJECT])
        .where(
            (sql.col("begun_ns") > sql.col("written_ns"))
            & (sql.col("done_ns") < sql.col("start_ns"))
        )
        .groupBy("run_id", "index")
        .agg(
            *(
                sql.first(name).alias(name)
                for name in ("process", "node", "start_ns", "end_ns", "result")
            ),
            sql.first("key.key").alias("key"),
            sql.first((sql.col("start_ns") - sql.col("overwritten_ns")) / _NS_PER_MS).alias(
                "age_ms"
            ),
            sql.count(sql.lit(1)).alias("age_versions"),
        )
    )
    return conform(aged, table_of(StaleRead))


def _item(column: str, *, plain: bool) -> Column:
    """Return the value of a JSON text, null for null; without ``plain``, an array's second item.

    The text "null" in an array counts as null, and so as a value that is not unique.
    """
    if plain:
        text = sql.concat(sql.lit("["), sql.col(column), sql.lit("]"))
        return sql.when(sql.col(column) != "null", sql.get_json_object(text, "$[0]"))
    return sql.nullif(sql.get_json_object(column, "$[1]"), sql.lit("null"))


def _writes(registers: DataFrame) -> DataFrame:
    is_cas = sql.col("f") == "cas"
    return registers.where(
        (sql.col("f") != "read")
        & (sql.col("type") != "fail")
        & ~((sql.col("type") == "ok") & is_refused())
    ).select(
        *(*_OBJECT, "type", "start_ns", "end_ns"),
        sql.when(is_cas, _item("argument", plain=False))
        .otherwise(_item("argument", plain=True))
        .alias("value"),
    )


def _versions(writes: DataFrame, registers: DataFrame) -> DataFrame:
    """Return values that identify their write, with its completion; null where it is open."""
    initial = (
        registers.select(*_OBJECT)
        .distinct()
        .select(
            *_OBJECT,
            sql.lit(None).cast("string").alias("value"),
            sql.lit(_BEFORE_ALL_NS).cast("long").alias("written_ns"),
        )
    )
    done = sql.when(sql.col("type") == "ok", sql.col("end_ns")).alias("written_ns")
    return (
        writes.select(*_OBJECT, "value", done)
        .unionByName(initial)
        .groupBy(*_OBJECT, "value")
        .agg(sql.count(sql.lit(1)).alias("writes"), sql.max("written_ns").alias("written_ns"))
        .where((sql.col("writes") == 1) & sql.col("written_ns").isNotNull())
        .drop("writes")
    )


def _overwritten(versions: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Return versions with ``overwritten_ns``; those that never were are left out.

    One pass back from the latest moment: the least completion among later invocations.
    """
    begun = acknowledged.select(
        *_OBJECT,
        sql.col("start_ns").alias("at_ns"),
        sql.col("end_ns").alias("done_ns"),
        sql.lit(None).cast("string").alias("value"),
        sql.lit(False).alias("is_version"),
    )
    written = versions.select(
        *_OBJECT,
        sql.col("written_ns").alias("at_ns"),
        sql.lit(None).cast("long").alias("done_ns"),
        "value",
        sql.lit(True).alias("is_version"),
    )
    # Of one moment the version comes first: operations invoked then are concurrent.
    backwards = Window.partitionBy(*_OBJECT).orderBy(sql.desc("at_ns"), sql.desc("is_version"))
    since = backwards.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        begun.unionByName(written)
        .withColumn("overwritten_ns", sql.min("done_ns").over(since))
        .where(sql.col("is_version") & sql.col("overwritten_ns").isNotNull())
        .withColumnRenamed("at_ns", "written_ns")
    )
