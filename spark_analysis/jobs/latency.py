"""Latency of operations and counts of their outcomes, by second.

Final reads are left out: they are taken after the load, from a cluster at rest.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Latency, Throughput
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.schemas import table_of

_NS_PER_MS: Final = 1e6
_NS_PER_SECOND: Final = 1_000_000_000
_QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}


def latency_quantiles(operations: DataFrame) -> DataFrame:
    """Return exact ``Latency`` by operation kind, second of the invocation and outcome.

    The second of the *invocation* shows a stall where the client met it, not where it ended. A
    quantile p of n sorted values stands at rank p * (n - 1), linear between neighbours. Open
    operations (info) are counted and have no latency.
    """
    latency_ns = sql.col("end_ns") - sql.col("start_ns")
    grouped = (
        operations.where(~sql.col("final"))
        .withColumn("latency_ns", latency_ns)
        .groupBy("run_id", "f", _second(sql.col("start_ns")).alias("second"), "type")
        .agg(
            sql.count(sql.lit(1)).alias("count"),
            # Numbers in an array are sorted several times as fast as the function percentile
            # counts them; a group is one second of one run.
            sql.sort_array(sql.collect_list("latency_ns")).alias("sorted"),
        )
    )
    for name, share in _QUANTILES.items():
        grouped = grouped.withColumn(name, _quantile("sorted", share) / _NS_PER_MS)
    return conform(grouped, table_of(Latency))


def _quantile(numbers: str, share: float) -> Column:
    """Return a quantile of a sorted array; null of an empty one."""
    rank = (sql.size(numbers) - 1) * sql.lit(share)
    lower, upper = sql.floor(rank), sql.ceil(rank)
    below, above = (sql.get(numbers, at.cast("int")) for at in (lower, upper))
    between = (upper - rank) * below + (rank - lower) * above
    return sql.when(lower == upper, below.cast("double")).otherwise(between)


def throughput(operations: DataFrame) -> DataFrame:
    """Return the ``Throughput`` of every second in which an operation ended.

    Operations that are open count in the second of their invocation.
    """
    second = _second(sql.coalesce("end_ns", "start_ns"))
    counted = (
        operations.where(~sql.col("final"))
        .groupBy("run_id", second.alias("second"))
        .agg(
            *(
                sql.count_if(sql.col("type") == outcome).alias(outcome)
                for outcome in ("ok", "fail", "info")
            )
        )
    )
    return conform(counted, table_of(Throughput))


def _second(time_ns: Column) -> Column:
    # "/" divides as doubles, which is exact enough below 2**53 ns, 104 days.
    return sql.floor(time_ns / sql.lit(_NS_PER_SECOND)).cast("long")
