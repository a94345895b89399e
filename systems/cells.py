"""Operations that read some places and change some of them at one moment. Pure.

A *cell* is a place with one value, null at first. An operation names its cells; their values say
what it answers and what becomes of them. A system with optimistic transactions performs all of them
in one way: read the cells, write what changes on the condition that none of them was touched since,
and begin again where one was.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.bank import ACCOUNTS, BALANCE
from splitbrain.contracts.operations import Operation

#: Values of an operation's cells, by their names.
Values = Mapping[str, Any]


class Step(msgspec.Struct, frozen=True):
    """One operation, done at a moment at which its cells had certain values."""

    answer: Any
    #: New values by cell; empty: the answer is an observation.
    changes: Values = {}


class Rule(msgspec.Struct, frozen=True):
    """Meaning of one function."""

    cells: Callable[[Operation], Sequence[str]]
    step: Callable[[Operation, Values], Step]


def only_reads(operation: Operation) -> bool:
    """Return whether an operation that has a rule changes nothing, whatever it finds."""
    if operation.f == "txn":
        return all(kind == "r" for kind, _, _ in operation.value)
    return operation.f in _READING


def account(key: str | None, name: str) -> str:
    """Return the cell of an account."""
    return f"{key}/{name}"


def guarded(key: str | None) -> str:
    """Return the cell of the register that a lock's tokens guard, ``[token, value]``."""
    return f"{key}/guarded"


def _itself(operation: Operation) -> Sequence[str]:
    return (operation.key or "",)


def _add(operation: Operation, values: Values) -> Step:
    ((cell, present),) = values.items()
    total = (present or 0) + operation.value
    return Step(total, {cell: total})


def _append(operation: Operation, values: Values) -> Step:
    ((cell, present),) = values.items()
    return Step(operation.value, {cell: (present or "") + operation.value})


def _acquire(operation: Operation, values: Values) -> Step:
    ((cell, holder),) = values.items()
    return Step(True, {cell: operation.value}) if holder is None else Step(False)


def _release(operation: Operation, values: Values) -> Step:
    ((cell, holder),) = values.items()
    return Step(True, {cell: None}) if holder == operation.value else Step(False)


def _transfer(operation: Operation, values: Values) -> Step:
    giver, taker, amount = operation.value
    cells = account(operation.key, giver), account(operation.key, taker)
    given, taken = (BALANCE if values[cell] is None else values[cell] for cell in cells)
    if given < amount:
        return Step([giver, taker, amount, False])
    changes = dict(zip(cells, (given - amount, taken + amount), strict=True))
    return Step([giver, taker, amount, True], changes)


def _balances(operation: Operation, values: Values) -> Step:
    found = {name: values[account(operation.key, name)] for name in ACCOUNTS}
    return Step({name: BALANCE if n is None else n for name, n in found.items()})


def _transact(operation: Operation, values: Values) -> Step:
    present, changes, answer = dict(values), dict[str, Any](), list[Any]()
    for kind, name, value in operation.value:
        cell = f"{operation.key}/{name}"
        if kind == "w":
            present[cell] = changes[cell] = value
        answer.append([kind, name, present[cell]])
    return Step(answer, changes)


def _write_guarded(operation: Operation, values: Values) -> Step:
    ((cell, present),) = values.items()
    token, value = operation.value
    if present is not None and token < present[0]:
        return Step([token, value, False])
    return Step([token, value, True], {cell: [token, value]})


def _read_guarded(_operation: Operation, values: Values) -> Step:
    (present,) = values.values()
    return Step(None if present is None else present[1])


def _registers(operation: Operation) -> Sequence[str]:
    return tuple(dict.fromkeys(f"{operation.key}/{name}" for _, name, _ in operation.value))


def _guarded(operation: Operation) -> Sequence[str]:
    return (guarded(operation.key),)


#: By the names that ``systems.workload_client`` gives the functions.
RULES: Final[Mapping[str, Rule]] = {
    "add-and-get": Rule(_itself, _add),
    "append": Rule(_itself, _append),
    "acquire": Rule(_itself, _acquire),
    "release": Rule(_itself, _release),
    "transfer": Rule(lambda of: [account(of.key, name) for name in of.value[:2]], _transfer),
    "read-bank": Rule(lambda of: [account(of.key, name) for name in ACCOUNTS], _balances),
    "txn": Rule(_registers, _transact),
    "write-guarded": Rule(_guarded, _write_guarded),
    "read-guarded": Rule(_guarded, _read_guarded),
}
_READING: Final = frozenset({"read-bank", "read-guarded"})
