"""Measures transactions judged key by key over Spark: ``python -m bench.transactions_by_key``.

Makes list-append histories, writes them as the table ``operations``, and has them judged as
``splitbrain analyze --parts`` does, in a session that is warm. Prints seconds, waiting included,
the peak of memory of this process, which made the history and holds the findings of all keys, and
the seconds of one process that judges the same operations from memory. The exit code is 1 where a
verdict is not ``valid``.
"""

# pyright: standard

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.transaction_histories import USUAL, history
from splitbrain.checker.transactions.check import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.transactions import judge_transactions
from splitbrain.spark_analysis.schemas import OPERATIONS
from splitbrain.spark_analysis.session import spark_session

_LEVEL = "serializable"
_ROWS_AT_ONCE = 50_000
_KIB = 1024


def write(operations: Sequence[PairedOperation], path: Path) -> None:
    """Write operations as an ingest does."""
    with pq.ParquetWriter(path, OPERATIONS.schema) as file:
        for begin in range(0, len(operations), _ROWS_AT_ONCE):
            rows = [_row(each) for each in operations[begin : begin + _ROWS_AT_ONCE]]
            file.write_table(pa.Table.from_pylist(rows, schema=OPERATIONS.schema))


def _row(one: PairedOperation) -> dict[str, object]:
    return {
        "run_id": "bench",
        "index": one.index,
        "process": one.process,
        "f": one.f,
        "argument": msgspec.json.encode(one.argument).decode(),
        "result": msgspec.json.encode(one.result).decode() if one.type == "ok" else None,
        "type": one.type,
        "start_ns": one.start,
        "end_ns": one.end,
        "final": one.final,
    }


def measure(session: SparkSession, count: int, seed: int, folder: Path) -> bool:
    """Judge one history both ways; return whether both find it valid."""
    operations = history("list-append", USUAL, count, seed)
    path = folder / f"{count}.parquet"
    write(operations, path)
    began = time.monotonic()
    whole = check(operations, Unlimited(), "list-append", _LEVEL)
    alone_s = time.monotonic() - began
    del operations
    frame = session.read.schema(struct_type(OPERATIONS)).parquet(str(path))
    began = time.monotonic()
    judged = judge_transactions(frame, "list-append", _LEVEL)
    by_key_s = time.monotonic() - began
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB
    sys.stdout.write(
        f"{count:>12,} transactions on {judged.keys:,} keys: {by_key_s:.1f} s by key "
        f"({judged.verdict}), {alone_s:.1f} s in one process ({whole.verdict.value}), "
        f"peak {peak_mib:,} MiB\n"
    )
    sys.stdout.flush()
    return judged.verdict == whole.verdict.value == "valid"


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(prog="python -m bench.transactions_by_key")
    parser.add_argument(
        "--counts", default="1000,100000,1000000", help="by commas; the first warms"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with spark_session(application="bench") as session, TemporaryDirectory() as folder:
        counts = map(int, options.counts.split(","))
        found = [measure(session, count, options.seed, Path(folder)) for count in counts]
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
