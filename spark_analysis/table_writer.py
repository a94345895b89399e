"""Writes one declared table as Parquet, in batches, all or nothing; small files likewise.

A table is a folder with one Parquet file. The new file is written beside the old one under a name
that Spark ignores, synced and renamed over it: a reader, and a crash at any moment, meet the old
table or the new one. Must never hold more than one batch of rows.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_analysis.schemas import Table, arrow_schema

#: Rows held in memory, and rows of a Parquet row group: enough to compress well, a few MB.
BATCH_ROWS: Final = 50_000
#: The only file of a table, so that a new one can replace it in one step.
PART_FILE: Final = "part-00000.parquet"


class TableWriter:
    """Collects rows and writes them batch by batch; made by ``replace_table``."""

    def __init__(self, table: Table, file: Path, batch_rows: int) -> None:
        self._schema = arrow_schema(table)
        self._file = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []
        self._batch_rows = batch_rows
        #: Rows taken so far.
        self.row_count = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Take one row, its values in the order of the table's columns."""
        self._rows.append(row)
        self.row_count += 1
        if len(self._rows) >= self._batch_rows:
            self._write_batch()

    def _write_batch(self) -> None:
        if not self._rows:
            return
        columns = [
            pa.array(values, type=field.type)
            for values, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
        ]
        self._file.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._rows.clear()

    def close(self, *, whole: bool) -> None:
        """Write what is left, unless the rows are to be thrown away, and close the file."""
        try:
            if whole:
                self._write_batch()
        finally:
            self._rows.clear()
            self._file.close()


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
        _sync(aside)
        aside.replace(folder / PART_FILE)
        _sync(folder)
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
        _sync(aside)
        aside.replace(path)
        _sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
