"""Reader of files straight into columns: JSON lines, EDN and kv files, packed or not, and tables.

Reads only files without fault and gives None for any other, for ``history.importers`` to read and
report. Must never guess.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from splitbrain.history.columns import (
    NEVER,
    OK,
    OUTCOMES,
    UNKNOWN,
    Codes,
    Integers,
    Numbering,
    OperationColumns,
    Positions,
)
from splitbrain.history.errors import HistoryError
from splitbrain.history.event_columns import paired_columns
from splitbrain.history.formats import Format, guess_format, known_format
from splitbrain.history.identity import PLAIN, PUTTING_TOGETHER, ValuesApart, is_value
from splitbrain.history.line_columns import read_lines
from splitbrain.history.operations_table import VALUES, bad_rows, encoded, pa, pc, read_table
from splitbrain.history.raw_operations import ProcessNumbers


def read_table_columns(path: Path) -> OperationColumns | None:
    """Read the columns of a table without fault; None for any other."""
    kinds, keys, outcomes = Numbering(), Numbering(None), Numbering()
    nodes, errors, values = Numbering(None), Numbering(None), Numbering(None)
    for outcome in OUTCOMES:
        outcomes.of(outcome)
    try:
        processes = ProcessNumbers()
        table = read_table(path, processes)
        # Process names need a note.
        if len(table) == 0 or processes.notes or bad_rows(table):
            return None
        outcome = _codes(table, "type", outcomes).astype(np.int8)
        arguments, answers = (_codes(table, name, values) for name in VALUES)
        if values.is_too_deep:
            return None
        return OperationColumns(
            indexes=_integers(table, "index", 0),
            processes=_integers(table, "process", 0),
            starts=_integers(table, "start_ns", 0),
            ends=_integers(table, "end_ns", NEVER),
            outcomes=outcome,
            kinds=_codes(table, "f", kinds),
            keys=_codes(table, "key", keys),
            nodes=_codes(table, "node", nodes),
            errors=_codes(table, "error", errors),
            arguments=arguments,
            results=np.where(outcome == OK, answers, np.int32(UNKNOWN)),
            kind_names=kinds.things,
            key_names=keys.things,
            node_names=nodes.things,
            error_names=errors.things,
            values=values.things,
            flat=values.flat,
            finals=_finals(table),
            positions=_positions(table),
        )
    except (HistoryError, ValueError, RecursionError):
        return None


def _integers(table: Any, name: str, otherwise: int) -> Integers:
    if name not in table.column_names:
        return np.arange(len(table), dtype=np.int64)
    return np.asarray(pc.fill_null(table[name], otherwise), dtype=np.int64)


def _positions(table: Any) -> Positions | None:
    names = ("position_epoch", "position_offset")
    if not set(names) <= set(table.column_names):
        return None
    known = np.asarray(pc.and_(*(pc.is_valid(table[name]) for name in names)))
    if not known.any():
        return None
    return Positions(known, *(_integers(table, name, 0) for name in names))


def _finals(table: Any) -> Any:
    if "final" not in table.column_names:
        return np.zeros(len(table), dtype=bool)
    return np.asarray(pc.fill_null(table["final"], fill_value=False), dtype=bool)


def _codes(table: Any, name: str, numbering: Numbering) -> Codes:
    """Return the codes of a column; raise ValueError where a text of values is not valid JSON."""
    if name not in table.column_names:
        return np.full(len(table), numbering.of(None), dtype=np.int32)
    column = encoded(table[name])
    things: list[Any] = column.dictionary.to_pylist()
    if name in VALUES and pa.types.is_string(column.dictionary.type):
        texts, things = things, msgspec.json.decode(f"[{','.join(things)}]")
        if len(things) != len(texts):
            raise ValueError("a text holds two values")
    codes = np.empty(len(things) + 1, dtype=np.int32)
    codes[:-1] = numbering.codes(things)
    null = pc.fill_null(column.indices, len(things))
    codes[-1] = numbering.of(None) if column.null_count else UNKNOWN
    return codes[np.asarray(null)]


def read_columns(path: Path, history_format: str | None = None) -> OperationColumns | None:
    """Read the columns of a file or a table, of its own format or the one given.

    None if it is not plain and whole.

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
