"""Graph of transactions, and the part of it that cycles lie in; pure.

Nodes are peeled off until each has a predecessor and a successor among the rest; of a history
without anomalies nothing is left. The rest is taken apart into strongly connected components.
Sources: Kahn 1962; Tarjan 1972.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import Nodes


class Edge(NamedTuple):
    """One edge, see ``dependencies``."""

    source: int
    target: int
    kind: int
    proof: int


#: Edges by their source.
Successors = Mapping[int, Sequence[Edge]]


def core_of(count: int, source: Nodes, target: Nodes) -> NDArray[np.bool_]:
    """Return which edges are left once nodes that no cycle can hold are peeled off."""
    kept = np.ones(len(source), dtype=bool)
    for here, there in ((source, target), (target, source)):
        left = _unreached(count, here[kept], there[kept])
        if not left.any():
            return np.zeros(len(source), dtype=bool)
        kept &= left[source] & left[target]
    return kept


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
    """Return the number of the component of each node that is on a cycle, without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    found: dict[int, int] = {}
    closed: set[int] = set()
    for root in successors:
        if root in index:
            continue
        walk = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        while walk:
            node, rest = walk[-1]
            poll()
            for edge in rest:
                other = edge.target
                if other not in index:
                    index[other] = low[other] = len(index)
                    open_nodes.append(other)
                    walk.append((other, iter(successors.get(other, ()))))
                    break
                if other not in closed:
                    low[node] = min(low[node], index[other])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == index[node]:
                    _close(node, open_nodes, closed, found)
    return found


def _close(node: int, open_nodes: list[int], closed: set[int], found: dict[int, int]) -> None:
    members: list[int] = []
    while True:
        member = open_nodes.pop()
        members.append(member)
        closed.add(member)
        if member == node:
            break
    if len(members) > 1:
        number = next(iter(reversed(found.values())), -1) + 1
        found.update(dict.fromkeys(members, number))
