"""Parquet tables of paired operations, read and written with pyarrow alone; no Spark is needed.

The columns are those that ``splitbrain analyze`` writes to ``operations.parquet``: ``process, f,
type, start_ns`` and, where there are any, ``index, key, argument, result, end_ns, node, error,
position_epoch, position_offset, final``. Values are JSON, or whole numbers where the column holds
nothing else; processes may be texts, and times timestamps. Must never guess: a row that makes no
sense is named, or left out and counted.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.history.errors import BrokenLines, HistoryError
from splitbrain.history.json_problems import TOO_DEEP, in_words, is_too_deep
from splitbrain.history.raw_operations import EXACT_MAX, ProcessNumbers, is_nemesis
from splitbrain.history.records import PairedOperation

# The library has no types; a plain import would make each of its names an error.
pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")
pq: Any = import_module("pyarrow.parquet")

#: Column, its type, and whether each row must have a value.
COLUMNS: Final = {
    "index": ("int64", False),
    "process": ("int64", True),
    "f": ("string", True),
    "key": ("string", False),
    "argument": ("string", False),
    "result": ("string", False),
    "type": ("string", True),
    "start_ns": ("int64", True),
    "end_ns": ("int64", False),
    "node": ("string", False),
    "error": ("string", False),
    "position_epoch": ("int64", False),
    "position_offset": ("int64", False),
    "final": ("bool", False),
}
#: Columns that hold values.
VALUES: Final = ("argument", "result")
_OUTCOMES: Final = ("ok", "fail", "info")
_NEXT_STEP: Final = "Leave the row out, with --skip-broken too, or write the table again"
_ENCODER = msgspec.json.Encoder(order="sorted")


def read_table(path: Path, processes: ProcessNumbers) -> Any:
    """Read the known columns of a file, or a folder of them, in the order of the invocations.

    Raises:
        HistoryError: it is no Parquet, lacks a column, or holds several runs.
    """
    try:
        names = pq.ParquetDataset(path).schema.names
        wanted = [name for name in ("run_id", *COLUMNS) if name in names]
        table = pq.read_table(path, columns=wanted, partitioning=None)
        # Damaged bytes may have become invalid texts, or lengths beyond the memory.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        refusal = str(error).split("\n", 1)[0].rstrip(". ")
        problem = f"it cannot be read as Parquet: {refusal}"
        raise HistoryError(str(path), problem, "Write or copy the table again") from error
    lacking = [name for name, (_, needed) in COLUMNS.items() if needed and name not in names]
    if lacking:
        problem = f"the table has no column {', '.join(lacking)}"
        next_step = "Write a table of paired operations, as `splitbrain docs history-format` tells"
        raise HistoryError(str(path), problem, next_step)
    if "run_id" in names:
        runs = pc.count_distinct(table["run_id"]).as_py()
        if runs > 1:
            raise HistoryError(
                str(path), f"the table holds {runs} runs", "Write a table of one run alone"
            )
        table = table.drop_columns(["run_id"])
    table = table.append_column("row", pa.array(np.arange(len(table))))
    table = _typed(path, _without_names(path, table, processes))
    # Spark orders by completion; without an index, the rows are in the order of the history.
    order = "index" if "index" in names else "start_ns"
    sorting = table.select([order, "row"])
    return table.take(
        pc.sort_indices(sorting, sort_keys=[(order, "ascending"), ("row", "ascending")])
    )


def _typed(path: Path, table: Any) -> Any:
    """Cast each column to its declared type; values may stay whole numbers."""
    for place, name in enumerate(table.column_names):
        if name not in COLUMNS:
            continue
        column = _whole(table[name])
        declared = pa.type_for_alias(COLUMNS[name][0])
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not (name in VALUES and pa.types.is_integer(column.type)):
            try:
                exact = _exact(column) if pa.types.is_int64(declared) else column
                column = exact.cast(declared)
            except (pa.ArrowException, ValueError) as error:
                problem = f"its column {name} is of type {column.type}, not {declared}"
                if pa.types.is_floating(column.type):
                    problem = f"its column {name} holds fractions, or numbers that were rounded"
                raise HistoryError(str(path), problem, "Write the table again") from error
        table = table.set_column(place, name, column)
    return table


def _exact(column: Any) -> Any:
    """Return a column of whole numbers or moments, fit for a cast that refuses fractions."""
    kind = column.type
    # Two columns of moments may have different units.
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("ns", kind.tz))
    if pa.types.is_duration(kind):
        return column.cast(pa.duration("ns"))
    if pa.types.is_floating(kind):
        if pc.any(pc.greater(pc.abs(column), EXACT_MAX)).as_py():
            raise ValueError("it was rounded")
    elif not any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    ):
        raise ValueError("it holds no numbers")
    return column


def _without_names(path: Path, table: Any, processes: ProcessNumbers) -> Any:
    """Number the processes that are texts, and drop the nemesis."""
    place = table.column_names.index("process")
    column = encoded(table["process"])
    names: list[Any] = column.dictionary.to_pylist()
    if not any(isinstance(name, str) for name in names):
        return table
    try:
        numbers = [None if is_nemesis(name) else processes.of(name) for name in names]
    except ValueError as error:
        raise HistoryError(
            str(path), f"in its column process: {error}", "Write the table again"
        ) from error
    clients = pa.array([not is_nemesis(name) for name in names]).take(column.indices)
    numbered = pa.array(numbers, pa.int64()).take(column.indices)
    kept = pc.fill_null(clients, fill_value=True)
    return table.set_column(place, "process", numbered).filter(kept)


def read_operations(
    path: Path, broken: BrokenLines, processes: ProcessNumbers
) -> list[PairedOperation]:
    """Read the operations of a table, in the order of their invocation; see ``read_table``.

    Raises:
        HistoryError: see ``read_table``; or a row makes no sense and none may be left out.
    """
    table = read_table(path, processes)
    rows = table["row"].to_pylist()
    bad = bad_rows(table)
    values = {
        name: _decoded(table, name, bad) if name in table.column_names else [None] * len(rows)
        for name in VALUES
    }
    for place in sorted(bad):
        problem = f"row {rows[place] + 1}: {bad[place]}"
        broken.add(None, None, problem, next_step=_NEXT_STEP)
    columns = {name: values[name] if name in VALUES else _listed(table, name) for name in COLUMNS}
    if "index" not in table.column_names:
        columns["index"] = list(range(len(rows)))
    positions = [
        None if epoch is None or offset is None else (epoch, offset)
        for epoch, offset in zip(
            columns.pop("position_epoch"), columns.pop("position_offset"), strict=True
        )
    ]
    finals = [bool(final) for final in columns.pop("final")]
    operations = list(map(PairedOperation, *columns.values(), positions, finals))
    if not bad:
        return operations
    return [operation for place, operation in enumerate(operations) if place not in bad]


def _listed(table: Any, name: str) -> list[Any]:
    """Return a column as Python values; equal texts are one object."""
    if name not in table.column_names:
        return [None] * len(table)
    if not pa.types.is_string(table[name].type):
        return table[name].to_pylist()
    column = encoded(table[name])
    return _taken(column.dictionary.to_pylist(), column.indices)


def _taken(values: Sequence[Any], codes: Any) -> list[Any]:
    lookup = np.empty(len(values) + 1, dtype=object)
    for code, value in enumerate(values):
        lookup[code] = value
    return lookup[np.asarray(pc.fill_null(codes, len(values)))].tolist()


def bad_rows(table: Any) -> dict[int, str]:
    """Return the place of each senseless row with its first problem."""
    bad: dict[int, str] = {}

    def refuse(where: Any, problem: str) -> None:
        mask = np.asarray(pc.fill_null(where, fill_value=False))
        for place in np.flatnonzero(mask):
            bad.setdefault(int(place), problem)

    for name, (_, needed) in COLUMNS.items():
        if needed:
            refuse(table[name].is_null(), f"it has no {name}")
    known = pc.is_in(table["type"], value_set=pa.array(_OUTCOMES))
    refuse(pc.invert(known), "its type is none of ok, fail, info")
    has_end = "end_ns" in table.column_names
    end = table["end_ns"] if has_end else pa.nulls(len(table), pa.int64())
    is_open = pc.equal(table["type"], "info")
    refuse(pc.and_(pc.invert(is_open), pc.is_null(end)), "it is over and has no end_ns")
    refuse(pc.and_(is_open, pc.is_valid(end)), "it is info and has an end_ns")
    refuse(pc.less(end, table["start_ns"]), "it ends before it starts")
    if "index" in table.column_names:
        index = np.asarray(pc.fill_null(table["index"], -1))
        again = np.zeros(len(index), dtype=bool)
        again[1:] = index[1:] == index[:-1]
        again |= np.asarray(table["index"].is_null())
        refuse(pa.array(again), "its index is that of another row, or missing")
    if not bad:
        _refuse_overlaps(table, end, refuse)
    return bad


def _refuse_overlaps(table: Any, end: Any, refuse: Any) -> None:
    """Refuse overlaps: a process runs one operation at a time, though ``info`` stays open."""
    process = np.asarray(table["process"])
    order = np.argsort(process, kind="stable")
    start = np.asarray(table["start_ns"])[order]
    over = np.asarray(pc.coalesce(end, table["start_ns"]))[order]
    same = process[order][1:] == process[order][:-1]
    overlapping = np.zeros(len(process), dtype=bool)
    overlapping[order[1:]] = same & (start[1:] < over[:-1])
    refuse(pa.array(overlapping), "its process is still at work on another operation")


def _decoded(table: Any, name: str, bad: dict[int, str]) -> list[Any]:
    """Return the values of a column; add broken ones to ``bad``."""
    column = table[name]
    if pa.types.is_integer(column.type):
        return column.to_pylist()
    coded = encoded(column)
    texts: list[str] = coded.dictionary.to_pylist()
    try:
        values: list[Any] = msgspec.json.decode(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        values = []
    if len(values) != len(texts) or any(map(is_too_deep, values)):  # told one by one
        values, broken = _singly(texts)
        for place, code in enumerate(coded.indices.to_pylist()):
            if code in broken:
                bad.setdefault(place, f"its {name} is not valid JSON: {broken[code]}")
    return _taken(values, coded.indices)


def encoded(column: Any) -> Any:
    """Return a column as codes into its distinct values."""
    return _whole(column).dictionary_encode()


def _whole(column: Any) -> Any:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _singly(texts: Sequence[str]) -> tuple[list[Any], dict[int | None, str]]:
    values: list[Any] = []
    broken: dict[int | None, str] = {}
    for code, text in enumerate(texts):
        try:
            values.append(msgspec.json.decode(text))
        except UNREADABLE as error:
            values.append(None)
            broken[code] = in_words(error).removeprefix("it is not valid JSON: ")
        else:
            if is_too_deep(values[-1]):
                broken[code] = TOO_DEEP
    return values, broken


def write_operations(path: Path, operations: Sequence[PairedOperation]) -> None:
    """Write a table that ``read_operations`` reads.

    Raises:
        OSError: the file cannot be written.
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for operation in operations:
        epoch, offset = operation.position or (None, None)
        values = (
            *(operation.index, operation.process, operation.f, operation.key),
            *(_json(operation.argument), _json(operation.result), operation.type),
            *(operation.start, operation.end, operation.node, operation.error),
            *(epoch, offset, operation.final),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    schema = pa.schema([(name, pa.type_for_alias(type_)) for name, (type_, _) in COLUMNS.items()])
    pq.write_table(pa.table(columns, schema=schema), path)


def _json(value: Any) -> str | None:
    return None if value is None else _ENCODER.encode(value).decode()
