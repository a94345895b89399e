"""Micro-operations on rows that a predicate finds: their shape, and their tables; pure.

A row has an id within its group, which is the column that the predicate asks about. It is inserted
once and deleted once at most, and never moves to another group. ``["insert", group, id]`` answers
itself; ``["delete", group, id]`` answers itself where the row was there, and null in the place of
the id where none was; ``["range", group, null]`` answers the ids of all rows of the group.
Source: Adya 1999, section 4.3 (predicate reads).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.findings import Undecided
from splitbrain.checker.models.model import is_list_of
from splitbrain.checker.transactions.micro_operations import hashable, is_repeated, kind_of
from splitbrain.checker.transactions.timed import Timed
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

FUNCTIONS: Final = ("insert", "delete", "range")
#: No transaction.
NOBODY: Final = -1


class RowSense:
    """Finder of operations that make no sense as transactions on rows.

    It remembers inserts and deletes, so it is asked once about each operation of a history, failed
    ones too.
    """

    def __init__(self) -> None:
        #: Event of each insert and delete.
        self._done: dict[tuple[str, Hashable, Hashable], int] = {}

    def __call__(self, operation: PairedOperation) -> str | None:
        """Return the problem of an operation, a clause; None for none."""
        if operation.f != "txn":
            return f"a transaction is a txn, and not {operation.f}"
        argument: object = operation.argument
        if not isinstance(argument, (list, tuple)):
            return f"the argument of a txn is a list, and not {shown(argument)}"
        parts = cast("Sequence[Any]", argument)
        problems = [_problem_of_part(part) for part in parts]
        if operation.type == "ok" and not any(problems):
            problems.append(_problem_of_answer(parts, operation.result))
        problem = next((each for each in problems if each is not None), None)
        return self._repeated(parts, operation.index) if problem is None else problem

    def _repeated(self, parts: Sequence[Any], index: int) -> str | None:
        for function, group, row in parts:
            name = kind_of(function)
            if name == "range":
                continue
            done = (name, hashable(group), hashable(row))
            first = self._done.setdefault(done, index)
            if first != index or _count(parts, done) > 1:
                past = "inserted" if name == "insert" else "deleted"
                return (
                    f"row {shown(row)} of group {shown(group)} is {past} a second time (first by "
                    f"event {first}), so a range without it could not tell when"
                )
        return None


def _count(parts: Sequence[Any], done: tuple[str, Hashable, Hashable]) -> int:
    return sum((kind_of(f), hashable(g), hashable(row)) == done for f, g, row in parts)


def _problem_of_part(part: Any) -> str | None:
    if not is_list_of(part, 3):
        return f"a micro-operation is [function, group, row], and not {shown(part)}"
    function = kind_of(part[0])
    if function not in FUNCTIONS:
        return (
            f"the micro-operations of rows are {', '.join(FUNCTIONS[:-1])} and {FUNCTIONS[-1]}, "
            f"and not {shown(function)}"
        )
    if function == "range":
        return None if part[2] is None else f"{shown(part)} asks for a row; a range asks for null"
    return f"{shown(part)} names no row" if part[2] is None else None


def _problem_of_answer(parts: Sequence[Any], answer: object) -> str | None:
    if not is_list_of(answer, len(parts)):
        return f"it is asked {len(parts)} micro-operations and answers {shown(answer)}"
    for part, done in zip(parts, cast("Sequence[Any]", answer), strict=True):
        if not is_list_of(done, 3) or done[0] != part[0] or not is_repeated(part[1], done[1]):
            return f"it is asked {shown(part)} and answers {shown(done)}"
        function = kind_of(part[0])
        if function == "range":
            if not isinstance(done[2], (list, tuple)):
                return f"a range answers a list of rows, and not {shown(done[2])}"
            continue
        is_none = function == "delete" and done[2] is None
        if not is_none and not is_repeated(part[2], done[2]):
            return f"it is asked {shown(part)} and answers {shown(done)}"
    return None


class Range(NamedTuple):
    """One answered predicate read."""

    #: Place in ``RowTable.operations``.
    txn: int
    #: Place among the micro-operations of its transaction.
    place: int
    group: int
    #: Numbers of the rows that it shows, and ids that nobody inserts.
    rows: frozenset[int]
    strangers: tuple[Any, ...]
    #: Ids as they were answered.
    shown: tuple[Any, ...]


class Row(NamedTuple):
    """One row that some transaction inserts or deletes."""

    group: int
    id: Any
    #: Transactions, and places in these; ``NOBODY`` where there is none.
    inserter: int
    inserted_at: int
    deleter: int
    deleted_at: int
    #: Whether the delete met the row; None where it has no answer, or did not happen.
    was_met: bool | None


class RowTable(Timed):
    """Rows and predicate reads of a history."""

    def __init__(self, operations: Sequence[PairedOperation]) -> None:
        super().__init__(operations)
        #: Groups by number.
        self.groups: list[Any] = []
        self.rows: list[Row] = []
        self.ranges: list[Range] = []
        #: Rows of each group.
        self.rows_of: list[list[int]] = []
        #: Rows that their own transaction inserted, and then met none to be deleted.
        self.missed_by_delete: list[int] = []


def row_table_of(operations: Sequence[PairedOperation], poll: Callable[[], None]) -> RowTable:
    """Take transactions on rows apart.

    Raises:
        Undecided: one of them makes no sense.
    """
    sense = RowSense()
    for operation in operations:
        poll()
        problem = sense(operation)
        if problem is not None:
            raise Undecided(f"the transaction of index {operation.index}: {problem}")
    table = RowTable(operations)
    groups: dict[Hashable, int] = {}
    found: dict[tuple[int, Hashable], int] = {}
    ranges: list[tuple[int, int, int, tuple[Any, ...]]] = []
    for txn, operation in enumerate(operations):
        poll()
        told = operation.result if operation.type == "ok" else operation.argument
        asked = operation.argument
        for place, (function, name, value) in enumerate(told):
            group = groups.setdefault(hashable(name), len(groups))
            kind = kind_of(function)
            if kind == "range":
                if operation.type == "ok":
                    ranges.append((txn, place, group, tuple(value)))
                continue
            row = asked[place][2]
            number = found.setdefault((group, hashable(row)), len(found))
            if number == len(table.rows):
                table.rows.append(Row(group, row, NOBODY, NOBODY, NOBODY, NOBODY, None))
            if kind == "insert":
                change = {"inserter": txn, "inserted_at": place}
            else:
                met = value is not None if operation.type == "ok" else None
                change = {"deleter": txn, "deleted_at": place, "was_met": met}
            table.rows[number] = table.rows[number]._replace(**change)
    _settle_own_deletes(table)
    table.groups = [*groups]
    table.rows_of = [[] for _ in groups]
    for number, row in enumerate(table.rows):
        table.rows_of[row.group].append(number)
    for txn, place, group, ids in ranges:
        poll()
        numbers = [found.get((group, hashable(each)), NOBODY) for each in ids]
        known = [
            number
            for number in numbers
            if number != NOBODY and table.rows[number].inserter != NOBODY
        ]
        strangers = tuple(
            each
            for each, number in zip(ids, numbers, strict=True)
            if number == NOBODY or table.rows[number].inserter == NOBODY
        )
        table.ranges.append(Range(txn, place, group, frozenset(known), strangers, ids))
    return table


def _settle_own_deletes(table: RowTable) -> None:
    """Leave out deletes by a row's own inserter that met nothing."""
    for number, row in enumerate(table.rows):
        if row.inserter != row.deleter:
            continue
        is_early = row.deleted_at < row.inserted_at
        if row.was_met is False and not is_early:
            table.missed_by_delete.append(number)
        if row.was_met is False or (is_early and not row.was_met):
            nothing = {"deleter": NOBODY, "deleted_at": NOBODY, "was_met": None}
            table.rows[number] = row._replace(**nothing)
