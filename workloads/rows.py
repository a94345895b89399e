"""Rows that are inserted, deleted and read by a predicate in transactions.

Groups of rows live and are given up as keys of other transactions are. A row is inserted once, and
is deleted by one transaction at most: the next slot's, a few operations later, so that it may come
before its row does. ``level`` is the isolation that the system promises.

Source: Adya 1999, section 4.3; Fekete and others, Making Snapshot Isolation Serializable (TODS
2005), for predicate reads beside inserts.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Self

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import Function, Functions
from splitbrain.workloads.keys import chosen
from splitbrain.workloads.transactions import (
    LANE_WEIGHTS,
    LEVELS,
    PARTS_MAX,
    LaneKeys,
    Part,
    checkers_of,
)

#: Levels that know predicates: those of commit orders are about reads of single keys.
ROW_LEVELS: Final = tuple(
    level for level in LEVELS if level not in ("monotonic-atomic-view", "read-atomic", "causal")
)
_RANGE, _INSERT, _DELETE = "range", "insert", "delete"
#: Of two parts one reads; of the others about as many delete as insert.
_KINDS: Final = ((_RANGE, 2), (_INSERT, 1), (_DELETE, 1))
#: Operations after which a row is deleted, at least, and slots with different ones.
_LAGS: Final = 3
#: Mean of the parts that insert or delete: a delete needs an insert that is there for it.
_WRITES_PER_TRANSACTION: Final = 2.0
_TRANSACTIONS: Final[Functions] = {"txn": Function("changes", reading_parts=(_RANGE,))}


class RowsWorkload:
    """Parts ``["range", group, null]``, ``["insert", group, row]``, ``["delete", group, row]``."""

    name: ClassVar[str] = "rows"
    checkers: tuple[str, ...] = checkers_of("rows")
    functions: Functions = _TRANSACTIONS

    def __init__(self, seed: int, slots: int, level: str) -> None:
        self._seed, self._slots, self._level = seed, slots, level
        self.checkers = checkers_of("rows", level)
        self._groups = LaneKeys(seed, slots * _WRITES_PER_TRANSACTION)

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Read the user's options: ``level`` is the promise that the history is held to."""
        return cls(seed, slots, chosen(cls.name, options, {"level": ROW_LEVELS})["level"])

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot: one to eight parts."""
        rows = self._inserted_before(slot, n)
        parts: list[Part] = []
        for place, kind, group in self._drawn(slot, n):
            if kind == _INSERT:
                parts.append([_INSERT, group, self._numbered(slot, n, place)])
                continue
            row = next(rows, None) if kind == _DELETE else None
            parts.append([_RANGE, group, None] if row is None else [_DELETE, *row])
        return Operation("txn", None, parts)

    def _drawn(self, slot: int, n: int) -> Iterator[tuple[int, str, str]]:
        """Yield place, kind and group of the parts of an operation."""
        length = 1 + self._draws(slot, n, 0).below(PARTS_MAX)
        for place in range(length):
            draws = self._draws(slot, n, place + 1)
            kind = draws.weighted(_KINDS)
            yield place, kind, self._groups.key(draws.weighted(LANE_WEIGHTS), n)

    def _inserted_before(self, slot: int, n: int) -> Iterator[tuple[str, int]]:
        """Yield group and number of the rows that an operation may delete, and no other one."""
        other, then = (slot - 1) % self._slots, n - 1 - slot % _LAGS
        if then < 0:
            return
        for place, kind, group in self._drawn(other, then):
            if kind == _INSERT:
                yield group, self._numbered(other, then, place)

    def _draws(self, slot: int, n: int, purpose: int) -> Draws:
        """Return the numbers of an operation as a whole (0), or of its part ``purpose - 1``."""
        return Draws(self._seed, slot, n * (PARTS_MAX + 1) + purpose)

    def _numbered(self, slot: int, n: int, place: int) -> int:
        """Return a number that no other part of the run has, from 1."""
        return (n * self._slots + slot) * PARTS_MAX + place + 1

    def completed(self, operation: Operation, completion: Completion) -> None:
        """No outcome moves a group."""

    def final_reads(self) -> tuple[Operation, ...]:
        """Every group that was used, several to a transaction."""
        groups = self._groups.used()
        return tuple(
            Operation(
                "txn", None, [[_RANGE, group, None] for group in groups[start : start + PARTS_MAX]]
            )
            for start in range(0, len(groups), PARTS_MAX)
        )

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {"level": self._level}


WORKLOAD: Final = RowsWorkload
