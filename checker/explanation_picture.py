"""Draws an explanation graph as SVG: operations as bars per process, relations as arrows.

Time runs to the right, one step per distinct moment, so that nanoseconds and hours both show.
All text from the system under test is escaped. Needs no program and no font of its own; its size
is bounded by the graph's.
"""

from html import escape
from typing import Any

import msgspec
import networkx as nx

#: Measures in SVG user units.
_STEP_WIDTH = 64
_ROW_HEIGHT = 64
_BAR_HEIGHT = 24
_MARGIN_LEFT = 120
_MARGIN_TOP = 34
_TEXT_LENGTH_MAX = 44

_COLORS = {
    "real-time": "#9aa0a6",
    "reads-from": "#1a73e8",
    "may-read-from": "#1a73e8",
    "must-precede": "#3c4043",
    "spoils": "#e37400",
}
_CONTRADICTION_COLOR = "#d93025"
_DASHES = {"may-read-from": "4 3", "real-time": "2 3"}


class _Bar(msgspec.Struct, frozen=True):
    """Where one operation is drawn."""

    left: int
    right: int
    top: int
    #: Never answered: drawn open to the right.
    open: bool

    @property
    def middle(self) -> int:
        return (self.left + self.right) // 2


def to_svg(graph: "nx.MultiDiGraph[int]") -> str:
    """The picture as one SVG element, for a page or a file of its own."""
    bars, rows = _layout(graph)
    width = max((bar.right for bar in bars.values()), default=_MARGIN_LEFT) + 40
    height = _MARGIN_TOP + _ROW_HEIGHT * len(rows)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" font-family="sans-serif" '
            'font-size="11">'
        ),
        "<title>Operations that cannot be ordered</title>",
        f"<defs>{_markers()}</defs>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for (process, node), top in rows.items():
        on = f" ({node})" if node else ""
        lines.append(
            f'<text x="8" y="{top + _BAR_HEIGHT - 7}" fill="#3c4043">'
            f"{escape(f'process {process}{on}')}</text>"
        )
    for source, target, kind, edge in graph.edges(keys=True, data=True):
        lines.append(_arrow(bars[source], bars[target], kind, edge))
    for index, data in graph.nodes(data=True):
        lines.append(_box(index, bars[index], data))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _layout(
    graph: "nx.MultiDiGraph[int]",
) -> tuple[dict[int, _Bar], dict[tuple[int, str | None], int]]:
    """Bars by operation, and rows (their top) by process."""
    moments: set[int] = set()
    rows: dict[tuple[int, str | None], int] = {}
    for _, data in graph.nodes(data=True):
        moments.add(data["start"])
        if data["end"] is not None:
            moments.add(data["end"])
        row = (data["process"], data["node"])
        rows.setdefault(row, _MARGIN_TOP + _ROW_HEIGHT * len(rows))
    step = {moment: number for number, moment in enumerate(sorted(moments))}
    bars: dict[int, _Bar] = {}
    for index, data in graph.nodes(data=True):
        left = _MARGIN_LEFT + _STEP_WIDTH * step[data["start"]]
        is_open = data["end"] is None
        last = len(moments) if is_open else step[data["end"]]
        right = max(_MARGIN_LEFT + _STEP_WIDTH * last, left + 12)
        bars[index] = _Bar(left, right, rows[data["process"], data["node"]], is_open)
    return bars, rows


def _markers() -> str:
    colors = sorted({*_COLORS.values(), _CONTRADICTION_COLOR})
    return "".join(
        f'<marker id="arrow-{color[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
        for color in colors
    )


def _box(index: int, bar: _Bar, data: dict[str, Any]) -> str:
    """One operation: its bar, its words above, the whole story as a tooltip."""
    fill = "#fce8e6" if data["culprit"] else "#e8f0fe"
    stroke = _CONTRADICTION_COLOR if data["culprit"] else "#5f6368"
    dashes = ' stroke-dasharray="5 3"' if bar.open else ""
    end = "never answered" if bar.open else f"{data['end']} ns"
    story = f"[{index}] {data['text']}, {data['start']} ns to {end}"
    words = f"[{index}] {data['text']}"
    if len(words) > _TEXT_LENGTH_MAX:
        words = f"{words[: _TEXT_LENGTH_MAX - 3]}..."
    return (
        f'<g><title>{escape(story)}</title><rect x="{bar.left}" y="{bar.top}" '
        f'width="{bar.right - bar.left}" height="{_BAR_HEIGHT}" rx="3" fill="{fill}" '
        f'stroke="{stroke}"{dashes}/><text x="{bar.left}" y="{bar.top - 5}" fill="#202124">'
        f"{escape(words)}</text></g>"
    )


def _arrow(source: _Bar, target: _Bar, kind: str, edge: dict[str, Any]) -> str:
    """A curve from the source's to the target's middle, bent so that two kinds do not coincide."""
    color = _CONTRADICTION_COLOR if edge["contradiction"] else _COLORS[kind]
    weight = 2 if edge["contradiction"] else 1
    dashes = f' stroke-dasharray="{_DASHES[kind]}"' if kind in _DASHES else ""
    from_y = source.top + _BAR_HEIGHT // 2
    to_y = target.top + _BAR_HEIGHT // 2
    bend = {"real-time": 0, "reads-from": -26, "may-read-from": -26}.get(kind, 26)
    middle_x = (source.middle + target.middle) // 2
    middle_y = (from_y + to_y) // 2 + bend
    label = escape(f"{kind}: {edge['label']}" if edge["label"] else kind)
    return (
        f'<path d="M{source.middle} {from_y}Q{middle_x} {middle_y} {target.middle} {to_y}" '
        f'fill="none" stroke="{color}" stroke-width="{weight}"{dashes} '
        f'marker-end="url(#arrow-{color[1:]})"><title>{label}</title></path>'
    )
