"""Opening of a lake: a folder of this machine without Spark, anything else with it.

Also reads small tables as plain rows, for the gate. Rows come as they were written: a column that
an older version of the table lacked is not in them.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.spark_analysis.lake.commits import Row
from splitbrain.spark_analysis.lake.snapshot import Snapshot, read_snapshot
from splitbrain.spark_analysis.lake.store import LocalStore, Store, local_root

#: Hadoop's message for an unknown scheme.
_UNKNOWN_SCHEME = "No FileSystem for scheme"


@contextlib.contextmanager
def open_store(uri: str) -> Iterator[Store]:
    """Yield the files of a lake; a Spark session is started for a lake that is not on this machine.

    Raises:
        UsageError: it names no place, a file, or a kind of place that Spark does not know.
        HarnessError: Spark did not start.
        OSError: it cannot be reached.
    """
    root = local_root(uri)
    if root is not None:
        if root.exists() and not root.is_dir():
            raise UsageError(f"the lake {uri} is a file", "Name a folder, or one to be made")
        yield LocalStore(root)
        return
    # pyspark and a JVM, for lakes elsewhere alone.
    from splitbrain.spark_analysis.lake.hadoop_store import HadoopStore
    from splitbrain.spark_analysis.session import spark_session

    with spark_session(application="splitbrain lake") as session:
        try:
            store = HadoopStore(session, uri)
        except OSError as error:
            if _UNKNOWN_SCHEME not in str(error):
                raise
            scheme = uri.partition(":")[0]
            raise UsageError(
                f"Spark knows no file system {scheme!r}, which the lake {uri} asks for",
                "Name a folder, or put the jar that serves it on Spark's class path "
                "(spark.jars in the spark-defaults.conf of SPARK_CONF_DIR)",
            ) from error
        yield store


class PlainTables(NamedTuple):
    """Rows of some tables, and the partition of each run."""

    #: Rows that count, by table, in no order.
    rows: dict[str, list[Row]]
    #: System of each run.
    systems: dict[str, str]


def read_plainly(uri: str, tables: Sequence[str]) -> PlainTables:
    """Read whole tables of a lake as it is now; all are empty where there is no lake.

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
