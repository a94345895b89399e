"""Writer of one declared table as Parquet, in batches, all or nothing; small files likewise.

A table is a folder with one Parquet file. The new file is written beside the old one under a name
that Spark ignores, synced and renamed over it: a reader, and a crash at any moment, meet the old
table or the new one. Must never hold more than two batches of rows.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from splitbrain.spark_analysis.schemas import Table

#: Rows in memory, and in a Parquet row group: enough to compress well, a few MB.
BATCH_ROWS: Final = 50_000
#: Only file of a table, so that a new one can replace it in one step.
PART_FILE: Final = "part-00000.parquet"


class TableWriter:
    """Writer of rows in row groups, those of one run after those of another; replaces the file.

    Rows wait as Arrow columns, an eighth of their size as Python objects, so that many small runs
    share a row group. ``batch_rows`` wait at most, which is about the size of a row group.
    """

    def __init__(self, table: Table, file: Path, batch_rows: int = BATCH_ROWS) -> None:
        self._schema = table.schema
        self._file = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._batch_rows = batch_rows
        self._refused = 0
        #: Rows taken so far, without refused ones.
        self.row_count = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Take one row, its values in the order of the table's columns."""
        self._rows.append(row)
        self.row_count += 1
        if len(self._rows) >= self._batch_rows:
            self._to_columns()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take rows that are columns already, of the table's schema."""
        self._to_columns()
        self.row_count += batch.num_rows
        self._wait(batch)

    def end_of_run(self) -> int:
        """Return how many rows since the last call fit no column and were left out."""
        self._to_columns()
        refused, self._refused = self._refused, 0
        return refused

    def close(self, *, whole: bool) -> None:
        """Write the remaining rows, unless not whole, and close the file."""
        try:
            if whole:
                self._to_columns()
                self._write_waiting()
        finally:
            self._rows.clear()
            self._waiting.clear()
            self._file.close()

    def _to_columns(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        try:
            self._wait(self._batch(rows))
        except (OverflowError, UnicodeError, pa.ArrowException):
            fitting = [row for row in rows if self._fits(row)]
            self._refused += len(rows) - len(fitting)
            self.row_count -= len(rows) - len(fitting)
            if fitting:
                self._wait(self._batch(fitting))

    def _fits(self, row: tuple[Any, ...]) -> bool:
        """Return whether a row's values fit its columns' types: a history may hold any number."""
        try:
            self._batch([row])
        except (OverflowError, UnicodeError, pa.ArrowException):
            return False
        return True

    def _batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = [
            pa.array(values, type=field.type)
            for values, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _wait(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= self._batch_rows:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if self._waiting:
            self._file.write_table(pa.Table.from_batches(self._waiting).combine_chunks())
            self._waiting.clear()
            self._waiting_rows = 0


@contextlib.contextmanager
def replace_table(
    table: Table, folder: Path, *, batch_rows: int = BATCH_ROWS
) -> Iterator[TableWriter]:
    """Write a table anew; it takes the old one's place when the block ends without an exception.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Spark leaves out names that begin with a dot or an underscore.
    aside = folder / f".{PART_FILE}.{os.getpid()}"
    try:
        writer = TableWriter(table, aside, batch_rows)
        try:
            yield writer
        except BaseException:
            writer.close(whole=False)
            raise
        writer.close(whole=True)
        sync(aside)
        aside.replace(folder / PART_FILE)
        sync(folder)
    finally:
        aside.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Write a small file anew, whole or not at all; makes its folder.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
