"""The product's own jobs, on the session that the product starts."""

# pyright: standard

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from bench.analytics_engines.jobs import FLOORS, SLOT_NS
from splitbrain.spark_analysis.jobs.availability import fault_windows, longest_unavailability
from splitbrain.spark_analysis.jobs.commits import lost_commits, phantom_commits
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.latency import latency_quantiles, throughput
from splitbrain.spark_analysis.jobs.outcomes import client_errors
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads
from splitbrain.spark_analysis.session import spark_session

_SECOND_NS: Final = 1_000_000_000


class Spark:
    """One session."""

    def __init__(self, folder: Path, memory_mib: int | None, threads: int) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._session = self._stack.enter_context(
            spark_session(master=f"local[{threads}]", memory_mib=memory_mib or 4096, short=False)
        )

    def run(self, job: str, output: Path) -> pd.DataFrame:
        """See ``bench.analytics_engines.jobs.Engine``."""
        try:
            if job in FLOORS:
                self._floor(job, output)
                return pd.DataFrame()
            return self._result(job, output).toArrow().to_pandas()
        except Py4JError as error:
            if "OutOfMemoryError" in str(error):
                raise MemoryError("the JVM's heap is full") from error
            raise

    def _floor(self, job: str, output: Path) -> None:
        """Do the part of jobs that no way of writing them would spare."""
        operations, events, committed = map(self._table, ("operations", "events", "committed"))
        match job:
            case "read_operations":
                _nowhere(operations.select("run_id", "f", "type", "start_ns", "end_ns", "final"))
            case "gather_latencies":
                latency = sql.col("end_ns") - sql.col("start_ns")
                groups = operations.groupBy("run_id", "f", _every(_SECOND_NS), "type")
                _nowhere(groups.agg(sql.collect_list(latency)))
            case "count_by_second":
                _nowhere(operations.groupBy("run_id", _every(_SECOND_NS)).count())
            case "count_by_slot":
                slots = operations.groupBy("run_id", _every(SLOT_NS), "position_epoch")
                _nowhere(slots.agg(sql.min("end_ns")))
            case "read_events":
                _nowhere(events)
            case "exchange_events":
                parts = events.repartition("run_id", "process")
                _nowhere(parts.sortWithinPartitions("run_id", "process", "index"))
            case "write_operations":
                operations.write.mode("overwrite").parquet(str(output / "operations"))
            case "group_commits" | "hash_commits":
                asked = _record(operations, "position_offset", "position_epoch", "argument")
                keys = asked.unionAll(_record(committed, "offset", "epoch", "value"))
                if job == "group_commits":
                    pieces = int(str(self._session.conf.get("spark.sql.shuffle.partitions")))
                    groups = keys.repartition(pieces, "at", "content").groupBy("at", "content")
                    keys = groups.agg(sql.bit_or("number"))
                _nowhere(keys)
            case _:
                for rows, place in ((operations, "position_offset"), (committed, "offset")):
                    _nowhere(rows.select("run_id", "f", "key", place).repartition("run_id", place))

    def close(self) -> None:
        """End the session and its JVM."""
        self._stack.close()

    def _table(self, name: str) -> DataFrame:
        return self._session.read.parquet(str(self._folder / name))

    def _result(self, job: str, output: Path) -> DataFrame:
        table = self._table
        jobs: dict[str, Callable[[DataFrame], DataFrame]] = {
            "pair": lambda _: self._pair(output),
            "latency": latency_quantiles,
            "throughput": throughput,
            "windows": lambda operations: fault_windows(operations, table("faults")),
            "unavailability": longest_unavailability,
            "stale_reads": stale_reads,
            "client_errors": client_errors,
            "lost": lambda operations: lost_commits(operations, table("committed"), table("logs")),
            "phantom": lambda operations: phantom_commits(operations, table("committed")),
            "divergences": lambda _: first_divergences(table("committed"), table("logs")),
            "duplicates": lambda operations: duplicates(operations, table("committed")),
        }
        return jobs[job](table("operations"))

    def _pair(self, output: Path) -> DataFrame:
        """Not the product's: that pairs once per run at ingest, so that no job has to shuffle."""
        order = Window.partitionBy("run_id", "process").orderBy("index")
        answer = sql.lead(sql.struct("type", "time", "value")).over(order)
        paired = (
            self._table("events")
            .withColumn("answer", answer)
            .where(sql.col("type") == "invoke")
            .select(
                *("run_id", "index", "process", "f", "key"),
                sql.col("value").alias("argument"),
                sql.col("answer.value").alias("result"),
                sql.coalesce("answer.type", sql.lit("info")).alias("type"),
                sql.col("time").alias("start_ns"),
                sql.col("answer.time").alias("end_ns"),
            )
        )
        paired.write.mode("overwrite").parquet(str(output / "operations"))
        latency = sql.col("end_ns") - sql.col("start_ns")
        return (
            self._session.read.parquet(str(output / "operations"))
            .groupBy("run_id", "type")
            .agg(
                sql.count(sql.lit(1)).alias("operations"),
                sql.sum("index").alias("indexes"),
                sql.coalesce(sql.sum(latency), sql.lit(0)).alias("latency_ns"),
            )
        )


def _every(span_ns: int) -> Column:
    return sql.floor(sql.col("start_ns") / sql.lit(span_ns)).cast("long")


def _record(rows: DataFrame, offset: str, epoch: str, value: str) -> DataFrame:
    content = sql.xxhash64("run_id", epoch, "f", "key", value)
    number = sql.length("f").cast("long")
    return rows.select(
        sql.col(offset).alias("at"), content.alias("content"), number.alias("number")
    )


def _nowhere(rows: DataFrame) -> None:
    """Compute all rows and columns and drop them."""
    rows.write.format("noop").mode("overwrite").save()
