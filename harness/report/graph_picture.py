"""Inline SVG of the graph of operations that cannot be ordered. Pure.

Columns follow real time, red arrows are the contradiction. Any graph is drawn, also an odd one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import networkx as nx
from markupsafe import Markup

from splitbrain.checker.explanation import from_data
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.svg import element, picture

_COLUMN_PX = 306
_ROW_PX = 92
_BOX_WIDTH_PX = 172
_BOX_HEIGHT_PX = 48
#: Room at a side for arrows between boxes of the column there, and their labels; and without such.
_SIDE_PX = 140
_EDGE_PX = 6
_MARGIN_PX = 26
#: Between arrows that leave one box.
_EXIT_PX = 15
#: Operations drawn at most, unless the contradiction itself is longer.
_NODES_MAX = 8
_TEXT_CHARACTERS_MAX = 22
#: Edge kinds in words, from source to target.
_WORDS = {
    "real-time": "returned before",
    "reads-from": "alone explains",
    "may-read-from": "may explain",
    "must-precede": "must precede",
    "spoils": "leaves no place for",
    "ww": "was overwritten by",
    "wr": "was read by",
    "rw": "did not see",
    "process": "in one process before",
    "commit": "must commit before",
}
#: Implied by every other relation, so left out beside one.
_IMPLIED = _WORDS["must-precede"]
Place = tuple[float, float]


class _Edge(msgspec.Struct, frozen=True):
    source: int
    target: int
    label: str
    bad: bool
    #: Its number among those that leave the source, and their count.
    exit: int = 0
    exits: int = 1


def draw_graph(data: Mapping[str, Any], identifier: str) -> Markup:
    """Return the picture of one violation's graph (``checker.explanation.to_data``).

    ``identifier`` makes the marks of several pictures in one page differ.
    """
    graph = essence(data)
    if not graph.number_of_nodes():
        return Markup()
    edges = _edges(graph)
    places, right_px = _placed(_places(_columns(graph)), edges)
    width = max(x for x, _ in places.values()) + _BOX_WIDTH_PX + right_px
    height = max(y for _, y in places.values()) + _BOX_HEIGHT_PX + _MARGIN_PX
    arrows = [_arrow(edge, places[edge.source], places[edge.target], identifier) for edge in edges]
    return picture(
        width,
        height,
        _description(graph),
        _head(f"{identifier}-head", "head"),
        _head(f"{identifier}-red", "head bad"),
        *(line for line, _ in arrows),
        *(_box(index, node, places[index]) for index, node in graph.nodes(data=True)),
        *(label for _, label in arrows),
        class_="graph",
    )


def _head(identifier: str, class_: str) -> Markup:
    shape = element("path", d="M0 0 L8 4 L0 8 z", class_=class_)
    marker = element(
        "marker",
        shape,
        id=identifier,
        viewBox="0 0 8 8",
        refX=7,
        refY=4,
        markerWidth=10,
        markerHeight=10,
        markerUnits="userSpaceOnUse",
        orient="auto-start-reverse",
    )
    return element("defs", marker)


def essence(data: Mapping[str, Any]) -> "nx.MultiDiGraph[int]":
    """Return the part that a person can take in: all of a small graph, else the contradiction.

    Real-time edges that add nothing are left out: left stands for earlier.
    """
    graph = from_data(dict(data))
    if graph.number_of_nodes() > _NODES_MAX:
        edges = graph.edges(data=True)
        cycle = {end for *ends, edge in edges if edge["contradiction"] for end in ends}
        culprits = [index for index, node in graph.nodes(data=True) if node.get("culprit")]
        beside = [
            source
            for source, target, kind in graph.edges(keys=True)
            if target in culprits and kind != "real-time"
        ]
        kept = list(dict.fromkeys([*cycle, *culprits, *beside]))[: max(_NODES_MAX, len(cycle))]
        graph = graph.subgraph(kept).copy()
    silent = [
        (source, target, kind)
        for source, target, kind, edge in graph.edges(keys=True, data=True)
        if kind == "real-time" and not edge["contradiction"]
    ]
    for source, target, kind in silent:
        graph.remove_edge(source, target, key=kind)
    return graph


def _edges(graph: "nx.MultiDiGraph[int]") -> list[_Edge]:
    """Return one edge per pair and direction; red ones last, so that nothing covers them."""
    labels: dict[tuple[int, int], list[str]] = {}
    bad: set[tuple[int, int]] = set()
    for source, target, kind, edge in graph.edges(keys=True, data=True):
        labels.setdefault((source, target), []).append(_WORDS.get(str(kind), str(kind)))
        if edge["contradiction"]:
            bad.add((source, target))
    exits = Counter(source for source, _ in labels)
    used: Counter[int] = Counter()
    edges: list[_Edge] = []
    for (source, target), kinds in labels.items():
        if len(kinds) > 1 and _IMPLIED in kinds:
            kinds.remove(_IMPLIED)
        edges.append(
            _Edge(
                source=source,
                target=target,
                label=", ".join(kinds),
                bad=(source, target) in bad,
                exit=used[source],
                exits=exits[source],
            )
        )
        used[source] += 1
    return sorted(edges, key=lambda edge: edge.bad)


def _columns(graph: "nx.MultiDiGraph[int]") -> dict[int, int]:
    """Return each operation's column: the longest chain in real time before it; by invocation."""
    columns: dict[int, int] = {}
    nodes = [(index, _attributes(graph, index)) for index in graph]
    nodes.sort(key=lambda item: (item[1].get("start") or 0, item[0]))
    for index, node in nodes:
        before = [
            columns[earlier]
            for earlier, other in nodes
            if earlier in columns
            and other.get("end") is not None
            and other["end"] < (node.get("start") or 0)
        ]
        columns[index] = max(before, default=-1) + 1
    return columns


