"""Reader of a lake's tables as DataFrames: the runs that count, in today's schemas.

Every table has, behind its own columns, the partitions ``system`` and ``day`` of its run: a
condition on them leaves out whole folders. A table is opened from the commits' lists of files,
never by listing folders.
"""

import functools
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.lake.commits import TABLES
from splitbrain.spark_analysis.lake.hadoop_store import HadoopStore
from splitbrain.spark_analysis.lake.snapshot import LiveFile, Snapshot, read_snapshot
from splitbrain.spark_analysis.lake.store import LocalStore, Store, local_root
from splitbrain.spark_analysis.lake.upgrades import OLDER, Versions, table_as_written, upgraded
from splitbrain.spark_analysis.schemas import LAKE_TABLES, Table

#: Columns from the folders' names.
PARTITIONS: Final = ("system", "day")
_PARTITION_FIELDS: Final = [StructField(name, StringType(), nullable=True) for name in PARTITIONS]


class LakeTables(NamedTuple):
    """Tables of a lake at one moment."""

    operations: DataFrame
    faults: DataFrame
    state_events: DataFrame
    committed: DataFrame
    logs: DataFrame
    metrics: DataFrame
    verdicts: DataFrame
    coverage: DataFrame
    runs: DataFrame
    sweeps: DataFrame
    seeds: DataFrame


def open_lake(session: SparkSession, store: Store, *, older: Versions = OLDER) -> LakeTables:
    """Open the lake as it is now, tables upgraded from older versions; later commits are not seen.

    Raises:
        HarnessError: there is no run in it, or a later version wrote it.
        OSError: it cannot be read.
    """
    snapshot = read_snapshot(store)
    if not snapshot.runs:
        raise HarnessError(
            "read the lake",
            store.uri,
            "no run was committed to it",
            "Put runs into it: splitbrain ingest DIR --lake URI.",
        )
    return LakeTables(
        *(open_table(session, store, snapshot, table, older=older) for table in LAKE_TABLES)
    )


def lake_at(session: SparkSession, uri: str) -> LakeTables:
    """Open the lake in a folder or at a URI as it is now; otherwise as ``open_lake``."""
    root = local_root(uri)
    return open_lake(session, HadoopStore(session, uri) if root is None else LocalStore(root))


def open_table(
    session: SparkSession,
    store: Store,
    snapshot: Snapshot,
    table: Table,
    *,
    older: Versions = OLDER,
) -> DataFrame:
    """Open one table of a lake as in the snapshot; empty where no run has rows.

    Raises:
        HarnessError: a later version wrote it.
    """
    by_version: dict[int, list[LiveFile]] = {}
    for live in snapshot.files(table.name):
        by_version.setdefault(live.file.version, []).append(live)
    parts = [
        upgraded(
            _rows(session, store, table_as_written(table, version, older), files),
            table,
            version,
            older,
            kept=PARTITIONS,
        )
        for version, files in sorted(by_version.items())
    ]
    if not parts:
        return session.createDataFrame([], _with_partitions(table))
    return functools.reduce(DataFrame.unionByName, parts)


def _rows(
    session: SparkSession, store: Store, table: Table, files: Sequence[LiveFile]
) -> DataFrame:
    """Return rows of files of one version, without superseded runs."""
    whole = [live for live in files if not live.superseded]
    partial = [live for live in files if live.superseded]
    parts: list[DataFrame] = []
    if whole:
        parts.append(_read(session, store, table, whole))
    if partial:
        left_out = pa.table(
            {
                "file_name": [
                    live.file.name.rpartition("/")[2] for live in partial for _ in live.superseded
                ],
                "run_id": [run_id for live in partial for run_id in sorted(live.superseded)],
            }
        )
        # The commit's name in the file name and the run's partition identify the file.
        named = _read(session, store, table, partial).withColumn(
            "file_name", sql.col("_metadata.file_name")
        )
        superseded = sql.broadcast(session.createDataFrame(left_out))
        parts.append(named.join(superseded, ["file_name", "run_id"], "left_anti").drop("file_name"))
    return functools.reduce(DataFrame.unionByName, parts)


def _read(
    session: SparkSession, store: Store, table: Table, files: Sequence[LiveFile]
) -> DataFrame:
    paths = [f"{store.uri}/{live.file.name}" for live in files]
    reader = session.read.schema(_with_partitions(table))
    return reader.option("basePath", f"{store.uri}/{TABLES}/{table.name}").parquet(*paths)


def _with_partitions(table: Table) -> StructType:
    return StructType([*struct_type(table).fields, *_PARTITION_FIELDS])
