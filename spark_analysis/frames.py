"""Declared tables in Spark: opening, bringing frames into shape, reading rows as records.

The schema of a table is never read from its files: a column that an older file lacks is null.
Effects of operations come from the workload's declaration at ingest; runs of older versions have
none, and the usual names of functions decide.
"""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from splitbrain.contracts.analysis.run import Moment, Row, Value
from splitbrain.history.functions import USUAL
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.ingest import table_folder
from splitbrain.spark_analysis.schemas import INGESTED_TABLES, Table, columns_of


def struct_type(table: Table) -> StructType:
    """Return the table's schema for Spark."""
    return from_arrow_schema(table.schema)


def conform(frame: DataFrame, table: Table, *, kept: Sequence[str] = ()) -> DataFrame:
    """Return the frame's columns as the table declares them, then the kept ones.

    A missing column is Spark's error.
    """
    return frame.select(
        *(sql.col(f"`{field.name}`").cast(field.dataType) for field in struct_type(table)), *kept
    )


_Row = TypeVar("_Row", bound=Row)
_NS_PER_MS: Final = 1e6


def rows_of(result: DataFrame, row: type[_Row], *order: str | Column, limit: int) -> list[_Row]:
    """Return at most so many rows of a result as records, by way of Arrow.

    Moments become ms, values are decoded.
    """
    columns = columns_of(row)
    shown = [
        (
            sql.col(column.name) / _NS_PER_MS if column.kind == Moment else sql.col(column.name)
        ).alias(column.field)
        for column in columns
    ]
    found = result.orderBy(*order).limit(limit).select(*shown).toArrow().to_pylist()
    for name in (column.field for column in columns if column.kind == Value):
        for cells in found:
            cells[name] = None if cells[name] is None else msgspec.json.decode(cells[name])
    return msgspec.convert(found, list[row])


@contextlib.contextmanager
def arrow_functions() -> Iterator[None]:
    """Silence a warning in ``mapInArrow`` and ``applyInArrow``.

    Spark warns of the version of pandas there, which such a function never uses.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        yield


#: Rows that are sent to every worker instead of being sorted into place: some MB.
FEW_ROWS: Final = 50_000


class Counted(NamedTuple):
    """Computed rows, and their number."""

    rows: DataFrame
    #: Number of rows; one above ``FEW_ROWS`` stands for all larger ones.
    size: int

    @property
    def are_few(self) -> bool:
        """Whether they can be sent to every worker."""
        return self.size <= FEW_ROWS

    def few(self, frame: DataFrame) -> DataFrame:
        """Return the frame, made of these rows, to be sent to every worker if they are few."""
        return sql.broadcast(frame) if self.are_few else frame


def few_or_many(frame: DataFrame) -> Counted:
    """Compute rows that are nearly always few beside the tables that they are to be joined with.

    Spark plans a join before it knows their number and would move the large table as well.
    """
    rows = frame.localCheckpoint()
    return Counted(rows, rows.limit(FEW_ROWS + 1).count())


_READS: Final = tuple(sorted(f for f, function in USUAL.items() if function.effect == "reads"))


def is_write() -> Column:
    """Whether the operation asked for a change, whatever came of it."""
    return sql.coalesce(sql.col("effect") != "reads", ~sql.col("f").isin(*_READS))


def is_refused() -> Column:
    """Whether the result of a change says that it was not done.

    ``[expected, new, false]`` of a compare-and-set, ``[number, false]`` of a create, ``false`` of a
    delete.
    """
    by_last = sql.col("f").isin("cas", "create") & sql.col("result").endswith("false]")
    by_name = by_last | ((sql.col("f") == "delete") & (sql.col("result") == "false"))
    return sql.coalesce(sql.col("effect") == "refused", by_name, sql.lit(False))


def has_record() -> Column:
    """Whether the operation has a record in the committed logs, if it was acknowledged."""
    return sql.coalesce(sql.col("effect") == "records", is_write() & ~is_refused())


def as_records(operations: DataFrame) -> DataFrame:
    """Name operations' columns as those of ``committed``; kind and value are those of its records.

    ``asked_f`` and ``argument`` stay as they were asked for. They differ where an adapter says so
    (``System.record_forms``).
    """
    is_same = sql.col("recorded_f").isNull()
    return operations.withColumnsRenamed(
        {"f": "asked_f", "position_epoch": "epoch", "position_offset": "offset"}
    ).withColumns(
        {
            "f": sql.coalesce("recorded_f", "asked_f"),
            "value": sql.when(is_same, sql.col("argument")).otherwise(sql.col("recorded_value")),
        }
    )


class RunTables(NamedTuple):
    """Ingested tables of any number of runs, as in ``INGESTED_TABLES``."""

    operations: DataFrame
    faults: DataFrame
    state_events: DataFrame
    committed: DataFrame
    logs: DataFrame


def open_tables(
    session: SparkSession, run_folders: Sequence[Path], *, in_one_piece: bool = False
) -> RunTables:
    """Open each table of ingested runs as one DataFrame over all of them.

    With ``in_one_piece`` Spark knows that all rows lie together: nothing is moved before it is
    sorted, grouped or joined.
    """
    folders = [RunFolder(path) for path in run_folders]

    def open_table(table: Table) -> DataFrame:
        paths = [str(table_folder(folder, table).absolute()) for folder in folders]
        opened = session.read.schema(struct_type(table)).parquet(*paths)
        return opened.coalesce(1) if in_one_piece else opened

    return RunTables(*map(open_table, INGESTED_TABLES))
