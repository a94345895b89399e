"""Search for a choice of missing rows that leaves no forbidden cycle, and what is certain before.

Choices that no cycle can pass are left as is likely: all cycles of certain edges, of the likely way
and of both ways of the others lie elsewhere. Of the others one is settled where the reader comes
before the deleter by edges that no choice changes: gone, the row would close a cycle of reads (G1c,
or one of an order), which each level that looks at anti-dependencies of predicates forbids, too.
The rest is for the solver (``order_search``). Pure.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np

from splitbrain.checker.transactions.dependencies import (
    PASS,
    PREDICATE_RW,
    PREDICATE_RW_PROCESS,
    PREDICATE_RW_REALTIME,
    PROCESS,
    REALTIME,
    RW,
    WR,
    WW,
    Edges,
    Nodes,
)
from splitbrain.checker.transactions.graph import (
    Edge,
    after_of,
    components_of,
    core_of,
    led_to,
    successors_of,
)
from splitbrain.checker.transactions.levels import Level
from splitbrain.checker.transactions.open_orders import FORBIDDEN, OpenGraph, states_of
from splitbrain.checker.transactions.orders import Orders
from splitbrain.checker.transactions.row_choices import RowChoices
from splitbrain.checker.transactions.row_versions import RowVersions

#: Kinds of settled edges, by the edges that settled them.
_SETTLED: Final = (
    (PREDICATE_RW, "", frozenset({WW, WR})),
    (PREDICATE_RW_PROCESS, "process", frozenset({WW, WR, PROCESS, PASS})),
    (PREDICATE_RW_REALTIME, "realtime", frozenset({WW, WR, PROCESS, REALTIME, PASS})),
)


class RowSearch:
    """Graph of one history, with its choices."""

    def __init__(self, found: RowVersions, poll: Callable[..., None]) -> None:
        self._found, self._poll = found, poll
        self.choices = RowChoices(found)
        self._transactions = len(found.table.operations)

    def is_likely_in_time(self) -> bool:
        """Return whether transactions can be put where they took place, in the likely way."""
        edges = Edges(self._transactions)
        likely = self.choices.likely_edges()[:, :4]
        for rows in (self._found.edges, likely):
            self._add(edges, rows)
        happened = self.choices.likely_happened()
        return Orders(self._found.table, happened, edges).prove_no_cycle

    @staticmethod
    def _add(edges: Edges, rows: Nodes) -> None:
        for kind in np.unique(rows[:, 2]).tolist():
            some = rows[rows[:, 2] == kind]
            edges.add(some[:, 0], some[:, 1], kind, some[:, 3])

    @cached_property
    def _certain(self) -> Nodes:
        """Edges without choice, and those of orders, with the literals of who may not have been."""
        edges = Edges(self._transactions)
        self._add(edges, self._found.edges)
        Orders(self._found.table, self._found.possible, edges).add()
        columns = np.stack([*edges.columns(), np.zeros_like(edges.columns()[0])], axis=1)
        source = columns[:, 0]
        is_txn = source < self._transactions
        doubtful = is_txn & ~np.append(self._found.happened, True)[np.where(is_txn, source, -1)]
        for place in np.flatnonzero(doubtful).tolist():
            columns[place, 4] = self.choices.happened(int(source[place]))
        return columns

    @cached_property
    def _cycles(self) -> tuple[Nodes, Nodes]:
        """Places of missing rows whose way may matter, and components of the graph with these.

        The components are numbers by node, -1 for those on no cycle.
        """
        choices = self.choices
        gone = choices.is_gone
        # To be gone may also mean that a transaction without answer happened.
        free = gone & choices.is_open
        certain, others = self._certain, choices.other_edges()
        count = max(self._transactions, 1 + int(certain[:, :2].max(initial=-1)))
        while True:
            parts = [certain, others]
            for is_gone in (True, False):
                places = np.flatnonzero(free | (gone == is_gone))
                parts.append(choices.pair_edges(places, is_gone=is_gone))
            every = np.concatenate(parts)
            every = every[core_of(every[:, 0], every[:, 1])]
            component = components_of(after_of(every[:, 0], every[:, 1]), self._poll)
            number = np.full(count, -1, dtype=np.int64)
            number[[*component]] = [*component.values()]
            ends = np.where(gone, choices.deleters[choices.rows], choices.inserters[choices.rows])
            on_cycle = number[choices.readers] >= 0
            on_cycle &= number[choices.readers] == number[ends]
            if not (on_cycle & ~free).any():
                return np.flatnonzero(free), number
            free |= on_cycle

    def _inner(self, rows: Nodes) -> list[Edge]:
        """Return the edges within components, of those that differ in their row alone the first."""
        _, number = self._cycles
        here = number[rows[:, 0]]
        rows = rows[(here >= 0) & (here == number[rows[:, 1]])]
        _, first = np.unique(rows[:, :3], axis=0, return_index=True)
        return [Edge(*row) for row in rows[np.sort(first), :4].tolist()]

    @cached_property
    def _settled(self) -> dict[int, int]:
        """Kind of the edge of each missing row that was certainly not there yet, by its place."""
        certain = self._certain[self._certain[:, 4] == 0]
        inner = self._inner(certain)
        free, _ = self._cycles
        readers, deleters = self.choices.readers, self.choices.deleters[self.choices.rows]
        pairs = {place: (int(readers[place]), int(deleters[place])) for place in free.tolist()}
        found: dict[int, int] = {}
        for kind, _, kinds in _SETTLED:
            left = {place: pair for place, pair in pairs.items() if place not in found}
            successors = successors_of(edge for edge in inner if edge.kind in kinds)
            leads = led_to(successors, left.values(), self._poll)
            found.update(dict.fromkeys((p for p, pair in left.items() if pair in leads), kind))
        return found

    def certain_edges(self) -> list[Edge]:
        """Return the edges that no choice changes and that may lie on a cycle."""
        edges = self._inner(self._certain[self._certain[:, 4] == 0])
        choices = self.choices
        for place, kind in self._settled.items():
            row = int(choices.rows[place])
            edges.append(Edge(int(choices.readers[place]), int(choices.inserters[row]), kind, row))
        return edges

    def open_graph(self, level: Level) -> tuple[OpenGraph, list[int]] | None:
        """Return the graph of a level with its choices, and a likely choice; None without any."""
        choices, settled = self.choices, self._settled
        orders = {kind: order for kind, order, _ in _SETTLED}
        early = [p for p, kind in settled.items() if orders[kind] in level.orders]
        free, _ = self._cycles
        free = np.setdiff1d(free, np.array(early, dtype=np.int64))
        if not len(free) and not choices.others:
            return None
        kinds = [WW, WR, RW, PREDICATE_RW, PASS]
        kinds += [k for k, o in ((PROCESS, "process"), (REALTIME, "realtime")) if o in level.orders]
        certain = self._certain[np.isin(self._certain[:, 2], kinds)]
        settled_edges = choices.pair_edges(np.array(early, dtype=np.int64), is_gone=False)
        settled_edges[:, 4] = 0
        parts = [certain, settled_edges, choices.other_edges()]
        parts += [choices.pair_edges(free, is_gone=way) for way in (True, False)]
        rows = np.concatenate(parts)
        rows = rows[core_of(rows[:, 0], rows[:, 1])]
        gone = choices.is_gone.copy()
        gone[early] = False
        # The solver's variables are these alone, in their order.
        numbers = [*(free + 1).tolist(), *range(len(gone) + 1, len(gone) + len(choices.others) + 1)]
        place_of = {number: place for place, number in enumerate(numbers, 1)}

        def renamed(literal: int) -> int:
            place = place_of[abs(literal)]
            return place if literal > 0 else -place

        rows[:, 4] = [renamed(literal) if literal else 0 for literal in rows[:, 4].tolist()]
        clauses = [*choices.clauses, *choices.implied(free, is_gone=gone)]
        graph = states_of(
            FORBIDDEN[level.base],
            int(rows[:, :2].max(initial=self._transactions)) + 1,
            self._transactions,
            [choices.variable(number) for number in numbers],
            rows,
        )._replace(clauses=[tuple(map(renamed, clause)) for clause in clauses])
        likely = [-number if gone[number - 1] else number for number in (free + 1).tolist()]
        return graph, [renamed(literal) for literal in (*likely, *choices.likely_literals())]
