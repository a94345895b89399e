"""Versions of rows that predicate reads show, and the dependencies that follow; pure.

A row is not there yet, there, and gone. A range that shows it read the version of its inserter. One
that lacks it read the first version (an anti-dependency on the inserter) or the last one (it came
after the deleter), which nobody can see: a *choice*, where the delete may have happened. Edges that
do not hang on a choice are certain. A transaction without answer may not have happened, unless a
row of its is shown; what it deleted is a choice as well. Source: Adya 1999, section 4.3.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.findings import Undecided
from splitbrain.checker.transactions.dependencies import PREDICATE_RW, RW, WR, WW, Nodes
from splitbrain.checker.transactions.row_operations import NOBODY, Row, RowTable

#: Missing rows of all ranges together.
_MISSING_MAX: Final = 20_000_000
Quad = tuple[int, int, int, int]


class Missing(NamedTuple):
    """Rows that ranges lack although they may have been deleted, one pair for each transaction."""

    readers: Nodes
    rows: Nodes


class RowVersions(NamedTuple):
    """Facts on the rows of a history, and what is open."""

    table: RowTable
    #: Transactions that certainly happened, and those that may have done something to rows.
    happened: NDArray[np.bool_]
    possible: NDArray[np.bool_]
    #: Certain edges: source, target, kind, row. Those of transactions that may not have happened
    #: lead to these alone.
    edges: Nodes
    missing: Missing
    #: Rows with a delete that has no answer.
    open_deletes: tuple[int, ...]
    #: Transactions that each row was shown to.
    seen_by: dict[int, list[int]]


def row_versions(table: RowTable, poll: Callable[[], None]) -> RowVersions:
    """Infer the dependencies that ranges and deletes show.

    Raises:
        Undecided: ranges lack too many rows.
    """
    happened = table.is_ok.copy()
    for each in table.ranges:
        poll()
        happened[[table.rows[row].inserter for row in each.rows]] = True
    for row in table.rows:
        if row.was_met and row.inserter != NOBODY:
            happened[row.inserter] = True
    failed = table.has_failed
    happened &= ~failed
    possible = happened.copy()
    for row in table.rows:
        if row.was_met is None and row.deleter != NOBODY:
            possible[row.deleter] = True
    possible &= ~failed
    seen_by: dict[int, list[int]] = {}
    edges = [*_changes(table, possible), *_shown(table, possible, seen_by, poll)]
    certain, missing = _absent(table, possible, poll)
    columns = np.array(edges, dtype=np.int64).reshape(-1, 4)
    open_deletes = tuple(
        number
        for number, row in enumerate(table.rows)
        if row.deleter not in (NOBODY, row.inserter)
        and row.was_met is None
        and possible[row.deleter]
        and row.inserter != NOBODY
        and possible[row.inserter]
    )
    columns = np.concatenate([columns, certain])
    return RowVersions(table, happened, possible, columns, missing, open_deletes, seen_by)


def _changes(table: RowTable, possible: NDArray[np.bool_]) -> Iterator[Quad]:
    """Yield the edges of deletes that have an answer."""
    for number, row in enumerate(table.rows):
        if row.deleter in (NOBODY, row.inserter) or row.inserter == NOBODY:
            continue
        if not possible[row.inserter] or not possible[row.deleter]:
            continue
        if row.was_met:
            yield row.inserter, row.deleter, WW, number
        elif row.was_met is False:
            yield row.deleter, row.inserter, PREDICATE_RW, number


def _shown(
    table: RowTable,
    possible: NDArray[np.bool_],
    seen_by: dict[int, list[int]],
    poll: Callable[[], None],
) -> Iterator[Quad]:
    """Yield the edges of rows that ranges show; note to whom."""
    met: set[tuple[int, int]] = set()
    for each in table.ranges:
        for number in each.rows:
            poll()
            row = table.rows[number]
            is_foreign = row.inserter not in (each.txn, row.deleter)
            if not is_foreign or not possible[row.inserter] or (each.txn, number) in met:
                continue
            met.add((each.txn, number))
            yield row.inserter, each.txn, WR, number
            if row.deleter in (NOBODY, each.txn):
                continue
            seen_by.setdefault(number, []).append(each.txn)
            if row.was_met and possible[row.deleter]:
                yield each.txn, row.deleter, RW, number


def _absent(
    table: RowTable, possible: NDArray[np.bool_], poll: Callable[[], None]
) -> tuple[Nodes, Missing]:
    """Return the edges of rows that were certainly not there yet, and those that may be gone."""
    by_group: dict[int, list[int]] = {}
    for number, each in enumerate(table.ranges):
        by_group.setdefault(each.group, []).append(number)
    readers: list[Nodes] = []
    rows: list[Nodes] = []
    count = 0
    for group, ranges in by_group.items():
        usable = [n for n in table.rows_of[group] if _is_visible(table.rows[n], possible)]
        places = {row: place for place, row in enumerate(usable)}
        count += len(ranges) * len(usable)
        if count > _MISSING_MAX:
            raise Undecided(f"ranges and rows of their groups make more than {_MISSING_MAX:,}")
        numbers = np.array(usable, dtype=np.int64)
        for number in ranges:
            poll()
            is_missing = np.ones(len(usable), dtype=bool)
            each = table.ranges[number]
            is_missing[[places[row] for row in each.rows if row in places]] = False
            rows.append(numbers[is_missing])
            readers.append(np.full(len(rows[-1]), each.txn, dtype=np.int64))
    nothing = np.zeros(0, dtype=np.int64)
    reader, row = np.concatenate([nothing, *readers]), np.concatenate([nothing, *rows])
    reader, row = np.divmod(np.unique(reader * max(len(table.rows), 1) + row), len(table.rows) or 1)
    inserter = np.array([each.inserter for each in table.rows], dtype=np.int64)
    deleter = np.array([each.deleter for each in table.rows], dtype=np.int64)
    was_met = np.array([each.was_met is not False for each in table.rows], dtype=bool)
    may_delete = was_met & (deleter != NOBODY) & np.append(possible, False)[deleter]
    others = inserter[row] != reader
    reader, row = reader[others], row[others]
    # Its own delete made it go, which says nothing.
    own = deleter[row] == reader
    may_be_gone = may_delete[row] & ~own
    own &= was_met[row]
    own[own] = _is_behind_delete(table, reader[own], row[own])
    early = ~may_be_gone & ~own
    kinds = np.full(int(early.sum()), PREDICATE_RW, dtype=np.int64)
    edges = np.stack([reader[early], inserter[row[early]], kinds, row[early]], axis=1)
    return edges, Missing(reader[may_be_gone], row[may_be_gone])


def _is_visible(row: Row, possible: NDArray[np.bool_]) -> bool:
    """Return whether others may see a row."""
    return row.inserter not in (NOBODY, row.deleter) and bool(possible[row.inserter])


def _is_behind_delete(table: RowTable, readers: Nodes, rows: Nodes) -> list[bool]:
    """Return whether all ranges without a row stand behind their own transaction's delete of it."""
    first: dict[tuple[int, int], int] = {}
    pairs: list[tuple[int, int]] = [*zip(readers.tolist(), rows.tolist(), strict=True)]
    wanted = {*pairs}
    groups = {(txn, table.rows[row].group) for txn, row in wanted}
    for each in table.ranges:
        if (each.txn, each.group) not in groups:
            continue
        for row in table.rows_of[each.group]:
            if row not in each.rows and (each.txn, row) in wanted:
                first.setdefault((each.txn, row), each.place)
    return [first[txn, row] > table.rows[row].deleted_at for txn, row in pairs]