def _places(columns: Mapping[int, int]) -> dict[int, Place]:
    filled: dict[int, int] = {}
    places: dict[int, Place] = {}
    for index, column in columns.items():
        row = filled.get(column, 0)
        filled[column] = row + 1
        # Every other column sits lower, so that an arrow over a column passes between boxes.
        lower = _ROW_PX / 2 if column % 2 else 0
        places[index] = (column * _COLUMN_PX, row * _ROW_PX + lower + _MARGIN_PX)
    return places


def _placed(places: Mapping[int, Place], edges: Sequence[_Edge]) -> tuple[dict[int, Place], float]:
    """Return the places with the room left of them that arrows need, and the room at the right."""
    last = max(x for x, _ in places.values())
    beside = [
        (x, y, below)
        for (x, y), (other, below) in ((places[each.source], places[each.target]) for each in edges)
        if x == other
    ]
    left_px = _SIDE_PX if any(not x and below <= y for x, y, below in beside) else _EDGE_PX
    right_px = _SIDE_PX if any(x == last and below > y for x, y, below in beside) else _EDGE_PX
    return {index: (x + left_px, y) for index, (x, y) in places.items()}, right_px


def _attributes(graph: "nx.MultiDiGraph[int]", index: int) -> dict[str, Any]:
    return graph.nodes[index]


def _description(graph: "nx.MultiDiGraph[int]") -> str:
    relations = [
        f"index {source} {_WORDS.get(str(kind), str(kind))} index {target}"
        for source, target, kind, edge in graph.edges(keys=True, data=True)
        if edge["contradiction"]
    ]
    contradiction = ", ".join(relations) or "none"
    return f"Graph of {graph.number_of_nodes()} operations. Contradiction: {contradiction}."


def _box(index: int, node: Mapping[str, Any], place: Place) -> Markup:
    x, y = place
    where = f" · {node['node']}" if node.get("node") else ""
    process = _cut(f"[{index}] process {node.get('process')}{where}")
    text = str(node.get("text", ""))
    class_ = "call core culprit" if node.get("culprit") else "call"
    return element(
        "g",
        element("title", f"index {index}: {printable(text)}"),
        element("rect", class_=class_, x=x, y=y, width=_BOX_WIDTH_PX, height=_BOX_HEIGHT_PX, rx=5),
        element("text", _cut(text), x=x + 8, y=y + 18),
        element("text", process, class_="soft", x=x + 8, y=y + 35),
    )


def _arrow(edge: _Edge, source: Place, target: Place, identifier: str) -> tuple[Markup, Markup]:
    """Return the line from box to box, and its label, which is drawn above all boxes."""
    half = _BOX_HEIGHT_PX / 2
    spread = max(-half + 4, min(half - 4, (edge.exit - (edge.exits - 1) / 2) * _EXIT_PX))
    y1, y2 = source[1] + half + spread, target[1] + half
    forward = target[0] > source[0]
    anchor = "start"
    if source[0] == target[0]:
        # One above the other: downwards they bow out to the right, upwards to the left.
        side = 1 if target[1] > source[1] else -1
        x1 = x2 = source[0] + (_BOX_WIDTH_PX if side > 0 else 0)
        bend1 = bend2 = x1 + side * 34
        label_x, label_y = x1 + side * 30, (y1 + y2) / 2 + 4
        anchor = "start" if side > 0 else "end"
    else:
        x1 = source[0] + (_BOX_WIDTH_PX if forward else 0)
        x2 = target[0] + (0 if forward else _BOX_WIDTH_PX)
        bow = max(40.0, abs(x2 - x1) / 2) * (1 if forward else -1)
        bend1, bend2 = x1 + bow, x2 - bow
        label_x, label_y = x1 + (8 if forward else -8), y1 - 4
        anchor = "start" if forward else "end"
    bad = " bad" if edge.bad else ""
    curve = f"{x1:.1f} {y1:.1f} C{bend1:.1f} {y1:.1f} {bend2:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    head = f"url(#{identifier}-{'red' if edge.bad else 'head'})"
    line = element("path", class_=f"edge{bad}", d=f"M{curve}", marker_end=head)
    label = element(
        "text", edge.label, class_=f"edge-label{bad}", x=label_x, y=label_y, text_anchor=anchor
    )
    return line, label


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _TEXT_CHARACTERS_MAX else text[: _TEXT_CHARACTERS_MAX - 1] + "…"
