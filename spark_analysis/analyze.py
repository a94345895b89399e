"""Analyses one run folder: ingest, jobs, results as Parquet, small results as ``summary.json``.

Must never judge: verdicts are the checker's.
"""

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.finding_schemas import (
    CLIENT_ERRORS,
    DIVERGENCES,
    DUPLICATES,
    ELECTIONS,
    STALE_READS,
)
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs.availability import fault_windows, longest_unavailability
from splitbrain.spark_analysis.jobs.client_errors import client_errors
from splitbrain.spark_analysis.jobs.commits import (
    acknowledged_writes,
    lost_commits,
    phantom_commits,
)
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.elections import election_timeline, reigns_of
from splitbrain.spark_analysis.jobs.latency import latency_quantiles, throughput
from splitbrain.spark_analysis.jobs.leadership import leader_overlaps
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads
from splitbrain.spark_analysis.schemas import (
    LATENCY,
    LEADER_OVERLAPS,
    LEADERS,
    LOST,
    PHANTOM,
    THROUGHPUT,
    UNAVAILABILITY,
    WINDOWS,
    Table,
)
from splitbrain.spark_analysis.session import spark_session
from splitbrain.spark_analysis.spark_failures import one_sentence
from splitbrain.spark_analysis.summary import Counts, summarize
from splitbrain.spark_analysis.table_writer import replace_file
from splitbrain.spark_analysis.tables import RunTables, open_tables, store_result

_NEXT_STEP = (
    "Remove the analysis folder in it and run splitbrain analyze again; "
    "the run itself is not affected."
)


def analyze(run_folder: Path, session: SparkSession | None = None) -> dict[str, Any]:
    """Make the tables and results of one run; the summary is written and returned.

    Args:
        run_folder: the run's folder.
        session: used and left running; without one a local session is started and ended.

    Returns:
        The content of ``analysis/summary.json``, see ``spark_analysis.summary``.

    Raises:
        HarnessError: no such folder, it cannot be read or written, no Java, or Spark failed.
    """
    ingested = ingest(run_folder)
    folder = RunFolder(run_folder)
    started = time.monotonic()
    with (
        _session(session) as spark,
        one_sentence("analyse the run with Spark", str(run_folder), _NEXT_STEP),
    ):
        tables = open_tables(spark, [run_folder])
        results = _run_jobs(spark, tables, folder)
        counts = _count(tables)
        summary = summarize(ingested, results, counts)
    summary["seconds"] = round(time.monotonic() - started, 3)
    replace_file(folder.analysis_summary, msgspec.json.encode(summary))
    return summary


def _run_jobs(spark: SparkSession, tables: RunTables, folder: RunFolder) -> dict[Table, DataFrame]:
    """Compute and store every result."""
    operations, faults, state_events, committed, logs = tables
    results: dict[Table, DataFrame] = {}

    def store(table: Table, result: DataFrame) -> DataFrame:
        results[table] = store_result(spark, result, table, folder)
        return results[table]

    store(LATENCY, latency_quantiles(operations))
    store(THROUGHPUT, throughput(operations))
    store(WINDOWS, fault_windows(operations, faults))
    store(UNAVAILABILITY, longest_unavailability(operations))
    store(LOST, lost_commits(operations, committed, logs))
    store(PHANTOM, phantom_commits(operations, committed))
    timeline = store(ELECTIONS, election_timeline(state_events, faults, operations))
    leaders = store(LEADERS, reigns_of(timeline))
    store(LEADER_OVERLAPS, leader_overlaps(leaders))
    store(DIVERGENCES, first_divergences(committed, logs))
    store(DUPLICATES, duplicates(operations, committed))
    store(STALE_READS, stale_reads(operations))
    store(CLIENT_ERRORS, client_errors(operations))
    return results


def _count(tables: RunTables) -> Counts:
    """How much the lost and phantom commits were looked for in; one job for all figures."""
    records = tables.committed.where(sql.col("f").isNotNull()).select("epoch", "offset", "digest")
    frames = {
        "acknowledged": acknowledged_writes(tables.operations),
        "committed": records.distinct(),
        "nodes": tables.logs,
        "logs": tables.logs.where(sql.col("start_offset").isNotNull()),
    }
    counted = [
        frame.agg(sql.count(sql.lit(1)).alias("count")).withColumn("name", sql.lit(name))
        for name, frame in frames.items()
    ]
    everything = functools.reduce(DataFrame.unionByName, counted)
    return Counts(**{row["name"]: row["count"] for row in everything.collect()})


@contextlib.contextmanager
def _session(given: SparkSession | None) -> Iterator[SparkSession]:
    if given is not None:
        yield given
        return
    with spark_session() as started:
        yield started
