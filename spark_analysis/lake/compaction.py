"""Compaction: moves the rows of many small files into few large ones, with the same content.

A run's rows keep the generation and the ingest that they came from, so that a run which is read
again while its rows are moved wins, and a second compaction finds nothing to do. The old files stay
until a cleaning removes them.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from splitbrain.spark_analysis.lake.commits import DataFile, Partition, RunEntry, new_commit_id
from splitbrain.spark_analysis.lake.snapshot import Snapshot, read_snapshot
from splitbrain.spark_analysis.lake.store import Store
from splitbrain.spark_analysis.lake.writing import PartitionWriter, commit
from splitbrain.spark_analysis.schemas import LAKE_TABLES, Table
from splitbrain.spark_analysis.table_writer import BATCH_ROWS

#: Size of a compaction's commits in data files; commits of at least half of it are left alone.
TARGET_BYTES: Final = 128 << 20
_TABLES: Final = {table.name: table for table in LAKE_TABLES}


class Compacted(NamedTuple):
    """Counts of a compaction."""

    runs: int
    files_before: int
    files_after: int
    #: Commits with rows of an older schema, read through upgrades and not moved.
    older: int


class _Piece(NamedTuple):
    """Rows of one commit and one partition that still count."""

    name: str
    entries: list[RunEntry]
    files: list[DataFile]
    size_bytes: int


def compact(
    store: Store, *, target_bytes: int = TARGET_BYTES, batch_rows: int = BATCH_ROWS
) -> Compacted:
    """Merge small commits, partition by partition; safe beside ingests and other compactions.

    New commits have about ``target_bytes`` of data files; ``batch_rows`` of a table are in memory.

    Raises:
        OSError: the lake cannot be read or written.
        HarnessError: a later version wrote the lake.
    """
    snapshot = read_snapshot(store)
    runs = before = after = older = 0
    for partition, pieces in _pieces(snapshot).items():
        current = [piece for piece in pieces if _is_current(piece)]
        older += len(pieces) - len(current)
        for group in _groups(current, target_bytes):
            entries, files = _merge(store, partition, group, batch_rows)
            runs += entries
            before += sum(len(piece.files) for piece in group)
            after += files
    return Compacted(runs, before, after, older)


def _pieces(snapshot: Snapshot) -> dict[Partition, list[_Piece]]:
    found: dict[Partition, list[_Piece]] = {}
    for name in sorted(snapshot.commits):
        counting = snapshot.counts(name)
        commit_ = snapshot.commits[name]
        partitions = {entry.partition for entry in commit_.runs if entry.run_id in counting}
        for partition in sorted(partitions):
            entries = [
                entry
                for entry in commit_.runs
                if entry.partition == partition and entry.run_id in counting
            ]
            files = [file for file in commit_.files if file.partition == partition]
            size = sum(file.size_bytes for file in files)
            found.setdefault(partition, []).append(_Piece(name, entries, files, size))
    return found


def _is_current(piece: _Piece) -> bool:
    return all(
        file.table in _TABLES and file.version == _TABLES[file.table].version
        for file in piece.files
    )


def _groups(pieces: Sequence[_Piece], target_bytes: int) -> Iterator[list[_Piece]]:
    small = [piece for piece in pieces if piece.size_bytes < target_bytes / 2]
    group: list[_Piece] = []
    for piece in small:
        if group and sum(kept.size_bytes for kept in group) + piece.size_bytes > target_bytes:
            if len(group) > 1:
                yield group
            group = []
        group.append(piece)
    if len(group) > 1:
        yield group


def _merge(
    store: Store, partition: Partition, group: Sequence[_Piece], batch_rows: int
) -> tuple[int, int]:
    """Write one commit with the rows of the group; return its numbers of runs and files."""
    began_s = time.monotonic()
    commit_id = new_commit_id()
    with PartitionWriter(store, commit_id, partition, batch_rows) as writer:
        for piece in group:
            ids = pa.array([entry.run_id for entry in piece.entries], pa.string())
            for file in piece.files:
                with store.reading(file.name) as path:
                    for batch in _rows(path, _TABLES[file.table], ids, batch_rows):
                        writer.writer(_TABLES[file.table]).add_batch(batch)
    moved = [
        msgspec.structs.replace(entry, compaction=entry.compaction + 1)
        for piece in group
        for entry in piece.entries
    ]
    commit(store, commit_id, moved, writer.files, began_s=began_s)
    return len(moved), len(writer.files)


def _rows(path: Path, table: Table, ids: pa.Array, batch_rows: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_rows):
            kept = batch.filter(
                pc.call_function("is_in", [batch.column("run_id")], pc.SetLookupOptions(ids))
            )
            if kept.num_rows:
                yield kept.cast(table.schema)
