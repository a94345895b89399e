"""Results of jobs in their files: storing them, and reading the few rows that are told.

A result may have any number of rows. They are read without Spark, batch by batch, since each query
of Spark's takes longer than the reading of a small file.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from splitbrain.contracts.analysis.run import Moment, Row, Value
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.schemas import Table, columns_of, table_of
from splitbrain.spark_analysis.table_writer import PART_FILE

_NS_PER_MS: Final = 1e6
_AnyRow = TypeVar("_AnyRow", bound=Row)
_Kind = TypeVar("_Kind", bound=Row)


def store_result(result: DataFrame, table: Table, folder: RunFolder) -> Path:
    """Compute a result, replace an older one in one step, and return the path of its file."""
    place = folder.analysis_result(table.name)
    place.mkdir(parents=True, exist_ok=True)
    aside = place / f"_computing.{os.getpid()}"
    try:
        # One file: results are small.
        result.coalesce(1).write.mode("overwrite").parquet(str(aside.absolute()))
        (part,) = aside.glob("part-*.parquet")
        part.replace(place / PART_FILE)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return place / PART_FILE


def adopt_result(file: Path, table: Table, folder: RunFolder) -> Path:
    """Take a file as the result of a job, in place of an older one; return its path."""
    place = folder.analysis_result(table.name)
    place.mkdir(parents=True, exist_ok=True)
    aside = place / f"_adopting.{os.getpid()}"
    try:
        shutil.copyfile(file, aside)
        aside.replace(place / PART_FILE)
    finally:
        aside.unlink(missing_ok=True)
    return place / PART_FILE


class Result(Generic[_AnyRow]):
    """Stored rows of one job."""

    def __init__(self, row: type[_AnyRow], file: Path) -> None:
        self._row, self._file = row, file

    @property
    def count(self) -> int:
        """Number of rows."""
        with pq.ParquetFile(self._file) as file:
            return file.metadata.num_rows

    def columns(self, *names: str) -> pa.Table:
        """Return some columns of all rows, by their names in the table."""
        return pq.read_table(self._file, columns=list(names))

    def figure(self, column: str, function: str) -> Any:
        """Return one figure of a column, as pyarrow's ``max`` or ``sum``; None: no value."""
        found = self.columns(column).group_by([]).aggregate([(column, function)]).to_pylist()
        return found[0][f"{column}_{function}"]

    def first(self, *order: str, limit: int) -> list[_AnyRow]:
        """Return the first rows in this order; see ``first_as``."""
        return self.first_as(self._row, *order, limit=limit)

    def first_as(
        self, row: type[_Kind], *order: str, limit: int, only: pc.Expression | None = None
    ) -> list[_Kind]:
        """Return the first rows as records of a kind that has a part of the columns.

        Args:
            row: the kind.
            order: names in the table, nulls last; behind a minus the greatest first.
            limit: number of rows at most.
            only: condition of the rows.
        """
        schema = table_of(self._row).schema.remove_metadata()
        best = schema.empty_table()
        with pq.ParquetFile(self._file) as file:
            for batch in file.iter_batches():
                fresh = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
                chosen = fresh if only is None else fresh.filter(only)
                best = in_order(pa.concat_tables([best, chosen]), *order, limit=limit)
        return records(best, row)


def in_order(table: pa.Table, *order: str, limit: int) -> pa.Table:
    """Return the first rows of a table, in an order as of ``Result.first_as``."""
    keys = [
        (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
        for name in order
    ]
    return table.sort_by(keys).slice(0, limit)


def records(table: pa.Table, row: type[_Kind]) -> list[_Kind]:
    """Return rows as records: moments become ms, values are decoded."""
    columns = columns_of(row)
    found: list[Mapping[str, Any]] = [
        {column.field: _cell(cells[column.name], column.kind) for column in columns}
        for cells in table.to_pylist()
    ]
    return msgspec.convert(found, list[row])


def _cell(cell: Any, kind: Any) -> Any:
    if cell is None:
        return None
    if kind == Moment:
        return cell / _NS_PER_MS
    return msgspec.json.decode(cell) if kind == Value else cell
