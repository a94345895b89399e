"""Figures of the release gate: jobs' results of all selected runs to one small table.

Every figure of one selection comes from one aggregation, and only the small table leaves Spark.
Latencies are counted by whole microsecond first, so that an exact quantile of all operations of all
runs needs no sort of them. No data is null, never zero.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from splitbrain.contracts.figure import Condition, Subject
from splitbrain.spark_analysis.figure_catalogue import (
    EVENTS,
    FOUND_FIGURES,
    LATENCY_FIGURES,
    LOG,
    LOGS,
    OUTCOME_FIGURES,
    REGISTERS,
    SETS,
    THROUGHPUT_FIGURES,
    WINDOW_FIGURES,
)
from splitbrain.spark_analysis.frames import RunTables
from splitbrain.spark_analysis.jobs.availability import fault_windows
from splitbrain.spark_analysis.jobs.commits import phantom_commits
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.latency import throughput
from splitbrain.spark_analysis.jobs.leadership import (
    election_timeline,
    leader_overlaps,
    reigns_of,
    without_fault,
)
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads

#: One row per selected run, with the columns for conditions on runs.
SELECTED_RUNS: Final = StructType(
    [
        StructField(name, StringType(), nullable=False)
        for name in ("run_id", "system", "version", "workload", "runtime")
    ]
)

#: Value and samples of each figure, as columns of one row.
Columns = dict[str, tuple[Column, Column]]

#: One row per subject; ``value`` is null without samples.
FIGURES: Final = StructType(
    [
        StructField("subject", StringType(), nullable=False),  # ``Subject.text``
        StructField("value", DoubleType()),
        StructField("samples", LongType(), nullable=False),
    ]
)
_NS_PER_US: Final = 1000
_US_PER_MS: Final = 1e3


def gate_figures(tables: RunTables, runs: DataFrame, subjects: Sequence[Subject]) -> DataFrame:
    """Return a row of ``FIGURES`` for every subject, in no order.

    Args:
        tables: of the selected runs and no others.
        runs: rows of ``SELECTED_RUNS``, one per run.
        subjects: figures of ``figure_catalogue``, at least one.
    """
    measures = _Measures(tables, runs)
    groups: dict[tuple[str, tuple[Condition, ...]], list[Subject]] = {}
    for subject in subjects:
        groups.setdefault((_family_of(subject.figure), subject.conditions), []).append(subject)
    frames = [
        _rows(members, measures.of(family, conditions))
        for (family, conditions), members in groups.items()
    ]
    return reduce(DataFrame.unionByName, frames)


class _Measures:
    """All figures of a family in one row, under any conditions; each job is planned once."""

    def __init__(self, tables: RunTables, runs: DataFrame) -> None:
        self.tables = tables
        self._runs = runs
        self._planned: dict[str, DataFrame] = {}

    def _once(self, name: str, plan: Callable[[], DataFrame]) -> DataFrame:
        """Return a job's result, computed once for all selections."""
        if name not in self._planned:
            self._planned[name] = plan().localCheckpoint(eager=False)
        return self._planned[name]

    def _chosen(
        self, frame: DataFrame, conditions: Sequence[Condition], **columns: str
    ) -> DataFrame:
        """Return rows that meet the conditions; ``columns`` maps other dimensions to columns."""
        on_runs = [condition for condition in conditions if condition.dimension not in columns]
        for condition in conditions:
            if condition.dimension in columns:
                frame = frame.where(_holds(condition, columns[condition.dimension]))
        if not on_runs:
            return frame
        runs = self._runs
        for condition in on_runs:
            runs = runs.where(_holds(condition, condition.dimension))
        return frame.join(sql.broadcast(runs.select("run_id")), "run_id", "left_semi")

    def of(self, family: str, conditions: Sequence[Condition]) -> DataFrame:
        """Return one row with columns ``<figure>`` and ``<figure>.samples``."""
        if family in FOUND:
            return self.found(family, conditions)
        measure: Callable[[Sequence[Condition]], DataFrame] = getattr(self, family)
        return measure(conditions)

    def latency(self, conditions: Sequence[Condition]) -> DataFrame:
        counted = self._once("latency", lambda: _counted_latencies(self.tables.operations))
        chosen = self._chosen(counted, conditions, operation="f")
        pooled = chosen.agg(
            sql.percentile("us", [0.5, 0.95, 0.99], sql.col("count")).alias("quantiles"),
            sql.max("us").alias("longest"),
            sql.sum("count").alias("samples"),
        )
        worst = (
            chosen.groupBy("run_id")
            .agg(sql.percentile("us", 0.99, sql.col("count")).alias("p99"))
            .agg(sql.max("p99").alias("worst"))
        )
        quantiles, samples = sql.col("quantiles"), sql.col("samples")
        return _one_row(
            pooled.crossJoin(worst),
            {
                "latency_p50_ms": (quantiles[0] / _US_PER_MS, samples),
                "latency_p95_ms": (quantiles[1] / _US_PER_MS, samples),
                "latency_p99_ms": (quantiles[2] / _US_PER_MS, samples),
                "latency_max_ms": (sql.col("longest") / _US_PER_MS, samples),
                "latency_p99_worst_ms": (sql.col("worst") / _US_PER_MS, samples),
            },
        )

    def windows(self, conditions: Sequence[Condition]) -> DataFrame:
        """Return figures of faults that were seen to bite."""
        windows = self._once(
            "windows", lambda: fault_windows(self.tables.operations, self.tables.faults)
        )
        chosen = self._chosen(windows.where("verified"), conditions, fault="kind")
        columns: Columns = {}
        aggregates: list[Column] = []
        for name in ("failover", "recovery"):
            times = f"{name}_ms"
            aggregates += [
                sql.percentile(times, [0.5, 0.99]).alias(f"{name}_quantiles"),
                sql.max(times).alias(f"{name}_longest"),
                sql.count(times).alias(f"{name}_samples"),
            ]
            quantiles, samples = sql.col(f"{name}_quantiles"), sql.col(f"{name}_samples")
            columns[f"{name}_p50_ms"] = (quantiles[0], samples)
            columns[f"{name}_p99_ms"] = (quantiles[1], samples)
            columns[f"{name}_max_ms"] = (sql.col(f"{name}_longest"), samples)
        aggregates += [
            sql.min("availability_during").alias("least"),
            sql.avg("availability_during").alias("mean"),
            sql.count("availability_during").alias("availability_samples"),
        ]
        samples = sql.col("availability_samples")
        columns["availability_min"] = (sql.col("least"), samples)
        columns["availability_mean"] = (sql.col("mean"), samples)
        return _one_row(chosen.agg(*aggregates), columns)

    def throughput(self, conditions: Sequence[Condition]) -> DataFrame:
        by_second = self._once("throughput", lambda: throughput(self.tables.operations))
        seconds = sql.max("second") - sql.min("second") + 1
        by_run = (
            self._chosen(by_second, conditions)
            .groupBy("run_id")
            .agg((sql.sum("ok") / seconds).alias("rate"))
        )
        figures = by_run.agg(
            sql.avg("rate").alias("mean"),
            sql.min("rate").alias("least"),
            sql.count("rate").alias("samples"),
        )
        samples = sql.col("samples")
        return _one_row(
            figures,
            {
                "throughput_mean": (sql.col("mean"), samples),
                "throughput_min": (sql.col("least"), samples),
            },
        )

    def outcome(self, conditions: Sequence[Condition]) -> DataFrame:
        """Return shares of the operations that did not end ok."""
        operations = self.tables.operations
        counted = self._once(
            "outcomes",
            lambda: operations.groupBy("run_id", "f").agg(
                *(sql.count_if(sql.col("type") == kind).alias(kind) for kind in ("fail", "info")),
                sql.count(sql.lit(1)).alias("count"),
            ),
        )
        sums = [sql.sum(name).alias(name) for name in ("fail", "info", "count")]
        samples = sql.col("count")
        return _one_row(
            # Without operations the sum is null.
            self._chosen(counted, conditions, operation="f").agg(*sums),
            {
                "operations_failed": (sql.col("fail") / samples, samples),
                "operations_open": (sql.col("info") / samples, samples),
            },
        )

    def found(self, family: str, conditions: Sequence[Condition]) -> DataFrame:
        """Return figures of a job's findings: null if it could find nothing, else zero or more."""
        job, values = FOUND[family]
        row = self._chosen(self._once(family, lambda: job(self)), conditions).agg(
            *(sql.expr(value).alias(name) for name, value in values.items())
        )
        told_by = {one.name: one.samples_of for one in FOUND_FIGURES if one.name in values}
        for told in set(told_by.values()):
            runs = self._chosen(self._once(told, partial(TOLD[told], self.tables)), conditions)
            row = row.crossJoin(runs.agg(sql.count("run_id").alias(told)))
        samples = {name: sql.col(f"`{told}`") for name, told in told_by.items()}
        return _one_row(
            row,
            {
                name: (sql.when(count > 0, sql.coalesce(name, sql.lit(0))), count)
                for name, count in samples.items()
            },
        )

    def timeline(self) -> DataFrame:
        run = self.tables
        return self._once(
            "timeline", lambda: election_timeline(run.state_events, run.faults, run.operations)
        )


