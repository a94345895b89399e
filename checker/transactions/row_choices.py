"""Choices that what is known of rows leaves open, as variables and the edges of both ways; pure.

- A *missing row* was not there yet (its number; the reader before the inserter) or gone already
  (the number below zero; the deleter before the reader).
- A *delete without answer* met its row (its number), or none. It may also never have happened: then
  whether its transaction did is a variable, and that it met none another one.

A way is *likely* where it fits the order of time. Source: as ``open_orders``.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import PREDICATE_RW, RW, WR, WW, Nodes
from splitbrain.checker.transactions.graph import raised
from splitbrain.checker.transactions.row_versions import RowVersions

Way = Literal["missing", "met", "met-none", "happened"]


class Variable(NamedTuple):
    """Meaning of a number."""

    way: Way
    #: Reader of a missing row, or the transaction without answer.
    txn: int
    #: -1 for ``happened``.
    row: int


class RowChoices:
    """Variables of one history: first a number for each missing row, from 1."""

    def __init__(self, found: RowVersions) -> None:
        self._found = found
        table, missing = found.table, found.missing
        self.readers, self.rows = missing.readers, missing.rows
        self.inserters = np.array([row.inserter for row in table.rows], dtype=np.int64)
        self.deleters = np.array([row.deleter for row in table.rows], dtype=np.int64)
        start, end = table.starts, table.ends
        #: Earliest moments at which certain edges let transactions take place.
        moments = start.copy()
        raised(moments, found.edges[:, 0], found.edges[:, 1])
        begun = start[self.readers]
        deleter = self.deleters[self.rows]
        #: Whether each missing row is likely to be gone.
        self.is_gone: NDArray[np.bool_] = (end[self.inserters[self.rows]] < begun) | (
            (end[deleter] < begun) | (moments[deleter] < moments[self.readers])
        )
        self.is_gone &= start[deleter] <= end[self.readers]
        #: Variables behind those of missing rows, and what one choice implies.
        self.others: list[Variable] = []
        self.clauses: list[tuple[int, ...]] = []
        self._options: list[tuple[int, int, int, int, int]] = []
        self._likely: dict[int, bool] = {}
        self._met: dict[int, int] = {}
        self._happened: dict[int, int] = {}
        self._add_deletes()

    def _new(self, way: Way, txn: int, row: int = -1) -> int:
        self.others.append(Variable(way, txn, row))
        return len(self.readers) + len(self.others)

    def happened(self, txn: int) -> int:
        """Return the variable of a transaction that may not have happened; 0 where it did."""
        if self._found.happened[txn]:
            return 0
        if txn not in self._happened:
            self._happened[txn] = self._new("happened", txn)
        return self._happened[txn]

    def _add_deletes(self) -> None:
        for number in self._found.open_deletes:
            row = self._found.table.rows[number]
            met = self._met[number] = self._new("met", row.deleter, number)
            self._options.append((row.inserter, row.deleter, WW, number, met))
            for reader in self._found.seen_by.get(number, ()):
                self._options.append((reader, row.deleter, RW, number, met))
            happened = self.happened(row.deleter)
            met_none = -met
            if happened:
                met_none = self._new("met-none", row.deleter, number)
                self.clauses += [(-met, happened), (-happened, met, met_none)]
            self._options.append((row.deleter, row.inserter, PREDICATE_RW, number, met_none))
            inserted = self.happened(row.inserter)
            if inserted:
                self.clauses.append((-met, inserted))
            self._likely[met] = not happened and not inserted
        self._choose_likely()

    def _choose_likely(self) -> None:
        """Make what is likely true to the clauses."""
        met_by = np.zeros(len(self._found.table.rows) + 1, dtype=np.int64)
        met_by[[*self._met]] = [*self._met.values()]
        for number in np.unique(self.rows[self.is_gone]).tolist():
            if met_by[number]:
                self._likely[int(met_by[number])] = True
        for clause in self.clauses:
            # Of a delete that met its row, both transactions happened.
            if len(clause) == 2 and self._likely.get(-clause[0]):
                self._likely[clause[1]] = True
        for clause in self.clauses:
            if len(clause) == 3:
                happened, met, met_none = clause
                self._likely[met_none] = bool(
                    self._likely.get(-happened) and not self._likely.get(met)
                )

    def variable(self, number: int) -> Variable:
        """Return the meaning of a number."""
        count = len(self.readers)
        if number > count:
            return self.others[number - count - 1]
        return Variable("missing", int(self.readers[number - 1]), int(self.rows[number - 1]))

    def likely_literals(self) -> list[int]:
        """Return the likely literal of each variable behind the missing rows."""
        count = len(self.readers)
        numbers = range(count + 1, count + len(self.others) + 1)
        return [number if self._likely.get(number) else -number for number in numbers]

    def implied(self, pairs: Nodes, *, is_gone: NDArray[np.bool_]) -> list[tuple[int, ...]]:
        """Return what missing rows imply: free ones, and those that are settled, by place.

        ``is_gone`` is of the settled ones, which are all but ``pairs``.
        """
        free = np.zeros(len(self.readers), dtype=bool)
        free[pairs] = True
        found: dict[tuple[int, ...], None] = {}
        for place in np.flatnonzero(self.is_open & (free | is_gone)).tolist():
            met = self._met[int(self.rows[place])]
            found[(place + 1, met) if free[place] else (met,)] = None
        return [*found]

    @cached_property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether the delete of each missing row has no answer."""
        return np.isin(self.rows, [*self._met])

    def pair_edges(self, places: Nodes, *, is_gone: bool) -> Nodes:
        """Return the edges of missing rows, one way: source, target, kind, row, literal."""
        rows, readers = self.rows[places], self.readers[places]
        if is_gone:
            source, target, kind, sign = self.deleters[rows], readers, WR, -1
        else:
            source, target, kind, sign = readers, self.inserters[rows], PREDICATE_RW, 1
        kinds = np.full(len(places), kind, dtype=np.int64)
        return np.stack([source, target, kinds, rows, sign * (places + 1)], axis=1)

    def other_edges(self, literals: Sequence[int] | None = None) -> Nodes:
        """Return the edges of the other variables, or of those with these literals alone."""
        kept = None if literals is None else {*literals}
        rows = [option for option in self._options if kept is None or option[4] in kept]
        return np.array(rows, dtype=np.int64).reshape(-1, 5)

    def likely_edges(self) -> Nodes:
        """Return the edges of the likely way."""
        gone = np.flatnonzero(self.is_gone)
        early = np.flatnonzero(~self.is_gone)
        parts = self.pair_edges(gone, is_gone=True), self.pair_edges(early, is_gone=False)
        return np.concatenate([*parts, self.other_edges(self.likely_literals())])

    def likely_happened(self) -> NDArray[np.bool_]:
        """Return which transactions happened in the likely way."""
        happened = self._found.happened.copy()
        likely = {*self.likely_literals()}
        happened[[txn for txn, number in self._happened.items() if number in likely]] = True
        return happened
