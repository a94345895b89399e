"""Taking transactions apart into the columns of a ``Table``; pure.

Everything is done for all micro-operations together. Only those of one transaction that touch one
key several times are looked at one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from operator import not_
from typing import Any, Final, NamedTuple

import numpy as np

from splitbrain.checker.findings import Undecided
from splitbrain.checker.transactions.column_parts import Answered, answered
from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.transactions.micro_operations import (
    PLAIN,
    WRITES,
    Flags,
    Numbers,
    Reads,
    Sense,
    Table,
    Writes,
    kind_of,
    names_of,
)
from splitbrain.history.columns import ColumnOperations
from splitbrain.history.edn_values import Name
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

#: Value before the first read.
_UNREAD: Final = object()


class _Flat(NamedTuple):
    """Micro-operations of all transactions, one behind the other."""

    #: Number of each transaction's.
    sizes: list[int]
    functions: list[Any]
    keys: list[Any]
    values: list[Any]


def table_of(operations: Sequence[PairedOperation], kind: Kind, poll: Callable[[], None]) -> Table:
    """Take transactions apart.

    Raises:
        Undecided: one of them makes no sense.
    """
    if isinstance(operations, ColumnOperations):
        parts = answered(operations.columns, kind)
        poll()
        if parts is not None:
            return _filled(operations, parts, kind)
    asked = [operation.argument for operation in operations]
    told = [o.result if o.type == "ok" else o.argument for o in operations]
    poll()
    flat = _regular(asked, told, kind)
    table = None if flat is None else _filled(operations, _numbered(operations, flat, kind), kind)
    if table is None or _has_repeated(table):
        sense = Sense(kind)
        for operation in operations:
            problem = sense(operation)
            if problem is not None:
                raise Undecided(f"the transaction of index {operation.index}: {problem}")
        lists = [[*map(list, parts)] for parts in told]
        table = _filled(operations, _numbered(operations, _flattened(lists), kind), kind)
    return table


def _flattened(parts: list[Any]) -> _Flat:
    """Raise ``TypeError`` where anything is no list, ``ValueError`` where one has no three items.

    Methods of the type itself refuse other types; asking for these would be one more walk through
    all of the memory, which is what takes the time.
    """
    length: Callable[[Any], int] = list[Any].__len__
    sizes = [*map(length, parts)]
    each: list[list[Any]] = [*chain.from_iterable(parts)]
    if {*map(length, each)} - {3}:
        raise ValueError
    flat = [*chain.from_iterable(each)]
    return _Flat(sizes, flat[::3], flat[1::3], flat[2::3])


def _regular(asked: list[Any], told: list[Any], kind: Kind) -> _Flat | None:
    """Take transactions apart that certainly make sense, unless they repeat a value; else None.

    ``Sense`` asks the same of one after the other, which takes ten times as long.
    """
    try:
        first, flat = _flattened(asked), _flattened(told)
    except (TypeError, ValueError):
        return None
    if first.sizes != flat.sizes or first.functions != flat.functions:
        return None
    if {*map(type, flat.functions)} - {str, Name}:
        return None
    if {*map(type, first.keys), *map(type, flat.keys)} - PLAIN or first.keys != flat.keys:
        return None
    is_read = {function: kind_of(function) == "r" for function in {*flat.functions}}
    if {*map(kind_of, is_read)} - {"r", WRITES[kind]}:
        return None
    reads = [*map(is_read.__getitem__, flat.functions)]
    writes = [*map(not_, reads)]
    written, again = [*compress(first.values, writes)], [*compress(flat.values, writes)]
    if {*map(type, written), *map(type, again)} - PLAIN or written != again:
        return None
    is_list = kind == "list-append"
    if is_list and {*map(type, compress(flat.values, reads))} - {list, type(None)}:
        return None
    return flat


def _has_repeated(table: Table) -> bool:
    sizes = np.diff(table.writes_by_key.begins).tolist()
    return any(len(table.writers(key)) < size for key, size in enumerate(sizes))


def _numbered(operations: Sequence[PairedOperation], flat: _Flat, kind: Kind) -> Answered:
    names = names_of(flat.keys)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    sizes = np.array(flat.sizes, dtype=np.int64)
    writes = {function: kind_of(function) != "r" for function in {*flat.functions}}
    is_write = np.array([*map(writes.__getitem__, flat.functions)], dtype=bool)
    is_ok = np.array([operation.type == "ok" for operation in operations], dtype=bool)
    is_shown = ~is_write & np.repeat(is_ok, sizes)
    shown: list[Any] = [*compress(flat.values, is_shown.tolist())]
    if kind == "list-append":
        shown = [[] if value is None else value for value in shown]
    return Answered(
        sizes,
        is_write,
        np.array([*map(numbers.__getitem__, names)], dtype=np.int64),
        [*numbers],
        [*compress(flat.values, is_write.tolist())],
        shown,
    )


def _filled(operations: Sequence[PairedOperation], parts: Answered, kind: Kind) -> Table:
    sizes, is_write, key = parts.sizes, parts.is_write, parts.keys
    txn = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(key)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = Table(operations, parts.names)
    is_read = ~is_write & table.is_ok[txn]
    table.reads = Reads(txn[is_read], place[is_read], key[is_read], parts.shown)
    table.writes = Writes(txn[is_write], place[is_write], key[is_write], parts.written)
    counted = np.flatnonzero(is_write | is_read)
    group = txn[counted] * max(len(parts.names), 1) + key[counted]
    _note_repeats(table, kind, group, is_write[counted])
    return table


def _note_repeats(table: Table, kind: Kind, group: Numbers, is_write: Flags) -> None:
    """Note what micro-operations have to do with earlier ones of their transaction and key."""
    number = np.where(is_write, np.cumsum(is_write), np.cumsum(~is_write)) - 1
    order = np.argsort(group, kind="stable")
    same = group[order[1:]] == group[order[:-1]]
    # Most stand alone.
    several = np.zeros(len(group), dtype=bool)
    several[:-1] |= same
    several[1:] |= same
    order = order[several]
    group, is_write, number = group[order], is_write[order], number[order]
    first = np.searchsorted(group, group)
    writes, reads = np.cumsum(is_write) - is_write, np.cumsum(~is_write) - ~is_write
    written, read = number[is_write], number[~is_write]
    table.reads.external[number[~is_write & (writes > writes[first])]] = False
    again = group[is_write][1:] == group[is_write][:-1]
    table.successive = _sorted(written[:-1][again], written[1:][again])
    # Of each write, all reads of its group up to it.
    begins = reads[first][is_write]
    counts = reads[is_write] - begins
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    pairs = read[np.repeat(begins, counts) + within], np.repeat(written, counts)
    table.read_then_written = _sorted(*pairs)
    compare = _list_problem if kind == "list-append" else _register_problem
    rows = zip(group.tolist(), is_write.tolist(), number.tolist(), strict=True)
    table.internal += sorted(_contradictions(table, rows, compare))


def _sorted(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs by their second number, then by their first."""
    order = np.lexsort((first, second))
    return first[order], second[order]


