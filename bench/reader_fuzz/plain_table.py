"""A plain reader of Parquet tables, row by row with pyarrow.

Source: docs/history-format.md, "Parquet".
"""

from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.reader_fuzz.plain_history import (
    PlainOperation,
    Reading,
    RulesBroken,
    refuse_nonsense,
    refused,
)
from bench.reader_fuzz.plain_json import has_doubles, plain_of, read_json
from bench.reader_fuzz.plain_values import Plain, PlainError, text

# The library has no types.
_pq: Any = import_module("pyarrow.parquet")
_NEEDED = ("process", "f", "type", "start_ns")


def read_table_plainly(path: Path, *, apart: bool = False) -> Reading:
    """Return the operations of a table, in the order of their index or their start."""
    rows: list[dict[str, Any]] = _pq.read_table(path, partitioning=None).to_pylist()
    named = [row for row in rows if row.get("index") is not None]
    if len(named) < len(rows) and any("index" in row for row in rows):
        return refused("only some rows have an index")
    order = "index" if named else "start_ns"
    doubts: set[str] = set()
    try:
        if len({row["index"] for row in named}) < len(named):
            return refused("an index twice")
        if any(row.get(name) is None for row in rows for name in _NEEDED):
            return refused("a row without what is needed")
        rows.sort(key=lambda row: row[order])
        operations = [_operation(row, apart=apart) for row in rows]
        # A cell that is no JSON is refused, whatever the row comes to.
        stored = [row.get(name) for row in rows for name in ("argument", "result")]
        if any([_has_doubles(value) for value in stored]):  # noqa: C419 - each one is read
            doubts.add("numbers of two spellings")
        _refuse_overlaps(operations, doubts)
        for operation in operations:
            refuse_nonsense(operation)
    except (PlainError, RulesBroken) as error:
        return refused(str(error), doubts)
    return Reading(operations, doubts=frozenset(doubts))


def _operation(row: dict[str, Any], *, apart: bool) -> PlainOperation:
    start, end, type_ = row["start_ns"], row.get("end_ns"), row["type"]
    if type_ not in ("ok", "fail", "info"):
        raise RulesBroken("a row without an outcome")
    if (type_ == "info") != (end is None):
        raise RulesBroken("a row that is over without an end, or the other way round")
    if end is not None and end < start:
        raise RulesBroken("a row that ends before it starts")
    epoch, offset = row.get("position_epoch"), row.get("position_offset")
    key = row.get("key")
    return PlainOperation(
        process=("number", Fraction(row["process"])),
        f=row["f"],
        key=None if key is None else text(key),
        argument=_value(row.get("argument"), apart=apart),
        result=_value(row.get("result"), apart=apart) if type_ == "ok" else None,
        type=type_,
        start=Fraction(start),
        end=None if end is None else Fraction(end),
        error=row.get("error"),
        node=row.get("node"),
        position=None if epoch is None or offset is None else (epoch, offset),
        final=bool(row.get("final")),
    )


def _value(stored: str | int | None, *, apart: bool) -> Plain:
    if stored is None:
        return None
    if isinstance(stored, int):
        return ("number", Fraction(stored))
    return plain_of(read_json(stored.encode()), apart=apart)


def _has_doubles(stored: str | int | None) -> bool:
    return isinstance(stored, str) and has_doubles(read_json(stored.encode()))


def _refuse_overlaps(operations: list[PlainOperation], doubts: set[str]) -> None:
    """A process runs one operation at a time; what follows its ``info`` may be refused."""
    last: dict[Plain, PlainOperation] = {}
    for operation in operations:
        before = last.get(operation.process)
        if before is not None and before.end is None:
            doubts.add("a process that goes on after its info")
        elif before is not None and before.end is not None and operation.start < before.end:
            raise RulesBroken("a process does two things at a time")
        last[operation.process] = operation
