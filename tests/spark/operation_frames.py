"""Operations as rows of the declared table, for tests that need no run folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from splitbrain.history.records import PairedOperation
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.schemas import OPERATIONS


class OperationFrames:
    """Puts operations where Spark reads them from.

    Args:
        session: reads them.
        folder: empty; one file for each frame.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._count = 0

    def __call__(self, runs: Mapping[str, Iterable[PairedOperation]]) -> DataFrame:
        """Rows of ``OPERATIONS`` of all runs, by run id."""
        rows = operation_rows(runs)
        path = self._folder / f"operations-{self._count}.parquet"
        self._count += 1
        pq.write_table(pa.Table.from_pylist(rows, schema=OPERATIONS.schema), path)
        return self._session.read.schema(struct_type(OPERATIONS)).parquet(str(path))


def operation_rows(runs: Mapping[str, Iterable[PairedOperation]]) -> list[dict[str, object]]:
    """The same as plain rows."""
    return [_row(run_id, one) for run_id, operations in runs.items() for one in operations]


def _row(run_id: str, one: PairedOperation) -> dict[str, object]:
    epoch, offset = one.position or (None, None)
    return {
        "run_id": run_id,
        "index": one.index,
        "process": one.process,
        "f": one.f,
        "key": one.key,
        "argument": _text(one.argument),
        "result": _text(one.result) if one.type == "ok" else None,
        "type": one.type,
        "start_ns": one.start,
        "end_ns": one.end,
        "node": one.node,
        "error": one.error,
        "position_epoch": epoch,
        "position_offset": offset,
        "final": one.final,
    }


def _text(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
