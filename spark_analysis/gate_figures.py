"""The figures of the release gate: jobs' results of all selected runs to one small table.

What each figure means stands in ``figure_catalogue``. Every figure of one selection comes from one
aggregation, and nothing but the small table leaves Spark. Latencies are counted by whole
microsecond first, so that an exact quantile of all operations of all runs needs no sort of them.
Must never judge: a bound is the policy's business, and no data is null, never zero.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from splitbrain.contracts.figure import Condition, Figure, Subject
from splitbrain.spark_analysis.figure_catalogue import (
    LATENCY_FIGURES,
    LEADERSHIP_FIGURES,
    PHANTOM_FIGURES,
    THROUGHPUT_FIGURES,
    WINDOW_FIGURES,
)
from splitbrain.spark_analysis.finding_figures import (
    DIVERGENCE_FIGURES,
    DUPLICATE_FIGURES,
    ELECTION_FIGURES,
    OUTCOME_FIGURES,
    STALE_READ_FIGURES,
)
from splitbrain.spark_analysis.gate_finding_measures import (
    divergence,
    duplicated,
    election,
    outcome,
    stale_read,
)
from splitbrain.spark_analysis.gate_selection import Columns, Selection, one_row
from splitbrain.spark_analysis.jobs.availability import fault_windows
from splitbrain.spark_analysis.jobs.commits import phantom_commits
from splitbrain.spark_analysis.jobs.latency import throughput
from splitbrain.spark_analysis.jobs.leadership import leader_overlaps, reigns
from splitbrain.spark_analysis.tables import RunTables

#: Result: one row per subject; ``value`` is null where there are no samples.
FIGURES: Final = StructType(
    [
        StructField("subject", StringType(), nullable=False),  # ``Subject.text``
        StructField("value", DoubleType()),
        StructField("samples", LongType(), nullable=False),
    ]
)
_NS_PER_US: Final = 1000
_US_PER_MS: Final = 1e3
_NS_PER_MS: Final = 1e6


def gate_figures(tables: RunTables, runs: DataFrame, subjects: Sequence[Subject]) -> DataFrame:
    """The value of every subject.

    Args:
        tables: of the selected runs and no others.
        runs: rows of ``SELECTED_RUNS``, one per run.
        subjects: figures of ``figure_catalogue``, at least one.

    Returns:
        Rows of ``FIGURES``, in no order.
    """
    measures = _Measures(tables, runs)
    groups: dict[tuple[str, tuple[Condition, ...]], list[Subject]] = {}
    for subject in subjects:
        groups.setdefault((_FAMILY_BY_FIGURE[subject.figure], subject.conditions), []).append(
            subject
        )
    frames = [
        _rows(members, measures.of(family, conditions))
        for (family, conditions), members in groups.items()
    ]
    return reduce(DataFrame.unionByName, frames)


class _Measures(Selection):
    """One row of all figures of a family, under any conditions."""

    def of(self, family: str, conditions: Sequence[Condition]) -> DataFrame:
        """Columns ``<figure>`` and ``<figure>.samples`` of one row."""
        return _FAMILIES[family][1](self, conditions)

    def latency(self, conditions: Sequence[Condition]) -> DataFrame:
        """Figures of ok operations."""
        counted = self.once("latency", lambda: _counted_latencies(self.tables.operations))
        chosen = self.chosen(counted, conditions, operation="f")
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
        return one_row(
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
        """Figures of faults that were seen to bite."""
        windows = self.once(
            "windows", lambda: fault_windows(self.tables.operations, self.tables.faults)
        )
        chosen = self.chosen(windows.where("verified"), conditions, fault="kind")
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
        return one_row(chosen.agg(*aggregates), columns)

    def throughput(self, conditions: Sequence[Condition]) -> DataFrame:
        """Figures of how much was acknowledged."""
        by_second = self.once("throughput", lambda: throughput(self.tables.operations))
        seconds = sql.max("second") - sql.min("second") + 1
        by_run = (
            self.chosen(by_second, conditions)
            .groupBy("run_id")
            .agg((sql.sum("ok") / seconds).alias("rate"))
        )
        figures = by_run.agg(
            sql.avg("rate").alias("mean"),
            sql.min("rate").alias("least"),
            sql.count("rate").alias("samples"),
        )
        samples = sql.col("samples")
        return one_row(
            figures,
            {
                "throughput_mean": (sql.col("mean"), samples),
                "throughput_min": (sql.col("least"), samples),
            },
        )

    def leadership(self, conditions: Sequence[Condition]) -> DataFrame:
        """Figures of who led."""
        tables = self.tables
        overlaps = self.once(
            "overlaps",
            lambda: leader_overlaps(reigns(tables.state_events, tables.faults, tables.operations)),
        )
        told = self.chosen(tables.state_events.select("run_id").distinct(), conditions).agg(
            sql.count("run_id").alias("samples")
        )
        length = (sql.col("end_ns") - sql.col("start_ns")) / _NS_PER_MS
        found = self.chosen(overlaps, conditions).agg(
            sql.count_distinct("run_id", sql.when(sql.col("same_epoch"), sql.col("epoch_a"))).alias(
                "epochs"
            ),
            sql.max(sql.when(~sql.col("same_epoch"), length)).alias("longest"),
        )
        samples = sql.col("samples")
        is_told = samples > 0
        longest = sql.coalesce("longest", sql.lit(0.0))
        return one_row(
            told.crossJoin(found),
            {
                "split_brain_epochs": (sql.when(is_told, sql.col("epochs")), samples),
                "leader_overlap_max_ms": (sql.when(is_told, longest), samples),
            },
        )

    def phantom(self, conditions: Sequence[Condition]) -> DataFrame:
        """Figures of committed records that nobody asked for."""
        phantoms = self.once(
            "phantom", lambda: phantom_commits(self.tables.operations, self.tables.committed)
        )
        dumped = self.tables.logs.where(sql.col("start_offset").isNotNull())
        told = self.chosen(dumped.select("run_id").distinct(), conditions)
        samples = sql.col("samples")
        found = (
            phantoms.join(sql.broadcast(told), "run_id", "left_semi")
            .agg(sql.count(sql.lit(1)).alias("found"))
            .crossJoin(told.agg(sql.count("run_id").alias("samples")))
        )
        value = sql.when(samples > 0, sql.col("found"))
        return one_row(found, {"phantom_commits": (value, samples)})


def _counted_latencies(operations: DataFrame) -> DataFrame:
    """How many ok operations of each run and kind took so many whole microseconds."""
    elapsed_ns = sql.col("end_ns") - sql.col("start_ns")
    return (
        operations.where(~sql.col("final") & (sql.col("type") == "ok"))
        .where(sql.col("end_ns").isNotNull())
        .groupBy("run_id", "f", sql.floor(elapsed_ns / sql.lit(_NS_PER_US)).alias("us"))
        .agg(sql.count(sql.lit(1)).alias("count"))
    )


def _rows(subjects: Iterable[Subject], row: DataFrame) -> DataFrame:
    """One row per subject."""
    structs = [
        sql.struct(
            sql.lit(subject.text).alias("subject"),
            sql.col(f"{subject.figure}.value").alias("value"),
            sql.col(f"{subject.figure}.samples").alias("samples"),
        )
        for subject in subjects
    ]
    return row.select(sql.inline(sql.array(*structs)))


_Measure = Callable[[_Measures, Sequence[Condition]], DataFrame]

_FAMILIES: Final[dict[str, tuple[tuple[Figure, ...], _Measure]]] = {
    "latency": (LATENCY_FIGURES, _Measures.latency),
    "windows": (WINDOW_FIGURES, _Measures.windows),
    "throughput": (THROUGHPUT_FIGURES, _Measures.throughput),
    "leadership": (LEADERSHIP_FIGURES, _Measures.leadership),
    "phantom": (PHANTOM_FIGURES, _Measures.phantom),
    "divergence": (DIVERGENCE_FIGURES, divergence),
    "duplicate": (DUPLICATE_FIGURES, duplicated),
    "election": (ELECTION_FIGURES, election),
    "outcome": (OUTCOME_FIGURES, outcome),
    "stale read": (STALE_READ_FIGURES, stale_read),
}
_FAMILY_BY_FIGURE: Final[dict[str, str]] = {
    figure.name: family for family, (figures, _) in _FAMILIES.items() for figure in figures
}
