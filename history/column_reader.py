"""Reads files straight into columns: JSON lines, EDN and kv files, packed or not, and tables.

Knows the way of a file without fault only and gives None for any other, which is then read by
``history.importers``, where faults are told. Must never guess.
"""

from pathlib import Path

from splitbrain.history.column_identity import columns_apart
from splitbrain.history.columns import OperationColumns
from splitbrain.history.event_columns import paired_columns
from splitbrain.history.formats import Format, guess_format, known_format
from splitbrain.history.line_columns import read_lines


def read_columns(path: Path, history_format: str | None = None) -> OperationColumns | None:
    """The columns of a file or a table; None for what is not plain and whole.

    Args:
        path: a file, or a folder of Parquet files.
        history_format: one of ``history.formats.FORMATS``; guessed where None.

    Raises:
        HistoryError: the file cannot be opened, or looks like no format.
        UsageError: there is no such format.
    """
    found = known_format(history_format) if history_format else guess_format(path)
    columns = _read(path, found)
    return None if columns is None else columns_apart(columns)


def _read(path: Path, found: Format) -> OperationColumns | None:
    if path.is_dir() and found != "parquet":
        return None
    if found == "jsonl":
        events = read_lines(path)
        return None if events is None else paired_columns(events)
    if found in ("edn", "kv"):
        from splitbrain.history.edn_columns import read_edn_columns

        return read_edn_columns(path, is_kv=found == "kv")
    if found == "parquet":
        # Half a second that lines need not wait.
        from splitbrain.history.table_columns import read_table_columns

        return read_table_columns(path)
    return None