def _contradictions(
    table: Table,
    rows: Iterable[tuple[int, bool, int]],
    problem_of: Callable[[Any, list[Any], Any], str | None],
) -> Iterator[tuple[int, str]]:
    """Yield reads that contradict what came before in their groups, and how."""
    current = -1
    before: Any = _UNREAD
    own: list[Any] = []
    for group, is_write, number in rows:
        if group != current:
            current, before, own = group, _UNREAD, []
        if is_write:
            own.append(table.writes.values[number])
            continue
        value = table.reads.values[number]
        if own or before is not _UNREAD:
            problem = problem_of(before, own, value)
            if problem is not None:
                yield number, problem
        before, own = value, []


def _list_problem(before: Any, own: list[Any], value: list[Any]) -> str | None:
    if before is not _UNREAD:
        due = [*before, *own]
        if value != due:
            return f"although {shown(due)} was due after what it had read and appended before"
    elif value[len(value) - len(own) :] != own or len(value) < len(own):
        return f"which does not end with {shown(own)}, appended by itself before"
    return None


def _register_problem(before: Any, own: list[Any], value: Any) -> str | None:
    if value != (own[-1] if own else before):
        told = f"written {shown(own[-1])}" if own else f"read {shown(before)}"
        return f"although it had {told} before"
    return None
