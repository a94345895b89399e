"""Cycles of dependencies: which kinds there are, and a shortest one of each; pure.

A cycle's kind depends on its edges: of overwrites alone (G0), with reads (G1c), with one
anti-dependency (G-single), with several of which no two are neighbours (G-nonadjacent), with two
that are (G2-item); whether one of these is of a predicate read (G-single-predicate,
G-nonadjacent-predicate, G2); and on the strongest order without which it is none. Sources: Adya
1999; Cerone and Gotsman 2018; Kingsbury and Alvaro 2020.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import (
    ANTI_DEPENDENCIES,
    KIND_NAMES,
    OF_PREDICATES,
    PASS,
    PREDICATE_RW,
    PREDICATE_RW_PROCESS,
    PREDICATE_RW_REALTIME,
    PROCESS,
    REALTIME,
    RW,
    WR,
    WW,
)
from splitbrain.checker.transactions.graph import (
    Connected,
    Edge,
    ranks_of,
    successors_of,
)
from splitbrain.checker.transactions.levels import Order

#: Facts about the way so far.
_LAST_RW, _MORE_RW, _NEIGHBOURS, _ORDERED = 1, 2, 4, 8
#: Steps of a search after which it takes the first cycle of each component.
_STEPS_MAX: Final = 1_000_000

#: Of each order, one is on a cycle that rests on it.
_OF_PROCESSES: Final = frozenset({PROCESS, PREDICATE_RW_PROCESS})
_OF_REAL_TIME: Final = frozenset({REALTIME, PREDICATE_RW_REALTIME})
_ORDER_KINDS: Final = {"": frozenset[int](), "process": _OF_PROCESSES, "realtime": _OF_REAL_TIME}
_PLAIN: Final = frozenset({WW, WR, RW, PREDICATE_RW, PASS})
_KINDS: Final[dict[Order, frozenset[int]]] = {
    "": _PLAIN,
    "process": _PLAIN | _OF_PROCESSES,
    "realtime": _PLAIN | _OF_PROCESSES | _OF_REAL_TIME,
}
#: Node and facts.
_State = tuple[int, int]
_Came = dict[_State, tuple[int, tuple[_State, Edge] | None]]


class Cycle(NamedTuple):
    """Cycle of transactions; each edge begins where the one before ended, stations left out."""

    name: str
    edges: tuple[Edge, ...]


class _Search(NamedTuple):
    """Automaton of one kind of cycle."""

    name: str
    #: Kinds of edges besides orders and stations.
    kinds: frozenset[int]
    #: Kinds of the first edge.
    first: frozenset[int]
    #: Facts that are kept apart, those that must hold at the end, and the shortest length.
    facts: int
    demands: int
    shortest: int

    @property
    def usable(self) -> frozenset[int]:
        """Kinds of all edges that a cycle may have; the first edge is on it, too."""
        return self.kinds | self.first | {PASS, PROCESS, REALTIME}


_SINGLE: Final = frozenset({levels.G_SINGLE, levels.G_SINGLE_PREDICATE})
_NONADJACENT: Final = frozenset({levels.G_NONADJACENT, levels.G_NONADJACENT_PREDICATE})
_ADJACENT: Final = frozenset({levels.G2_ITEM, levels.G2})


def _with_anti_dependencies(
    names: Sequence[str], first: frozenset[int], more: frozenset[int]
) -> Iterator[_Search]:
    reads = frozenset({WW, WR})
    single, nonadjacent, adjacent = names
    yield _Search(single, reads, first, 0, 0, 2)
    yield _Search(nonadjacent, reads | more, first, _LAST_RW | _MORE_RW, _MORE_RW, 4)
    yield _Search(adjacent, reads | more, first, _LAST_RW | _NEIGHBOURS, _NEIGHBOURS, 2)


_SEARCHES: Final = (
    _Search(levels.G0, frozenset({WW}), frozenset({WW}), 0, 0, 2),
    _Search(levels.G1C, frozenset({WW, WR}), frozenset({WR}), 0, 0, 2),
    *_with_anti_dependencies(
        (levels.G_SINGLE, levels.G_NONADJACENT, levels.G2_ITEM), *[frozenset({RW})] * 2
    ),
    # One of a predicate read, and any others.
    *_with_anti_dependencies(
        (levels.G_SINGLE_PREDICATE, levels.G_NONADJACENT_PREDICATE, levels.G2),
        OF_PREDICATES,
        ANTI_DEPENDENCIES,
    ),
)


def cycles_in(
    edges: Sequence[Edge], transactions: int, poll: Callable[[], None]
) -> Iterator[Cycle]:
    """Yield a shortest cycle of each kind and order in each component that has one.

    Args:
        edges: those that are left of the graph after peeling, or all.
        transactions: nodes from this number on are stations.
        poll: called often.
    """
    for order, kinds in _KINDS.items():
        allowed = [edge for edge in edges if edge.kind in kinds]
        present = {edge.kind for edge in allowed}
        # Many searches are of the same edges.
        graphs: dict[frozenset[int], Connected] = {}
        for search in _SEARCHES:
            if search.first.isdisjoint(present):
                continue
            usable = search.usable & present
            graph = graphs.get(usable)
            if graph is None:
                graph = graphs[usable] = Connected(allowed, usable, poll)
            yield from _Finder(search, order, graph, transactions, poll).cycles()


def cycles_through(
    name: str, kind: int, edges: Sequence[Edge], transactions: int, poll: Callable[[], None]
) -> Iterator[Cycle]:
    """Yield a shortest cycle through an edge of one kind in each component, of this name."""
    search = _Search(name, frozenset({WW, WR, *range(PASS + 1, kind)}), frozenset({kind}), 0, 0, 2)
    graph = Connected(edges, search.usable, poll)
    yield from _Finder(search, "", graph, transactions, poll).cycles()


class _Finder:
    """Search for the cycles of one kind that rest on one order."""

    def __init__(
        self,
        search: _Search,
        order: Order,
        graph: Connected,
        transactions: int,
        poll: Callable[[], None],
    ) -> None:
        self._search, self._order = search, order
        self._name = levels.with_order(search.name, order)
        self._transactions, self._poll = transactions, poll
        self._component, self._inner = graph.component, graph.inner
        self._ordered = _ORDER_KINDS[order]
        #: Starts that can close a cycle of the kind are told apart from all others at first.
        self._may_close = {
            **dict.fromkeys(_SINGLE, self._is_led_back),
            **dict.fromkeys(_NONADJACENT, self._is_between_others),
            **dict.fromkeys(_ADJACENT, self._is_near_neighbours),
        }.get(search.name)
        self._facts = search.facts | (_ORDERED if order else 0)
        self._demands = search.demands | (_ORDERED if order else 0)
        self._steps = 0

    def cycles(self) -> Iterator[Cycle]:
        """Yield the shortest cycle found in each component."""
        starts: dict[int, list[Edge]] = {}
        ordered: set[int] = set()
        for edge in self._inner:
            component = self._component[edge.source]
            if edge.kind in self._search.first:
                starts.setdefault(component, []).append(edge)
            if edge.kind in self._ordered:
                ordered.add(component)
        for component, several in starts.items():
            if self._order and component not in ordered:
                continue
            may_close = self._may_close
            found = self._shortest(several if may_close is None else [*filter(may_close, several)])
            if found is not None:
                yield found

    @cached_property
    def _ranks(self) -> dict[int, int]:
        """Ranks by the edges that the rest of a cycle may have."""
        after: dict[int, list[int]] = {}
        for edge in self._inner:
            if edge.kind in self._search.kinds or edge.kind >= PROCESS:
                after.setdefault(edge.source, []).append(edge.target)
        return ranks_of(after, self._poll)

    def _is_led_back(self, start: Edge) -> bool:
        """Return whether the rest may lead from the end of an anti-dependency to its begin."""
        here, there = self._ranks.get(start.target), self._ranks.get(start.source)
        return here is not None and there is not None and there <= here

    @cached_property
    def _ranks_between(self) -> dict[int, int]:
        """Ranks of nodes, twice each: entered by an anti-dependency (odd), or otherwise.

        No anti-dependency leaves the first ones.
        """
        after: dict[int, list[int]] = {}
        for edge in self._inner:
            here, there = 2 * edge.source, 2 * edge.target
            if edge.kind in ANTI_DEPENDENCIES:
                after.setdefault(here, []).append(there + 1)
                continue
            after.setdefault(here, []).append(there)
            after.setdefault(here + 1, []).append(there + (edge.kind == PASS))
        return ranks_of(after, self._poll)

    @cached_property
    def _anti_dependencies(self) -> Counter[int]:
        """Number of those that lie on cycles of nodes by ``_ranks_between``, by rank."""
        return Counter(
            self._ranks_between[2 * edge.source]
            for edge in self._inner
            if edge.kind in ANTI_DEPENDENCIES and self._is_between(edge)
        )

    def _is_between(self, edge: Edge) -> bool:
        ranks = self._ranks_between
        return ranks[2 * edge.source] == ranks[2 * edge.target + 1]

    def _is_between_others(self, start: Edge) -> bool:
        """Return whether an anti-dependency lies on a closed way without neighbouring ones."""
        rank = self._ranks_between[2 * start.source]
        return self._is_between(start) and self._anti_dependencies[rank] > 1

    @cached_property
    def _with_neighbours(self) -> set[int]:
        """Components in which one anti-dependency follows another."""
        entered = [edge.target for edge in self._inner if edge.kind in ANTI_DEPENDENCIES]
        reached = set(entered)
        passes = successors_of(edge for edge in self._inner if edge.kind == PASS)
        while entered:
            for edge in passes.get(entered.pop(), ()):
                if edge.target not in reached:
                    reached.add(edge.target)
                    entered.append(edge.target)
        return {
            self._component[edge.source]
            for edge in self._inner
            if edge.kind in ANTI_DEPENDENCIES and edge.source in reached
        }

    def _is_near_neighbours(self, start: Edge) -> bool:
        return self._component[start.source] in self._with_neighbours

    def _shortest(self, starts: Sequence[Edge]) -> Cycle | None:
        best: tuple[Edge, ...] | None = None
        # Neighbours of items leave no room for an edge of the order.
        is_longer = bool(self._order) and self._search.name == levels.G2_ITEM
        shortest = self._search.shortest + is_longer
        for start in starts:
            way = self._way_back(start, inf if best is None else len(best) - 1)
            if way is not None:
                best = way
                if len(best) <= shortest:
                    break
            if best is not None and self._steps > _STEPS_MAX:
                break
        return None if best is None else Cycle(self._name, best)

    def _way_back(self, start: Edge, length_max: float) -> tuple[Edge, ...] | None:
        """Return the shortest cycle from this edge on; None for none that is short enough.

        A way that passes a transaction twice is two cycles, each of which is found by itself.
        """
        facts = _LAST_RW & self._facts if start.kind in ANTI_DEPENDENCIES else 0
        if start.kind in self._ordered:
            facts |= _ORDERED
        first = (start.target, facts)
        # Nobody comes back from below.
        ranks = self._ranks if self._search.name in _SINGLE else None
        least = 0 if ranks is None else ranks[start.source]
        #: Length up to each state, and the step that led there.
        came: _Came = {first: (1, None)}
        ahead = deque([(first, 1)])
        while ahead:
            at, length = ahead.popleft()
            if came[at][0] < length:
                continue
            node, facts = at
            if node == start.source and self._is_end(facts):
                return self._way(start, at, came)
            self._poll()
            for target, moves, step, edge in self._moves.get(node, ()):
                self._steps += 1
                after = moves[facts]
                if after is None or (ranks is not None and ranks.get(target, least) < least):
                    continue
                there, longer = (target, after), length + step
                if longer > length_max or (there in came and came[there][0] <= longer):
                    continue
                came[there] = (longer, (at, edge))
                if step:
                    ahead.append((there, longer))
                else:
                    ahead.appendleft((there, longer))
        return None

    @cached_property
    def _moves(self) -> dict[int, list[tuple[int, Sequence[int | None], int, Edge]]]:
        """Nodes that edges within a component lead to, facts after by those before, and steps."""
        kinds = range(len(KIND_NAMES))
        after = [[self._facts_after(kind, facts) for facts in range(16)] for kind in kinds]
        found: dict[int, list[tuple[int, Sequence[int | None], int, Edge]]] = {}
        for edge in self._inner:
            move = (edge.target, after[edge.kind], int(edge.kind != PASS), edge)
            found.setdefault(edge.source, []).append(move)
        return found

    def _is_end(self, facts: int) -> bool:
        if self._search.name in _NONADJACENT and facts & _LAST_RW:
            return False
        if self._search.name in _ADJACENT and facts & _LAST_RW:
            facts |= _NEIGHBOURS
        return facts & self._demands == self._demands

    def _facts_after(self, kind: int, facts: int) -> int | None:
        if kind == PASS:
            return facts
        if kind in ANTI_DEPENDENCIES:
            if kind not in self._search.kinds:
                return None
            if facts & _LAST_RW:
                if self._search.name in _NONADJACENT:
                    return None
                facts |= _NEIGHBOURS
            facts |= _LAST_RW | _MORE_RW
            return (facts | _ORDERED if kind in self._ordered else facts) & self._facts
        if kind not in self._search.kinds and kind < PROCESS:
            return None
        facts &= ~_LAST_RW
        if kind in self._ordered:
            facts |= _ORDERED
        return facts & self._facts

    def _way(
        self,
        start: Edge,
        end: tuple[int, int],
        came: _Came,
    ) -> tuple[Edge, ...] | None:
        edges: list[Edge] = []
        at = end
        while (step := came[at][1]) is not None:
            at, edge = step
            edges.append(edge)
        way = without_stations([start, *reversed(edges)], self._transactions)
        return None if is_several(way) else way


def is_several(way: Sequence[Edge]) -> bool:
    """Return whether a way that passes a transaction twice says no more than one of its halves.

    Halves say less only where the whole has no neighbouring anti-dependencies and each half has.
    """
    first: dict[int, int] = {}
    for place, edge in enumerate(way):
        before = first.setdefault(edge.source, place)
        if before != place:
            halves = (way[before:place], [*way[place:], *way[:before]])
            return has_neighbours(way) or not all(map(has_neighbours, halves))
    return False


def has_neighbours(cycle: Sequence[Edge]) -> bool:
    """Return whether two anti-dependencies of a cycle are neighbours."""
    is_anti = [edge.kind in ANTI_DEPENDENCIES for edge in cycle]
    return any(here and is_anti[place - 1] for place, here in enumerate(is_anti))


def without_stations(edges: Sequence[Edge], transactions: int) -> tuple[Edge, ...]:
    """Return the edges between transactions that a way through stations stands for."""
    found: list[Edge] = []
    for edge in edges:
        if edge.source < transactions:
            found.append(edge)
        else:
            found[-1] = found[-1]._replace(target=edge.target)
    return tuple(found)
