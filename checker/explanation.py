"""Graph of operations that cannot be ordered, and its forms: data, text and DOT.

Nodes are the few operations that contradict each other. Edges are constraints on their order:

- ``real-time``: one returned before the other was invoked (only the edges that are not implied);
- ``reads-from``: one made the other's answer possible, and nothing else could;
- ``may-read-from``: one of several that could have made it possible;
- ``must-precede``: follows from the others (an answer must come before an operation that spoils
  it);
- ``spoils``: leaves a state in which the operation without a place has none.

A cycle of the first, second and fourth kind is the contradiction itself and is marked so; where
there is none, the ``spoils`` edges are marked. Must never grow with the history: ``NODES_MAX``.

Between transactions edges are dependencies: ``ww``, ``wr`` and ``rw`` by what they did to one key,
``process`` and ``real-time`` by when they did it, ``commit`` by what a third one saw; a graph of
them is a cycle, all of it marked.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, cast

import msgspec
import networkx as nx

from splitbrain.history.records import PairedOperation

#: Operations shown at most.
NODES_MAX = 40

RelationKind = Literal[
    "real-time",
    "reads-from",
    "may-read-from",
    "must-precede",
    "spoils",
    "ww",
    "wr",
    "rw",
    "process",
    "commit",
]

#: Kinds of edges that every order must obey; a cycle of them is a contradiction.
BINDING: frozenset[str] = frozenset({"real-time", "reads-from", "must-precede"})


class Relation(msgspec.Struct, frozen=True):
    """Edge from an operation's index to another's."""

    source: int
    target: int
    kind: RelationKind
    #: Reason in a few words; empty where the kind is enough.
    label: str = ""


def build_graph(
    operations: Sequence[PairedOperation],
    relations: Iterable[Relation],
    culprit: int,
    describe: Callable[[PairedOperation], str],
) -> "nx.MultiDiGraph[int]":
    """Return the graph of some operations and their relations; real-time edges are added here.

    Only the first ``NODES_MAX`` operations are used; relations of absent ones are left out. The
    culprit is the index of the operation that could not be placed.
    """
    shown = sorted(operations[:NODES_MAX], key=lambda o: (o.start, o.index))
    graph = _graph_of(shown, (*real_time_relations(shown), *relations), culprit, describe)
    _mark_contradiction(graph)
    return graph


def build_cycle(
    operations: Sequence[PairedOperation],
    relations: Iterable[Relation],
    describe: Callable[[PairedOperation], str],
) -> "nx.MultiDiGraph[int]":
    """Return the graph of transactions each of which must come before the next one.

    The first ones are shown, as in ``build_graph``; the first of all is the one pointed at.
    """
    graph = _graph_of(operations[:NODES_MAX], relations, operations[0].index, describe)
    for _, _, edge in graph.edges(data=True):
        edge["contradiction"] = True
    return graph


def _graph_of(
    operations: Iterable[PairedOperation],
    relations: Iterable[Relation],
    culprit: int,
    describe: Callable[[PairedOperation], str],
) -> "nx.MultiDiGraph[int]":
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for operation in operations:
        graph.add_node(
            operation.index,
            text=describe(operation),
            process=operation.process,
            node=operation.node,
            start=operation.start,
            end=operation.end,
            culprit=operation.index == culprit,
        )
    for relation in relations:
        if relation.source in graph and relation.target in graph:
            graph.add_edge(
                relation.source,
                relation.target,
                key=relation.kind,
                label=relation.label,
                contradiction=False,
            )
    return graph


def precedes(first: PairedOperation, second: PairedOperation) -> bool:
    """Return whether the first certainly came before the second; equal times decide nothing."""
    if first.end is None:
        return False
    if first.process == second.process:
        return first.index < second.index
    return first.end < second.start


def real_time_relations(operations: Sequence[PairedOperation]) -> list[Relation]:
    """Return real-time precedence without the edges that others imply."""
    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(operation.index for operation in operations)
    order.add_edges_from(
        (first.index, second.index)
        for first in operations
        for second in operations
        if first.index != second.index and precedes(first, second)
    )
    reduced = nx.transitive_reduction(order)
    return [Relation(source, target, "real-time") for source, target in sorted(reduced.edges)]


def to_data(graph: "nx.MultiDiGraph[int]") -> dict[str, Any]:
    """Return the JSON-ready node-link form of networkx."""
    return nx.node_link_data(graph, edges="edges")


def from_data(data: dict[str, Any]) -> "nx.MultiDiGraph[int]":
    """Return the graph of ``to_data``."""
    graph = nx.node_link_graph(  # pyright: ignore[reportUnknownMemberType]
        data, directed=True, multigraph=True, edges="edges"
    )
    return cast("nx.MultiDiGraph[int]", graph)


def to_text(graph: "nx.MultiDiGraph[int]") -> list[str]:
    """Return one line per operation in order of invocation, then one per relation worth showing."""
    lines = [
        f"{'>' if node['culprit'] else ' '} [{index}] process {node['process']}"
        f"{_on(node['node'])}: {node['text']}, {_interval(node['start'], node['end'])}"
        for index, node in graph.nodes(data=True)
    ]
    for source, target, kind, edge in graph.edges(keys=True, data=True):
        if kind == "real-time" and not edge["contradiction"]:
            continue
        mark = "!" if edge["contradiction"] else " "
        lines.append(f"{mark} [{source}] {_VERBS[kind]} [{target}]{_because(edge['label'])}")
    return lines


_VERBS = {
    "real-time": "returned before the start of",
    "reads-from": "alone explains the answer of",
    "may-read-from": "may explain the answer of",
    "must-precede": "must come before",
    "spoils": "leaves no place for",
}


def _mark_contradiction(graph: "nx.MultiDiGraph[int]") -> None:
    """Mark the edges of one shortest cycle of binding edges, else those that spoil."""
    binding: nx.DiGraph[int] = nx.DiGraph()
    for source, target, kind in graph.edges(keys=True):
        if kind in BINDING:
            binding.add_edge(source, target)
    cycle = _shortest_cycle(binding)
    for source, target, kind, edge in graph.edges(keys=True, data=True):
        edge["contradiction"] = (
            kind in BINDING and (source, target) in cycle if cycle else kind == "spoils"
        )


def _shortest_cycle(binding: "nx.DiGraph[int]") -> set[tuple[int, int]]:
    best: list[int] = []
    for source, target in sorted(binding.edges):
        if nx.has_path(binding, target, source):
            # The stubs leave the keyword arguments of backends untyped.
            back = cast(
                "list[int]",
                nx.shortest_path(binding, target, source),  # pyright: ignore[reportUnknownMemberType]
            )
            if not best or len(back) < len(best):
                best = back
    if not best:
        return set()
    return {*pairwise(best), (best[-1], best[0])}


def _on(node: str | None) -> str:
    return "" if node is None else f" on {node}"


def _interval(start: int, end: int | None) -> str:
    if end is None:
        return f"from {start} ns, never answered"
    return f"{start} to {end} ns"


def _because(label: str) -> str:
    return f": {label}" if label else ""
