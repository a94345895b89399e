"""Analysis of one run folder: ingest, jobs, results as Parquet, ``summary.json``."""

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis import run as rows
from splitbrain.contracts.analysis.run import Row, RunAnalysis
from splitbrain.contracts.errors import HarnessError
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import RunTables, open_tables, struct_type
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
from splitbrain.spark_analysis.results import Result, adopt_result, in_order, records, store_result
from splitbrain.spark_analysis.schemas import table_of
from splitbrain.spark_analysis.session import are_few, one_sentence, settings_for, spark_session
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

#: Jobs at work at the same time on few rows: Spark plans each on one core.
JOBS_AT_ONCE: Final = 2

#: Results of one run, as frames, by their row records; one that is not there yet is waited for.
Frames = Mapping[type[Row], DataFrame]

#: Job, given a run's tables and the results of others.
Job = Callable[[RunTables, Frames], DataFrame]

#: Jobs by the rows that they find. Those that need no logs come first: while a run's logs are
#: collected, their work is done (``spark_analysis.ahead``).
JOBS: Final[dict[type[Row], Job]] = {
    rows.Latency: lambda run, _: latency_quantiles(run.operations),
    rows.Throughput: lambda run, _: throughput(run.operations),
    rows.ServiceWindow: lambda run, _: fault_windows(run.operations, run.faults),
    rows.Unavailability: lambda run, _: longest_unavailability(run.operations),
    rows.StaleRead: lambda run, _: stale_reads(run.operations),
    rows.ClientError: lambda run, _: client_errors(run.operations),
    rows.LostCommit: lambda run, _: lost_commits(run.operations, run.committed, run.logs),
    rows.PhantomCommit: lambda run, _: phantom_commits(run.operations, run.committed),
    rows.Reign: lambda run, _: election_timeline(run.state_events, run.faults, run.operations),
    rows.Leader: lambda _, found: reigns_of(found[rows.Reign]),
    rows.LeaderOverlap: lambda _, found: leader_overlaps(found[rows.Leader]),
    rows.Divergence: lambda run, _: first_divergences(run.committed, run.logs),
    rows.Duplicate: lambda run, _: duplicates(run.operations, run.committed),
}


_Row = TypeVar("_Row", bound=Row)

#: Told how many jobs are done, of all.
Took = Callable[[int, int], None]

#: Files of results that were found before.
Ready = Mapping[type[Row], Path]


def _tell_nobody(_done: int, _total: int) -> None:
    """Tell nobody."""


class Counts(NamedTuple):
    """Sizes of the searched data."""

    acknowledged: int
    #: Different committed records of the workload, over all nodes.
    committed: int
    nodes: int
    #: Nodes with a dumped log.
    logs: int


def jobs_line(done: int, total: int) -> str:
    """Return the line by which a log tells how far an analysis is."""
    return f"{done} of {total} jobs\n"


def analyze(
    run_folder: Path,
    session: SparkSession | None = None,
    took: Took = _tell_nobody,
    ready: Ready | None = None,
) -> RunAnalysis:
    """Make the tables and results of one run; the summary is written and returned.

    Args:
        run_folder: the run's folder.
        session: used and left running; without one a local session is started and ended.
        took: told how many jobs are done, of all.
        ready: results that were found before, and are not looked for again.

    Raises:
        HarnessError: no such folder, it cannot be read or written, no Java, or Spark failed.
    """
    ingested = ingest(run_folder)
    folder = RunFolder(run_folder)
    started = time.monotonic()
    size = sum(ingested.rows.values())
    with (
        _session(session) as spark,
        one_sentence("analyse the run with Spark", str(run_folder), _NEXT_STEP),
        settings_for(spark, size),
    ):
        tables = open_tables(spark, [run_folder], in_one_piece=are_few(size))
        at_once = JOBS_AT_ONCE if are_few(size) else 1
        results, counts = carry_out(spark, tables, folder, at_once, took=took, ready=ready)
        parts = {name: make(results, counts) for name, make in PARTS.items()}
    analysis = RunAnalysis(
        run_id=ingested.run_id,
        damage=list(ingested.damage),
        **parts,
        seconds=round(time.monotonic() - started, 3),
    )
    replace_file(folder.analysis_summary, msgspec.json.encode(analysis))
    return analysis


class OverError(Exception):
    """The carrying out of jobs is to end."""


