"""Interface of an engine: named jobs over a folder of tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import pandas as pd

#: Nanoseconds of a slot, and of before and after; as in ``spark_analysis.jobs.availability``.
SLOT_NS: Final = 100_000_000
CONTEXT_NS: Final = 5_000_000_000

#: Job to the columns by which results are brought into one order, and those that are compared.
COLUMNS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "pair": (("run_id", "type"), ("operations", "indexes", "latency_ns")),
    "latency": (
        ("run_id", "f", "second", "type"),
        ("count", "p50_ms", "p95_ms", "p99_ms", "max_ms"),
    ),
    "throughput": (("run_id", "second"), ("ok", "fail", "info")),
    "windows": (
        ("run_id", "index"),
        (
            "availability_before",
            "availability_during",
            "availability_after",
            "failover_ms",
            "recovery_ms",
            "new_epoch",
        ),
    ),
    "lost": (("run_id", "index"), ("position_epoch", "position_offset", "holders")),
    "phantom": (("run_id", "offset"), ("epoch", "reason")),
}
#: Jobs that no other engine was given: they are run to see that they finish.
SPARK_ONLY: Final = ("unavailability", "divergences", "duplicates", "stale_reads", "client_errors")
#: Steps without which Spark can do none of the jobs, alone and without a result: files read, rows
#: that belong together brought together (and sorted, where ``pair`` needs it), operations written;
#: latencies gathered in their groups, operations counted by second and by slot; commits and
#: operations grouped by a hash of their texts, and read and hashed once more, as is done to find
#: the texts of the few that are left.
FLOORS: Final = (
    "read_operations",
    "gather_latencies",
    "count_by_second",
    "count_by_slot",
    "read_events",
    "exchange_events",
    "write_operations",
    "exchange_commits",
    "group_commits",
    "hash_commits",
)


class Engine(Protocol):
    """One engine with its tables open; every job reads the files anew."""

    def run(self, job: str, output: Path) -> pd.DataFrame:
        """The result of a job; ``pair`` writes the operations into ``output`` as Parquet as well.

        Raises:
            MemoryError: there was not enough.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
