"""Reader of Parquet tables straight into columns; None for a table that is not without fault.

Must never guess: ``history.operations_table`` reads the others and names the row.
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
        if values.is_odd:
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
