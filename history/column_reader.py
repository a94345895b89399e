"""Reader of files straight into columns: JSON lines, EDN and kv files, packed or not, and tables.

Reads only files without fault and gives None for any other, for ``history.importers`` to read and
report. Must never guess.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from splitbrain.history.columns import UNKNOWN, OperationColumns
from splitbrain.history.event_columns import paired_columns
from splitbrain.history.formats import Format, guess_format, known_format
from splitbrain.history.identity import PLAIN, PUTTING_TOGETHER, ValuesApart, is_value
from splitbrain.history.line_columns import read_lines
from splitbrain.history.spark_extra import require_spark


def read_columns(
    path: Path, history_format: str | None = None, *, are_transactions: bool = False
) -> OperationColumns | None:
    """Read the columns of a file or a table, of its own format or the one given.

    None if it is not plain and whole. Transactions are read of JSON lines alone.

    Raises:
        HistoryError: the file cannot be opened, or looks like no format.
        UsageError: there is no such format, or nothing here that reads it.
    """
    found = known_format(history_format) if history_format else guess_format(path)
    if are_transactions:
        events = read_lines(path, are_transactions=True) if found == "jsonl" else None
        return None if events is None else paired_columns(events)
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
        require_spark("A Parquet history")
        from splitbrain.history.table_columns import read_table_columns

        return read_table_columns(path)
    return None


def columns_apart(
    columns: OperationColumns, *, one_kind_of_number: bool = True
) -> OperationColumns:
    """Return columns of all of a history, with values that Python tells apart.

    For ``one_kind_of_number`` see ``history.identity.ValuesApart``.
    """
    if columns.flat:
        return columns
    apart = ValuesApart(
        _things(columns),
        putting_together=lambda: PUTTING_TOGETHER in columns.kind_names,
        one_kind_of_number=one_kind_of_number,
    )
    values = columns.values if apart.is_plain else tuple(map(apart.of, columns.values))
    return msgspec.structs.replace(
        columns,
        values=values,
        flat=PLAIN.issuperset(map(type, values)),
        mixes_numbers=apart.mixes_numbers,
    )


def _things(columns: OperationColumns) -> list[Any]:
    values = columns.values
    met = np.zeros(len(values), dtype=bool)
    met[columns.arguments] = True
    truths = {code for code, value in enumerate(values) if type(value) is bool}
    for number, kind in enumerate(columns.kind_names):
        if is_value(kind, None):
            answered = columns.results[(columns.kinds == number) & (columns.results != UNKNOWN)]
            known = np.fromiter(
                (c for c in truths if not is_value(kind, values[c])), dtype=np.int32
            )
            met[answered[~np.isin(answered, known)]] = True
    return [values[code] for code in np.flatnonzero(met).tolist()]
