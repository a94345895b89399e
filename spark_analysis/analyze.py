"""Analysis of one run folder: ingest, jobs, results as Parquet, ``summary.json``."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis import run as rows
from splitbrain.contracts.analysis.run import Row, RunAnalysis
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import RunTables, figures, open_tables, rows_of, store_result
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs.availability import fault_windows, longest_unavailability
from splitbrain.spark_analysis.jobs.commits import (
    acknowledged_writes,
    lost_commits,
    phantom_commits,
)
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.latency import latency_quantiles, throughput
from splitbrain.spark_analysis.jobs.leadership import election_timeline, leader_overlaps, reigns_of
from splitbrain.spark_analysis.jobs.outcomes import client_errors
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads
from splitbrain.spark_analysis.schemas import table_of
from splitbrain.spark_analysis.session import one_sentence, settings_for, spark_session
from splitbrain.spark_analysis.table_writer import replace_file

#: Rows of a list in the summary; the Parquet files have all.
ROWS_MAX: Final = 20_000
#: Rows of each finding in the summary.
EXAMPLES_MAX: Final = 20
#: Classes of errors in the summary; a client may put anything into one.
CLASSES_MAX: Final = 50
_NEXT_STEP = (
    "Remove the analysis folder in it and run splitbrain analyze again; "
    "the run itself is not affected."
)

#: Stored results of one run by their row records.
Results = Mapping[type[Row], DataFrame]

#: Jobs by the rows that they find, from a run's tables and the results of the jobs above.
JOBS: Final[dict[type[Row], Callable[[RunTables, Results], DataFrame]]] = {
    rows.Latency: lambda run, _: latency_quantiles(run.operations),
    rows.Throughput: lambda run, _: throughput(run.operations),
    rows.ServiceWindow: lambda run, _: fault_windows(run.operations, run.faults),
    rows.Unavailability: lambda run, _: longest_unavailability(run.operations),
    rows.LostCommit: lambda run, _: lost_commits(run.operations, run.committed, run.logs),
    rows.PhantomCommit: lambda run, _: phantom_commits(run.operations, run.committed),
    rows.Reign: lambda run, _: election_timeline(run.state_events, run.faults, run.operations),
    rows.Leader: lambda _, found: reigns_of(found[rows.Reign]),
    rows.LeaderOverlap: lambda _, found: leader_overlaps(found[rows.Leader]),
    rows.Divergence: lambda run, _: first_divergences(run.committed, run.logs),
    rows.Duplicate: lambda run, _: duplicates(run.operations, run.committed),
    rows.StaleRead: lambda run, _: stale_reads(run.operations),
    rows.ClientError: lambda run, _: client_errors(run.operations),
}


_Row = TypeVar("_Row", bound=Row)


class Counts(NamedTuple):
    """Sizes of the searched data."""

    acknowledged: int
    #: Different committed records of the workload, over all nodes.
    committed: int
    nodes: int
    #: Nodes with a dumped log.
    logs: int


def analyze(run_folder: Path, session: SparkSession | None = None) -> RunAnalysis:
    """Make the tables and results of one run; the summary is written and returned.

    Args:
        run_folder: the run's folder.
        session: used and left running; without one a local session is started and ended.

    Raises:
        HarnessError: no such folder, it cannot be read or written, no Java, or Spark failed.
    """
    ingested = ingest(run_folder)
    folder = RunFolder(run_folder)
    started = time.monotonic()
    with (
        _session(session) as spark,
        one_sentence("analyse the run with Spark", str(run_folder), _NEXT_STEP),
        settings_for(spark, sum(ingested.rows.values())),
    ):
        tables = open_tables(spark, [run_folder])
        results: dict[type[Row], DataFrame] = {}
        for row, job in JOBS.items():
            results[row] = store_result(spark, job(tables, results), table_of(row), folder)
        counts = _count(tables)
        parts = {name: make(results, counts) for name, make in PARTS.items()}
    analysis = RunAnalysis(
        run_id=ingested.run_id,
        damage=list(ingested.damage),
        **parts,
        seconds=round(time.monotonic() - started, 3),
    )
    replace_file(folder.analysis_summary, msgspec.json.encode(analysis))
    return analysis


def _count(tables: RunTables) -> Counts:
    """Count all sizes in one Spark job."""
    records = tables.committed.where(sql.col("f").isNotNull()).select("epoch", "offset", "digest")
    frames = {
        "acknowledged": acknowledged_writes(tables.operations),
        "committed": records.distinct(),
        "nodes": tables.logs,
        "logs": tables.logs.where(sql.col("start_offset").isNotNull()),
    }
    counted = [
        frame.agg(_rows().alias("count")).withColumn("name", sql.lit(name))
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


# --- the summary ------------------------------------------------------------------------------


def _first(
    found: Results, row: type[_Row], *order: str | Column, limit: int = EXAMPLES_MAX
) -> list[_Row]:
    return rows_of(found[row], row, *order, limit=limit)


def _throughput(found: Results, _: Counts) -> list[rows.Throughput]:
    """Return every second, also those in which nothing ended."""
    shown = _first(found, rows.Throughput, "second", limit=ROWS_MAX)
    by_second = {row.second: row for row in shown}
    seconds = range(shown[0].second, shown[-1].second + 1) if shown else ()
    return [by_second.get(second) or rows.Throughput(second, 0, 0, 0) for second in seconds]


def _unavailability(found: Results) -> rows.Unavailability | None:
    return next(iter(_first(found, rows.Unavailability, "start_ns", limit=1)), None)


def _span(found: Results, _: Counts) -> rows.Span | None:
    gap = _unavailability(found)
    return gap and rows.Span(gap.start_ms, gap.end_ms)


def _overlaps(found: Results, _: Counts) -> list[rows.LeaderOverlap]:
    order = ("epoch_a", "epoch_b", "start_ns")
    overlaps = _first(found, rows.LeaderOverlap, *order, limit=ROWS_MAX)
    return sorted(overlaps, key=lambda row: not row.same_epoch)


def _lost(found: Results, counts: Counts) -> rows.Lost:
    missing = found[rows.LostCommit].count() if counts.logs else None
    examples = _first(found, rows.LostCommit, "position_offset", "index")
    return rows.Lost(counts.acknowledged, missing, examples, counts.nodes, counts.logs)


def _phantom(found: Results, counts: Counts) -> rows.Phantom:
    unexplained = found[rows.PhantomCommit].count() if counts.logs else None
    examples = _first(found, rows.PhantomCommit, "offset", "epoch")
    return rows.Phantom(counts.committed, unexplained, examples)


def _reigns(found: Results, _: Counts) -> rows.Reigns:
    reigns = found[rows.Reign]
    ended = reigns.groupBy("ended").agg(_rows().alias("count")).orderBy(sql.desc("count"), "ended")
    order = (sql.desc("leaderless_ms"), "start_ns", "epoch")
    return rows.Reigns(
        **figures(reigns, count=_rows(), leaderless_max_ms=sql.max("leaderless_ms")),
        ended={row["ended"]: row["count"] for row in ended.collect()},
        examples=rows_of(
            reigns.where(sql.col("leaderless_ms") > 0), rows.Reign, *order, limit=EXAMPLES_MAX
        ),
    )


def _divergences(found: Results, counts: Counts) -> rows.Divergences:
    count = found[rows.Divergence].count() if counts.logs > 1 else None
    return rows.Divergences(count, _first(found, rows.Divergence, "offset", "node_a", "node_b"))


def _duplicates(found: Results, counts: Counts) -> rows.Duplicates:
    kinds = {kind: sql.count_if(sql.col("kind") == kind) for kind in ("committed", "read")}
    count = figures(found[rows.Duplicate], **kinds)
    order = ("kind", "first_offset", "index", "node", "key", "value")
    committed = count["committed"] if counts.logs else None
    return rows.Duplicates(committed, count["read"], _first(found, rows.Duplicate, *order))


def _stale_reads(found: Results, _: Counts) -> rows.StaleReads:
    versions = sql.max("age_versions")
    ages = {"count": _rows(), "age_max_ms": sql.max("age_ms"), "age_max_versions": versions}
    examples = _first(found, rows.StaleRead, sql.desc("age_ms"), "index")
    return rows.StaleReads(**figures(found[rows.StaleRead], **ages), examples=examples)


def _client_errors(found: Results, _: Counts) -> rows.ClientErrors:
    by_class = (
        found[rows.ClientError]
        .groupBy("type", "error")
        .agg(
            sql.sum("count").alias("count"),
            sql.min("first_ns").alias("first_ns"),
            sql.max("last_ns").alias("last_ns"),
        )
    )
    return rows.ClientErrors(
        **figures(found[rows.ClientError], count=sql.coalesce(sql.sum("count"), sql.lit(0))),
        classes=rows_of(
            by_class, rows.ErrorClass, sql.desc("count"), "type", "error", limit=CLASSES_MAX
        ),
    )


def _rows() -> Column:
    return sql.count(sql.lit(1))


#: Makers of the parts of ``RunAnalysis``, from the results.
PARTS: Final[dict[str, Callable[[Results, Counts], Any]]] = {
    "latency": lambda found, _: rows_of(
        found[rows.Latency].where("type = 'ok'"), rows.OkLatency, "f", "second", limit=ROWS_MAX
    ),
    "throughput": _throughput,
    "windows": lambda found, _: _first(
        found, rows.ServiceWindow, "start_ns", "index", limit=ROWS_MAX
    ),
    "longest_unavailability_ms": lambda found, _: (gap := _unavailability(found)) and gap.gap_ms,
    "unavailability": _span,
    "elections": lambda found, _: found[rows.Leader].select("epoch").distinct().count(),
    "lost": _lost,
    "phantom": _phantom,
    "leaders": lambda found, _: _first(
        found, rows.Leader, "start_ns", "epoch", "node", limit=ROWS_MAX
    ),
    "leader_overlaps": _overlaps,
    "reigns": _reigns,
    "divergences": _divergences,
    "duplicates": _duplicates,
    "stale_reads": _stale_reads,
    "client_errors": _client_errors,
}
