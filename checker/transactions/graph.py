"""Graph of transactions, and the part of it that cycles lie in; pure.

Nodes have places. A cycle that leads down to a place leads up from it, too, so it lies where edges
lead down. There nodes are peeled off until each has a predecessor and a successor among the rest,
which is taken apart into strongly connected components. Sources: Kahn 1962; Tarjan 1972.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import Nodes


class Edge(NamedTuple):
    """One edge, see ``dependencies``."""

    source: int
    target: int
    kind: int
    proof: int


#: Least difference of the places that an edge leads between.
STEP: Final = 2
#: Rounds after which a cycle, or a long chain, is taken for the reason why places do not settle.
_ROUNDS_MAX: Final = 300
#: Nodes that are looked for at a time, and steps after which no more are.
_BITS: Final = 4_096
_STEPS_MAX: Final = 20_000_000
#: Edges by their source.
Successors = Mapping[int, Sequence[Edge]]


def raised(places: Nodes, source: Nodes, target: Nodes) -> bool:
    """Raise places until each edge leads up by ``STEP``; return whether that came to an end."""
    moved = np.ones(len(places), dtype=bool)
    # A way without a cycle has fewer edges than there are nodes.
    for _ in range(min(_ROUNDS_MAX, len(places) + 1)):
        edges = np.flatnonzero(moved[source])
        least, there = places[source[edges]] + STEP, target[edges]
        low = places[there] < least
        if not low.any():
            return True
        np.maximum.at(places, there[low], least[low])
        moved[:] = False
        moved[there[low]] = True
    return False


def core_of(source: Nodes, target: Nodes, places: Nodes | None = None) -> NDArray[np.bool_]:
    """Return which edges are left once nodes that no cycle can hold are peeled off.

    The more edges lead to a greater place, where places of nodes are known, the less is looked at.
    """
    count = 1 + max(int(source.max(initial=-1)), int(target.max(initial=-1)))
    known: Nodes = np.zeros(count, dtype=np.int64) if places is None else places
    stretch = _stretches(known, source, target)
    kept = (stretch[source] >= 0) & (stretch[source] == stretch[target])
    for _ in range(2):
        edges = np.flatnonzero(kept)
        nodes, ends = np.unique((source[edges], target[edges]), return_inverse=True)
        left = np.zeros(len(known), dtype=bool)
        left[nodes] = _unreached(len(nodes), *ends.reshape(2, -1))
        kept &= left[source] & left[target]
        # The second time from behind.
        source, target = target, source
    return kept


def _stretches(places: Nodes, source: Nodes, target: Nodes) -> Nodes:
    """Return the number of the stretch of places that each node lies in; -1 for those in none.

    A stretch is what edges that do not lead up span together.
    """
    down = places[source] >= places[target]
    if not down.any():
        return np.full(len(places), -1)
    order = np.argsort(places[target[down]])
    low, high = places[target[down]][order], np.maximum.accumulate(places[source[down]][order])
    begins = np.flatnonzero(low[1:] > high[:-1]) + 1
    low, high = low[np.append(0, begins)], high[np.append(begins, len(low)) - 1]
    number = np.searchsorted(low, places, side="right") - 1
    return np.where(places <= high[number], number, -1)


def _unreached(count: int, source: Nodes, target: Nodes) -> NDArray[np.bool_]:
    """Return the nodes that are left after peeling off those without predecessors."""
    order = np.argsort(source, kind="stable")
    targets: list[int] = target[order].tolist()
    begins: list[int] = np.searchsorted(source[order], np.arange(count + 1)).tolist()
    waiting: list[int] = np.bincount(target, minlength=count).tolist()
    ready = [node for node, number in enumerate(waiting) if not number]
    while ready:
        node = ready.pop()
        for other in targets[begins[node] : begins[node + 1]]:
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return np.array(waiting, dtype=np.int64) > 0


def successors_of(edges: Iterable[Edge]) -> dict[int, list[Edge]]:
    """Group edges by their source."""
    found: dict[int, list[Edge]] = {}
    for edge in edges:
        found.setdefault(edge.source, []).append(edge)
    return found


def components(successors: Successors, poll: Callable[[], None]) -> dict[int, int]:
    """Return the number of the component of each node that is on a cycle."""
    after = {node: [edge.target for edge in edges] for node, edges in successors.items()}
    return components_of(after, poll)


def components_of(after: Mapping[int, Sequence[int]], poll: Callable[[], None]) -> dict[int, int]:
    """Return the same of a graph without proofs."""
    ranks = ranks_of(after, poll)
    sizes = Counter(ranks.values())
    return {node: rank for node, rank in ranks.items() if sizes[rank] > 1}


def after_of(source: Nodes, target: Nodes) -> dict[int, list[int]]:
    """Return the nodes that edges lead to from each node, each once."""
    count = 1 + int(target.max(initial=0))
    here, there = np.divmod(np.unique(source * count + target), count)
    nodes, begins = np.unique(here, return_index=True)
    ends: list[int] = there.tolist()
    bounds = [*begins.tolist(), len(ends)]
    return {
        node: ends[begin:end]
        for node, begin, end in zip(nodes.tolist(), bounds, bounds[1:], strict=False)
    }


class Connected:
    """Edges of some kinds, and the components that they make."""

    def __init__(
        self, edges: Iterable[Edge], kinds: frozenset[int], poll: Callable[[], None]
    ) -> None:
        successors = successors_of(edge for edge in edges if edge.kind in kinds)
        self.component = components(successors, poll)
        of = self.component.get
        #: Edges within components.
        self.inner = [
            edge
            for source, edges in successors.items()
            if source in self.component
            for edge in edges
            if of(edge.target) == of(source)
        ]


def led_to(
    successors: Successors, pairs: Iterable[tuple[int, int]], poll: Callable[..., None]
) -> set[tuple[int, int]]:
    """Return the pairs of nodes of which edges lead from the first one to the second one.

    Each component has a number with a bit for each second node, some of them at a time, which
    follows from those of the components behind it. Pairs are left out where that would take too
    many steps.
    """
    wanted = {*pairs}
    ranks = ranks_of(
        {node: [edge.target for edge in edges] for node, edges in successors.items()}, poll
    )
    wanted = {pair for pair in wanted if pair[0] in ranks and pair[1] in ranks}
    behind: list[set[int]] = [set() for _ in range(max(ranks.values(), default=-1) + 1)]
    for node, edges in successors.items():
        behind[ranks[node]].update([ranks[edge.target] for edge in edges])
    ends = sorted({ranks[there] for _, there in wanted})
    steps_each = sum(map(len, behind)) + len(behind)
    found: set[tuple[int, int]] = set()
    for begin in range(0, len(ends), _BITS):
        if begin and steps_each * begin > _STEPS_MAX * _BITS:
            break
        bits = {rank: 1 << place for place, rank in enumerate(ends[begin : begin + _BITS])}
        leads = [0] * len(behind)
        # No edge leads to a greater rank.
        for rank, others in enumerate(behind):
            mask = bits.get(rank, 0)
            for other in others:
                mask |= leads[other]
            leads[rank] = mask
            poll(len(others) + 1)
        for here, there in wanted:
            if leads[ranks[here]] & bits.get(ranks[there], 0):
                found.add((here, there))
    return found


def ranks_of(after: Mapping[int, Sequence[int]], poll: Callable[[], None]) -> dict[int, int]:
    """Return a number for each node, the same within a component; no edge leads to a greater one.

    Without recursion.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    found: dict[int, int] = {}
    number = 0
    for root in after:
        if root in index:
            continue
        walk = [(root, iter(after[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        while walk:
            node, rest = walk[-1]
            poll()
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    open_nodes.append(other)
                    walk.append((other, iter(after.get(other, ()))))
                    break
                if other not in found and index[other] < low[node]:
                    low[node] = index[other]
            else:
                walk.pop()
                if walk and low[node] < low[walk[-1][0]]:
                    low[walk[-1][0]] = low[node]
                if low[node] == index[node]:
                    number += 1
                    while node not in found:
                        found[open_nodes.pop()] = number
    return found
