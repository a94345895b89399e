"""Writer of runs into the data files of one commit, partition by partition, and of the commit.

Memory is bounded by two batches of rows a table, the operations in flight and one record a run.
"""

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.lake.commits import (
    LAYOUT,
    Commit,
    DataFile,
    Partition,
    RunEntry,
    commit_name,
    data_name,
    encode_commit,
)
from splitbrain.spark_analysis.lake.snapshot import GRACE_S
from splitbrain.spark_analysis.lake.store import Store
from splitbrain.spark_analysis.run_rows import Row
from splitbrain.spark_analysis.schemas import Table
from splitbrain.spark_analysis.table_writer import TableWriter

#: Greatest age of a commit in the making: then a cleaning may take its files for garbage.
_COMMIT_TIME_MAX_S: Final = GRACE_S / 2


class PartitionWriter:
    """Data files of one commit in one partition; leaving the context closes them.

    A file is made with the first row: a table without rows has none.
    """

    def __init__(self, store: Store, commit_id: str, partition: Partition, batch_rows: int) -> None:
        self._store = store
        self._commit_id = commit_id
        self._partition = partition
        self._batch_rows = batch_rows
        self._ends = contextlib.ExitStack()
        self._writers: dict[str, tuple[Table, TableWriter, Path]] = {}
        #: Written files, once the context is left without an exception.
        self.files: list[DataFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for table, writer, path in self._writers.values():
                writer.close(whole=kind is None)
                if kind is None:
                    self._remember(table, writer, path)
        except BaseException as failure:
            self._ends.__exit__(type(failure), failure, failure.__traceback__)
            raise
        # This makes the files durable; on an exception it leaves them alone.
        self._ends.__exit__(kind, error, trace)

    def writer(self, table: Table) -> TableWriter:
        """Return the writer of one table."""
        if table.name not in self._writers:
            name = data_name(table.name, self._partition, self._commit_id)
            path = self._ends.enter_context(self._store.writing(name))
            self._writers[table.name] = (table, TableWriter(table, path, self._batch_rows), path)
        return self._writers[table.name][1]

    def fill(self, table: Table, run_id: str, rows: Iterable[Row]) -> tuple[int, int]:
        """Write the rows of one run; return their number, and how many fit no column."""
        source = iter(rows)
        first = next(source, None)
        if first is None:
            return 0, 0
        writer = self.writer(table)
        before = writer.row_count
        writer.add((run_id, *first))
        for row in source:
            writer.add((run_id, *row))
        refused = writer.end_of_run()
        return writer.row_count - before, refused

    def _remember(self, table: Table, writer: TableWriter, path: Path) -> None:
        self.files.append(
            DataFile(
                name=data_name(table.name, self._partition, self._commit_id),
                table=table.name,
                version=table.version,
                partition=self._partition,
                rows=writer.row_count,
                size_bytes=path.stat().st_size,
            )
        )


def commit(
    store: Store,
    commit_id: str,
    runs: Sequence[RunEntry],
    files: Sequence[DataFile],
    *,
    began_s: float,
) -> Commit:
    """Make written files part of the lake by one small write.

    Args:
        store: the lake's files.
        commit_id: that the files are named after.
        runs: whose rows are in the files.
        files: written for good.
        began_s: when the first of them was begun, by the monotonic clock.

    Raises:
        HarnessError: that was too long ago.
        OSError: the store refuses.
    """
    if time.monotonic() - began_s > _COMMIT_TIME_MAX_S:
        raise HarnessError(
            "commit to the lake",
            store.uri,
            f"writing the files took longer than {_COMMIT_TIME_MAX_S / 3600:g} hours, after which "
            "a cleaning may take them for garbage",
            "Try again, on a faster way to the lake.",
        )
    made = Commit(LAYOUT, commit_id, tuple(runs), tuple(files))
    store.write(commit_name(commit_id), encode_commit(made))
    return made
