"""Figures of the release gate: jobs' results of all selected runs to one small table.

Every figure of one selection comes from one aggregation, and only the small table leaves Spark.
Latencies are counted by whole microsecond first, so that an exact quantile of all operations of all
runs needs no sort of them. No data is null, never zero.
"""

import re
from collections.abc import Callable, Iterable, Sequence
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

#: Aggregates in SQL: of each number of samples, the value of each figure.
Figures = dict[str, dict[str, str]]

#: One row per subject; ``value`` is null without samples.
FIGURES: Final = StructType(
    [
        StructField("subject", StringType(), nullable=False),  # ``Subject.text``
        StructField("value", DoubleType()),
        StructField("samples", LongType(), nullable=False),
        StructField("worst_in", StringType()),  # run of a least or greatest value
    ]
)
_NS_PER_US: Final = 1000
_EXTREME: Final = re.compile(r"(max|min)\((.+)\)(?: / 1e3D)?")


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
        # Equal aggregates are computed once.
        quantiles = "percentile(us, array(0.5D, 0.95D, 0.99D), count)"
        pooled = {
            **{f"latency_p{p}_ms": f"{quantiles}[{n}] / 1e3D" for n, p in enumerate((50, 95, 99))},
            "latency_max_ms": "max(us) / 1e3D",
        }
        by_run = chosen.groupBy("run_id").agg(
            sql.expr("percentile(us, 0.99D, count)").alias("p99"), sql.sum("count").alias("count")
        )
        worst = {"latency_p99_worst_ms": "max(p99) / 1e3D"}
        return _one_row(chosen, {"sum(count)": pooled}).crossJoin(
            _one_row(by_run, {"sum(count)": worst})
        )

    def windows(self, conditions: Sequence[Condition]) -> DataFrame:
        """Return figures of faults that were seen to bite."""
        windows = self._once(
            "windows", lambda: fault_windows(self.tables.operations, self.tables.faults)
        )
        figures: Figures = {
            "count(availability_during)": {
                "availability_min": "min(availability_during)",
                "availability_mean": "avg(availability_during)",
            }
        }
        for name in ("failover", "recovery"):
            quantiles = f"percentile({name}_ms, array(0.5D, 0.99D))"
            figures[f"count({name}_ms)"] = {
                f"{name}_p50_ms": f"{quantiles}[0]",
                f"{name}_p99_ms": f"{quantiles}[1]",
                f"{name}_max_ms": f"max({name}_ms)",
            }
        return _one_row(self._chosen(windows.where("verified"), conditions, fault="kind"), figures)

    def throughput(self, conditions: Sequence[Condition]) -> DataFrame:
        by_second = self._once("throughput", lambda: throughput(self.tables.operations))
        rate = sql.expr("sum(ok) / (max(second) - min(second) + 1)").alias("rate")
        by_run = self._chosen(by_second, conditions).groupBy("run_id").agg(rate)
        figures = {"throughput_mean": "avg(rate)", "throughput_min": "min(rate)"}
        return _one_row(by_run, {"count(rate)": figures})

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
        shares = {
            "operations_failed": "sum(fail) / sum(count)",
            "operations_open": "sum(info) / sum(count)",
        }
        return _one_row(self._chosen(counted, conditions, operation="f"), {"sum(count)": shares})

    def found(self, family: str, conditions: Sequence[Condition]) -> DataFrame:
        """Return figures of a job's findings: null if it could find nothing, else zero or more."""
        job, values = FOUND[family]
        row = self._chosen(self._once(family, lambda: job(self)), conditions).agg(
            *(sql.expr(value).alias(name) for name, value in values.items()),
            *(_worst_in(value).alias(f"{name} in") for name, value in values.items()),
        )
        samples_of = {
            figure.name: figure.samples_of for figure in FOUND_FIGURES if figure.name in values
        }
        for samples in set(samples_of.values()):
            runs = self._once(samples, partial(JUDGED_RUNS[samples], self.tables))
            chosen = self._chosen(runs, conditions)
            row = row.crossJoin(chosen.agg(sql.count("run_id").alias(samples)))
        counts = {name: sql.col(f"`{samples}`") for name, samples in samples_of.items()}
        return row.select(
            *(
                _figure(
                    name,
                    sql.when(count > 0, sql.coalesce(name, sql.lit(0))),
                    count,
                    sql.col(f"{name} in"),
                )
                for name, count in counts.items()
            )
        )

    def timeline(self) -> DataFrame:
        run = self.tables
        return self._once(
            "timeline", lambda: election_timeline(run.state_events, run.faults, run.operations)
        )


def _one_row(frame: DataFrame, figures: Figures) -> DataFrame:
    """Aggregate all rows to value and samples of each figure; no samples are null, and count 0."""
    return frame.agg(
        *(
            _figure(name, sql.expr(value), sql.expr(samples), _worst_in(value))
            for samples, values in figures.items()
            for name, value in values.items()
        )
    )


def _figure(name: str, value: Column, samples: Column, worst_in: Column) -> Column:
    counted = sql.coalesce(samples, sql.lit(0)).cast("long")
    return sql.struct(
        value.cast("double").alias("value"), counted.alias("samples"), worst_in.alias("worst_in")
    ).alias(name)


def _worst_in(value: str) -> Column:
    """Return the run of a least or greatest value; null for any other aggregate."""
    found = _EXTREME.fullmatch(value)
    if found is None:
        return sql.lit(None).cast("string")
    extreme, of = found.groups()
    # A null is less than any value, and none of them.
    return sql.expr(f"{extreme}(IF({of} IS NULL, NULL, STRUCT({of} AS of, run_id))).run_id")


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
JUDGED_RUNS: Final[dict[str, Callable[[RunTables], DataFrame]]] = {
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
            sql.col(f"{subject.figure}.worst_in").alias("worst_in"),
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
    names = {family: {figure.name for figure in figures} for family, figures in _FAMILIES.items()}
    names |= {family: {*values} for family, (_, values) in FOUND.items()}
    return next(family for family, known in names.items() if figure in known)