def _one_row(frame: DataFrame, columns: Mapping[str, tuple[Column, Column]]) -> DataFrame:
    """Return value and samples of each figure in one row; the sum of no samples is null."""
    return frame.select(
        *(
            sql.struct(
                value.cast("double").alias("value"),
                sql.coalesce(samples, sql.lit(0)).cast("long").alias("samples"),
            ).alias(name)
            for name, (value, samples) in columns.items()
        )
    )


def _holds(condition: Condition, column: str) -> Column:
    equal = sql.col(column) == sql.lit(condition.value)
    return equal if condition.is_equal else ~equal


def _dumped(tables: RunTables, logs: int) -> DataFrame:
    dumped = tables.logs.where(sql.col("start_offset").isNotNull())
    return (
        dumped.groupBy("run_id")
        .agg(sql.count(sql.lit(1)).alias("logs"))
        .where(sql.col("logs") >= logs)
    )


def _runs_that_read(tables: RunTables, *writes: str) -> DataFrame:
    is_read = (sql.col("f") == "read") & (sql.col("type") == "ok")
    return (
        tables.operations.groupBy("run_id")
        .agg(
            sql.bool_or(is_read).alias("read"),
            sql.bool_or(sql.col("f").isin(*writes)).alias("wrote"),
        )
        .where(sql.col("read") & sql.col("wrote"))
    )


