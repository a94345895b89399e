"""Orders of writes that no read shows, and the edges that each choice among them means; pure.

A transaction that replaced the version that it had read follows its writer with nothing between, so
the writers of a key make chains. Of two chains either one is first: its last writer comes before
the first writer of the other, and so do the readers of that last version. A level holds if one
choice for each pair leaves no forbidden cycle. Such a cycle is one in a graph of *states*:

- every cycle (serializable): states are the nodes;
- cycles without two neighbouring anti-dependencies (snapshot isolation): each node has a second
  state, after an anti-dependency, that no further one leaves;
- cycles with one anti-dependency at most (parallel snapshot isolation): anti-dependencies are no
  part of the graph, and each is looked at by itself.

Source: Zhang and others 2023, "Viper", and Huang and others 2023, "PolySI" (constraints on pairs).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from splitbrain.checker.transactions.commit_orders import BEGINNING, reads_of
from splitbrain.checker.transactions.dependencies import (
    ANTI_DEPENDENCIES,
    NO_PROOF,
    PASS,
    PROCESS,
    REALTIME,
    RW,
    WR,
    WW,
    Dependencies,
    Nodes,
)
from splitbrain.checker.transactions.graph import Edge, core_of
from splitbrain.checker.transactions.levels import Level

SERIAL: Final = "serial"
SNAPSHOT: Final = "snapshot"
PARALLEL: Final = "parallel"
#: Cycles that each base forbids.
FORBIDDEN: Final = {
    "serializable": SERIAL,
    "repeatable-read": SERIAL,
    "snapshot-isolation": SNAPSHOT,
    "parallel-snapshot-isolation": PARALLEL,
}


class Chain(NamedTuple):
    """Writers of one key that follow each other directly; transactions."""

    first: int
    last: int


class Pair(NamedTuple):
    """Two chains of a key, either of which comes first."""

    key: int
    one: Chain
    other: Chain


class OpenGraph(NamedTuple):
    """States, and steps between them that are certain or hang on a choice.

    A step is an ``Edge`` between states: its kind is a literal (0 for certain, the number of a pair
    from 1 on where ``one`` is first, negative where ``other`` is), its proof a place in ``edges``.
    """

    forbidden: str
    #: Number of transactions; nodes from here on are stations.
    transactions: int
    pairs: Sequence[Any]
    edges: list[Edge]
    certain: list[Edge]
    #: By literal.
    chosen: dict[int, list[Edge]]
    #: Anti-dependencies by themselves, only where cycles with one are forbidden.
    single: list[Edge]
    #: Of each, one literal at least is chosen.
    clauses: Sequence[tuple[int, ...]] = ()


def open_graph(
    found: Dependencies, level: Level, *, are_lists: bool, poll: Callable[[], None]
) -> OpenGraph:
    """Return the graph of a history in which no forbidden cycle is certain."""
    source, target, kind, proof = found.edges.columns()
    kinds = [WW, WR, RW, PASS]
    kinds += [
        k for k, order in ((PROCESS, "process"), (REALTIME, "realtime")) if order in level.orders
    ]
    usable = np.isin(kind, kinds)
    rows = np.stack([source, target, kind, proof, np.zeros_like(kind)], axis=1)[usable]
    reads = reads_of(found, (source, target, kind, proof))
    readers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    if not are_lists:
        for txn, key, writer, number in zip(
            *(c.tolist() for c in (reads.txn, reads.key, reads.source, reads.number)), strict=True
        ):
            readers.setdefault((writer, key), []).append((txn, number))
    chains = _unread(found) if are_lists else _chains(found, readers)
    pairs = [
        Pair(key, one, other)
        for key, several in chains.items()
        for place, one in enumerate(several)
        for other in several[place + 1 :]
    ]
    options = [
        (*edge, literal)
        for number, pair in enumerate(pairs, 1)
        for literal, before, behind in (
            (number, pair.one, pair.other),
            (-number, pair.other, pair.one),
        )
        for edge in _edges_of(pair.key, before, behind, readers)
    ]
    poll()
    every = np.concatenate([rows, np.array(options, dtype=np.int64).reshape(-1, 5)])
    every = every[core_of(every[:, 0], every[:, 1])]
    nodes = found.edges.nodes, len(found.happened)
    return states_of(FORBIDDEN[level.base], *nodes, pairs, every)


def _unread(found: Dependencies) -> dict[int, list[Chain]]:
    numbers = {key: number for number, key in enumerate(found.table.keys)}
    return {numbers[key]: [Chain(txn, txn) for txn in txns] for key, txns in found.unordered}


def _chains(
    found: Dependencies, readers: dict[tuple[int, int], list[tuple[int, int]]]
) -> dict[int, list[Chain]]:
    """Return the chains of each key, without one that begins at the beginning."""
    writes = {(w.txn, w.key): None for w in found.table.writes if found.happened[w.txn]}
    behind: dict[tuple[int, int], int] = {}
    follows: set[tuple[int, int]] = set()
    for (writer, key), several in readers.items():
        for txn, _ in several:
            if txn != writer and (txn, key) in writes:
                behind.setdefault((writer, key), txn)
                follows.add((txn, key))
    chains: dict[int, list[Chain]] = {}
    for txn, key in writes:
        if (txn, key) in follows and behind.get((BEGINNING, key)) != txn:
            continue
        last = txn
        while (last, key) in behind:
            last = behind[last, key]
        chains.setdefault(key, []).append(Chain(txn, last))
    return chains


def _edges_of(
    key: int,
    before: Chain,
    behind: Chain,
    readers: dict[tuple[int, int], list[tuple[int, int]]],
) -> Iterator[tuple[int, int, int, int]]:
    yield before.last, behind.first, WW, NO_PROOF
    for txn, number in readers.get((before.last, key), ()):
        if txn != behind.first:
            yield txn, behind.first, RW, number


def states_of(
    forbidden: str, nodes: int, transactions: int, pairs: Sequence[Any], rows: Nodes
) -> OpenGraph:
    """Return the graph of edges with literals: columns source, target, kind, proof, literal."""
    graph = OpenGraph(forbidden, transactions, pairs, [], [], {}, [])
    for source, target, kind, proof, literal in rows.tolist():
        number = len(graph.edges)
        graph.edges.append(Edge(source, target, kind, proof))
        if forbidden == PARALLEL and kind in ANTI_DEPENDENCIES:
            graph.single.append(Edge(source, target, literal, number))
            continue
        steps = graph.chosen.setdefault(literal, []) if literal else graph.certain
        for one, other in _steps(forbidden, source, target, kind, nodes):
            steps.append(Edge(one, other, literal, number))
    return graph


def _steps(
    forbidden: str, source: int, target: int, kind: int, nodes: int
) -> Sequence[tuple[int, int]]:
    if forbidden != SNAPSHOT:
        return [(source, target)]
    if kind in ANTI_DEPENDENCIES:
        return [(source, target + nodes)]
    after = target + nodes if kind == PASS else target
    return [(source, target), (source + nodes, after)]
