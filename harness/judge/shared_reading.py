"""Reading of a large file of JSON lines by several workers; other files are read by this process.

A failing worker, for whatever reason, is no fault of the file: this process then reads it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from splitbrain.contracts.budget import Budget
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.warm_workers import SHARED_FROM_BYTES
from splitbrain.history.column_reader import columns_apart, read_columns
from splitbrain.history.columns import OperationColumns
from splitbrain.history.event_columns import EventColumns, paired_columns
from splitbrain.history.formats import guess_format, known_format
from splitbrain.history.line_columns import LineRange, joined, line_ranges, read_range

_RANGE_FUNCTION: Final = f"{__name__}:read_one"


def read_one(lines: LineRange, _budget: Budget) -> EventColumns | None:
    """Read the events of one range, in a worker."""
    return read_range(lines)


def read_shared(
    path: Path,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: list[FramedChild],
) -> OperationColumns | None:
    """Read as ``history.column_reader.read_columns`` does, if that pays off by several workers.

    Raises:
        HistoryError: see there.
        UsageError: see there.
    """
    found = known_format(history_format) if history_format else guess_format(path)
    ranges: list[LineRange] = []
    if found == "jsonl" and path.is_file() and path.stat().st_size >= SHARED_FROM_BYTES:
        ranges = line_ranges(path, limits.jobs)
    if len(ranges) < 2:
        return read_columns(path, history_format)
    outcomes = workers.run_parts(
        [workers.Part(_RANGE_FUNCTION, lines) for lines in ranges],
        limits,
        give_up=give_up,
        warm=warm,
    )
    if any(outcome.failure is not None for outcome in outcomes):
        return read_columns(path, history_format)
    parts = [outcome.value for outcome in outcomes]
    columns = None if None in parts else paired_columns(joined(parts))
    return None if columns is None else columns_apart(columns)
