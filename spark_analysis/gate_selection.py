"""Selections of the release gate's figures: tables of runs, under conditions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from splitbrain.contracts.figure import Condition
from splitbrain.spark_analysis.frames import RunTables

#: One row per selected run, with the columns for conditions on runs.
SELECTED_RUNS: Final = StructType(
    [
        StructField(name, StringType(), nullable=False)
        for name in ("run_id", "system", "version", "workload", "runtime")
    ]
)

#: Value and samples of each figure, as columns of one row.
Columns = dict[str, tuple[Column, Column]]


class Selection:
    """Selected runs; each job is planned once.

    Args:
        tables: of the selected runs and no others.
        runs: rows of ``SELECTED_RUNS``, one per run.
    """

    def __init__(self, tables: RunTables, runs: DataFrame) -> None:
        self.tables = tables
        self._runs = runs
        self._planned: dict[str, DataFrame] = {}

    def once(self, name: str, plan: Callable[[], DataFrame]) -> DataFrame:
        """Return a job's result, computed once for all selections."""
        if name not in self._planned:
            self._planned[name] = plan().localCheckpoint(eager=False)
        return self._planned[name]

    def chosen(
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


def one_row(frame: DataFrame, columns: Mapping[str, tuple[Column, Column]]) -> DataFrame:
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
