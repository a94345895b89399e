"""Opens the tables of one run or many with their declared schemas; writes results.

The schema of a table is never read from its files: a column that an older file lacks is null.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.ingest import table_folder
from splitbrain.spark_analysis.schemas import (
    COMMITTED,
    FAULTS,
    LOGS,
    OPERATIONS,
    STATE_EVENTS,
    Table,
)
from splitbrain.spark_analysis.table_writer import PART_FILE


class RunTables(NamedTuple):
    """The ingested tables, of any number of runs."""

    operations: DataFrame
    faults: DataFrame
    state_events: DataFrame
    committed: DataFrame
    logs: DataFrame


def open_tables(session: SparkSession, run_folders: Sequence[Path]) -> RunTables:
    """The tables of ingested runs, each table as one DataFrame over all of them."""
    folders = [RunFolder(path) for path in run_folders]

    def open_table(table: Table) -> DataFrame:
        paths = [str(table_folder(folder, table).absolute()) for folder in folders]
        return session.read.schema(struct_type(table)).parquet(*paths)

    return RunTables(
        *(open_table(table) for table in (OPERATIONS, FAULTS, STATE_EVENTS, COMMITTED, LOGS))
    )


def store_result(
    session: SparkSession, result: DataFrame, table: Table, folder: RunFolder
) -> DataFrame:
    """Compute a result, put it in the place of an older one, and open what was stored.

    The new file takes the old one's place in one step, as at ingest.
    """
    place = folder.analysis_result(table.name)
    place.mkdir(parents=True, exist_ok=True)
    aside = place / f"_computing.{os.getpid()}"
    try:
        # One file: results are small beside the tables that they come from.
        result.coalesce(1).write.mode("overwrite").parquet(str(aside.absolute()))
        (part,) = aside.glob("part-*.parquet")
        part.replace(place / PART_FILE)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return session.read.schema(struct_type(table)).parquet(str((place / PART_FILE).absolute()))
