"""Small tables of a lake as plain rows, without Spark: for the gate, which needs a handful.

Rows come as they were written: a column that an older version of the table lacked is not in them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.lake.opening import open_store
from splitbrain.spark_analysis.lake.snapshot import Snapshot, read_snapshot
from splitbrain.spark_analysis.lake.store import Store

Row = dict[str, Any]


class PlainTables(NamedTuple):
    """Rows of some tables, and the partition of each run."""

    #: Table name to its rows that count, in no order.
    rows: dict[str, list[Row]]
    #: Run id to its system.
    systems: dict[str, str]


def read_plainly(uri: str, tables: Sequence[str]) -> PlainTables:
    """Tables of a lake as it is now; none of them has a row where there is no lake.

    Args:
        uri: folder or URI.
        tables: their names; all their rows are held in memory.

    Raises:
        UsageError: it names no place that Spark knows.
        HarnessError: the lake cannot be read, or a later version wrote it.
    """
    try:
        with open_store(uri) as store:
            snapshot = read_snapshot(store)
            rows = {name: _rows(store, snapshot, name) for name in tables}
    except (OSError, pa.ArrowException) as error:
        raise HarnessError(
            "read the lake",
            uri,
            str(error).splitlines()[0].rstrip("."),
            "Check that it can be reached and read.",
        ) from error
    systems = {run_id: entry.partition.system for run_id, (entry, _) in snapshot.runs.items()}
    return PlainTables(rows, systems)


def _rows(store: Store, snapshot: Snapshot, table: str) -> list[Row]:
    found: list[Row] = []
    for live in snapshot.files(table):
        with store.reading(live.file.name) as path:
            rows = pq.ParquetFile(path).read().to_pylist()
        found += (row for row in rows if row["run_id"] not in live.superseded)
    return found