def problem_of(
    run_folder: Path, took: Took = _tell_nobody, ready: Ready | None = None
) -> str | None:
    """Analyse a run; return why that was not possible, as one sentence."""
    try:
        analyze(run_folder, took=took, ready=ready)
    except HarnessError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a traceback would end with 1, which is a verdict
        return (
            f"could not analyse the run ({run_folder}): {type(error).__name__}: {error}. "
            "This is a defect of splitbrain; please report it with the run folder."
        )
    return None


class Results:
    """Stored results of one run."""

    def __init__(self, files: Mapping[type[Row], Path]) -> None:
        self._files = files

    def __getitem__(self, row: type[_Row]) -> Result[_Row]:
        return Result(row, self._files[row])


class _Stored(Mapping[type[Row], DataFrame]):
    """Frames of results that are being made."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.files: dict[type[Row], Future[Path]] = {}

    def __getitem__(self, row: type[Row]) -> DataFrame:
        # Begun before whoever asks for it, so it ends.
        file = self.files[row].result().absolute()
        return self._spark.read.schema(struct_type(table_of(row))).parquet(str(file))

    def __iter__(self) -> Iterator[type[Row]]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def carry_out(
    spark: SparkSession,
    tables: RunTables,
    folder: RunFolder,
    at_once: int,
    *,
    jobs: Mapping[type[Row], Job] = JOBS,
    is_over: Callable[[], bool] = lambda: False,
    took: Took = _tell_nobody,
    ready: Ready | None = None,
) -> tuple[Results, Counts]:
    """Carry out all jobs, some at once, each after those whose results it needs.

    Raises:
        OverError: ``is_over`` said so before a job; those under way have ended.
    """
    found = _Stored(spark)

    def store(row: type[Row], job: Job) -> Path:
        if is_over():
            raise OverError
        file = (
            adopt_result(ready[row], table_of(row), folder)
            if ready and row in ready
            else store_result(job(tables, found), table_of(row), folder)
        )
        with told:
            took(next(done), len(jobs))
        return file

    done, told = itertools.count(1), threading.Lock()
    took(0, len(jobs))
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="job")
    try:
        for row, job in jobs.items():
            found.files[row] = pool.submit(store, row, job)
        counts = pool.submit(_count, tables)
        files = {row: file.result() for row, file in found.files.items()}
        return Results(files), counts.result()
    except Exception:
        # The session may serve another run, whose settings are not these.
        pool.shutdown(cancel_futures=True)
        raise
    finally:
        # Once somebody ends this process, nobody waits for the others.
        pool.shutdown(wait=False, cancel_futures=True)


def _count(tables: RunTables) -> Counts:
    """Count all sizes in one Spark job."""
    acknowledged = acknowledged_writes(tables.operations)
    records = tables.committed.where(sql.col("f").isNotNull()).select("epoch", "offset", "digest")
    dumped = tables.logs.where(sql.col("start_offset").isNotNull())
    counted = [
        frame.agg(sql.count(sql.lit(1)).alias("count")).withColumn("name", sql.lit(name))
        for name, frame in zip(
            Counts._fields, (acknowledged, records.distinct(), tables.logs, dumped), strict=True
        )
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


def _throughput(found: Results, _: Counts) -> list[rows.Throughput]:
    """Return every second, also those in which nothing ended."""
    shown = found[rows.Throughput].first("second", limit=ROWS_MAX)
    by_second = {row.second: row for row in shown}
    seconds = range(shown[0].second, shown[-1].second + 1) if shown else ()
    return [by_second.get(second) or rows.Throughput(second, 0, 0, 0) for second in seconds]


def _unavailability(found: Results) -> rows.Unavailability | None:
    return next(iter(found[rows.Unavailability].first("start_ns", limit=1)), None)


def _span(found: Results, _: Counts) -> rows.Span | None:
    gap = _unavailability(found)
    return gap and rows.Span(gap.start_ms, gap.end_ms)


def _elections(found: Results, _: Counts) -> int:
    return len(found[rows.Leader].columns("epoch")["epoch"].unique())


def _overlaps(found: Results, _: Counts) -> list[rows.LeaderOverlap]:
    order = ("epoch_a", "epoch_b", "start_ns")
    overlaps = found[rows.LeaderOverlap].first(*order, limit=ROWS_MAX)
    return sorted(overlaps, key=lambda row: not row.same_epoch)


def _lost(found: Results, counts: Counts) -> rows.Lost:
    lost = found[rows.LostCommit]
    examples = lost.first("position_offset", "index", limit=EXAMPLES_MAX)
    missing = lost.count if counts.logs else None
    return rows.Lost(counts.acknowledged, missing, examples, counts.nodes, counts.logs)


def _phantom(found: Results, counts: Counts) -> rows.Phantom:
    phantom = found[rows.PhantomCommit]
    examples = phantom.first("offset", "epoch", limit=EXAMPLES_MAX)
    return rows.Phantom(counts.committed, phantom.count if counts.logs else None, examples)


def _reigns(found: Results, _: Counts) -> rows.Reigns:
    reigns = found[rows.Reign]
    ended = reigns.columns("ended").group_by("ended").aggregate([([], "count_all")])
    by_count = in_order(ended, "-count_all", "ended", limit=ended.num_rows).to_pylist()
    examples = reigns.first_as(
        rows.Reign,
        *("-leaderless_ms", "start_ns", "epoch"),
        limit=EXAMPLES_MAX,
        only=pc.field("leaderless_ms") > 0,
    )
    return rows.Reigns(
        count=reigns.count,
        ended={row["ended"]: row["count_all"] for row in by_count},
        leaderless_max_ms=reigns.figure("leaderless_ms", "max"),
        examples=examples,
    )


def _divergences(found: Results, counts: Counts) -> rows.Divergences:
    divergences = found[rows.Divergence]
    examples = divergences.first("offset", "node_a", "node_b", limit=EXAMPLES_MAX)
    return rows.Divergences(divergences.count if counts.logs > 1 else None, examples)


def _duplicates(found: Results, counts: Counts) -> rows.Duplicates:
    duplicates_found = found[rows.Duplicate]
    kinds = duplicates_found.columns("kind").group_by("kind").aggregate([([], "count_all")])
    count = {row["kind"]: row["count_all"] for row in kinds.to_pylist()}
    order = ("kind", "first_offset", "index", "node", "key", "value")
    examples = duplicates_found.first(*order, limit=EXAMPLES_MAX)
    committed = count.get("committed", 0) if counts.logs else None
    return rows.Duplicates(committed, count.get("read", 0), examples)


def _stale_reads(found: Results, _: Counts) -> rows.StaleReads:
    stale = found[rows.StaleRead]
    return rows.StaleReads(
        count=stale.count,
        age_max_ms=stale.figure("age_ms", "max"),
        age_max_versions=stale.figure("age_versions", "max"),
        examples=stale.first("-age_ms", "index", limit=EXAMPLES_MAX),
    )


def _client_errors(found: Results, _: Counts) -> rows.ClientErrors:
    told = {"count": "sum", "first_ns": "min", "last_ns": "max"}
    errors = found[rows.ClientError]
    by_class = (
        errors.columns("type", "error", *told)
        .group_by(["type", "error"])
        .aggregate(list(told.items()))
    )
    named = by_class.rename_columns({f"{name}_{of}": name for name, of in told.items()})
    shown = in_order(named, "-count", "type", "error", limit=CLASSES_MAX)
    return rows.ClientErrors(
        count=errors.figure("count", "sum") or 0, classes=records(shown, rows.ErrorClass)
    )


#: Makers of the parts of ``RunAnalysis``, from the results.
PARTS: Final[dict[str, Callable[[Results, Counts], Any]]] = {
    "latency": lambda found, _: found[rows.Latency].first_as(
        rows.OkLatency, "f", "second", limit=ROWS_MAX, only=pc.field("type") == "ok"
    ),
    "throughput": _throughput,
    "windows": lambda found, _: found[rows.ServiceWindow].first(
        "start_ns", "index", limit=ROWS_MAX
    ),
    "longest_unavailability_ms": lambda found, _: (gap := _unavailability(found)) and gap.gap_ms,
    "unavailability": _span,
    "elections": _elections,
    "lost": _lost,
    "phantom": _phantom,
    "leaders": lambda found, _: found[rows.Leader].first(
        "start_ns", "epoch", "node", limit=ROWS_MAX
    ),
    "leader_overlaps": _overlaps,
    "reigns": _reigns,
    "divergences": _divergences,
    "duplicates": _duplicates,
    "stale_reads": _stale_reads,
    "client_errors": _client_errors,
}