#: Runs in which something can be found at all, by what they have.
TOLD: Final[dict[str, Callable[[RunTables], DataFrame]]] = {
    LOG: lambda run: _dumped(run, 1),
    LOGS: lambda run: _dumped(run, 2),
    EVENTS: lambda run: run.state_events.select("run_id").distinct(),
    SETS: lambda run: _runs_that_read(run, "add"),
    REGISTERS: lambda run: _runs_that_read(run, "write", "cas"),
}

#: Findings of jobs by run, and the figures over all of them in SQL.
FOUND: Final[dict[str, tuple[Callable[["_Measures"], DataFrame], dict[str, str]]]] = {
    "overlaps": (
        lambda chosen: leader_overlaps(reigns_of(chosen.timeline())),
        {
            "split_brain_epochs": "count(DISTINCT run_id, if(same_epoch, epoch_a, NULL))",
            "leader_overlap_max_ms": "max(if(same_epoch, NULL, (end_ns - start_ns) / 1e6D))",
        },
    ),
    "phantom commits": (
        lambda chosen: phantom_commits(chosen.tables.operations, chosen.tables.committed),
        {"phantom_commits": "count(1)"},
    ),
    "divergences": (
        lambda chosen: first_divergences(chosen.tables.committed, chosen.tables.logs),
        {"diverged_logs": "count(1)"},
    ),
    "duplicates": (
        lambda chosen: duplicates(chosen.tables.operations, chosen.tables.committed),
        {
            "duplicated_commits": "count_if(kind = 'committed')",
            "duplicated_elements": "count_if(kind = 'read')",
        },
    ),
    "stale reads": (
        lambda chosen: stale_reads(chosen.tables.operations),
        {"stale_reads": "count(1)", "stale_read_max_ms": "max(age_ms)"},
    ),
    "reigns": (lambda chosen: chosen.timeline(), {"leaderless_max_ms": "max(leaderless_ms)"}),
    "unprovoked elections": (
        lambda chosen: without_fault(chosen.timeline(), chosen.tables.faults),
        {"elections_without_fault": "count(DISTINCT run_id, epoch)"},
    ),
}


def _counted_latencies(operations: DataFrame) -> DataFrame:
    elapsed_ns = sql.col("end_ns") - sql.col("start_ns")
    return (
        operations.where(~sql.col("final") & (sql.col("type") == "ok"))
        .where(sql.col("end_ns").isNotNull())
        .groupBy("run_id", "f", sql.floor(elapsed_ns / sql.lit(_NS_PER_US)).alias("us"))
        .agg(sql.count(sql.lit(1)).alias("count"))
    )


def _rows(subjects: Iterable[Subject], row: DataFrame) -> DataFrame:
    structs = [
        sql.struct(
            sql.lit(subject.text).alias("subject"),
            sql.col(f"{subject.figure}.value").alias("value"),
            sql.col(f"{subject.figure}.samples").alias("samples"),
        )
        for subject in subjects
    ]
    return row.select(sql.inline(sql.array(*structs)))


_FAMILIES: Final = {
    "latency": LATENCY_FIGURES,
    "windows": WINDOW_FIGURES,
    "throughput": THROUGHPUT_FIGURES,
    "outcome": OUTCOME_FIGURES,
}


def _family_of(figure: str) -> str:
    names = {family: {one.name for one in figures} for family, figures in _FAMILIES.items()}
    names |= {family: {*values} for family, (_, values) in FOUND.items()}
    return next(family for family, known in names.items() if figure in known)
