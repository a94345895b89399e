"""Inline SVG of the operations around a violation as bars, one row per process. Pure.

The time axis keeps the order of every begin and end, and squeezes the stretches between them, so
that an operation of one millisecond can be read beside a gap of seconds; ticks name the real times.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec
from markupsafe import Markup

from splitbrain.contracts.words import counted
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.svg import element, picture
from splitbrain.history.records import PairedOperation

OPERATIONS_MAX = 22
_LABEL_CHARACTERS_MAX = 26
_CHARACTER_PX = 7.3
_ROW_PX = 34
_BAR_PX = 22
_NAMES_PX = 128
_LEFT_PX = 8
_AXIS_PX = 30
_TICK_SPACE_PX = 78
_NAME_CHARACTERS_MAX = 17


class Picture(msgspec.Struct, frozen=True):
    """Two pictures side by side: the names stay while the bars can be scrolled."""

    names: Markup
    bars: Markup


def choose(
    operations: Iterable[PairedOperation],
    core: Sequence[PairedOperation],
    key: str | None,
    count_max: int = OPERATIONS_MAX,
) -> list[PairedOperation]:
    """Return the core and the operations of its key nearest to it, by invocation."""
    if not core:
        return []
    known = {operation.index for operation in core}
    begin = min(operation.start for operation in core)
    end = max(map(finish, core))
    neighbours = [
        operation
        for operation in operations
        if operation.key == key and operation.index not in known and operation.type != "fail"
    ]

    def distance(operation: PairedOperation) -> tuple[int, int]:
        return max(begin - finish(operation), operation.start - end, 0), operation.index

    neighbours.sort(key=distance)
    room = max(0, count_max - len(core))
    chosen = [*core[:count_max], *neighbours[:room]]
    return sorted(chosen, key=lambda operation: (operation.start, operation.index))


def finish(operation: PairedOperation) -> int:
    """Return the operation's end; its start where it never ended."""
    return operation.start if operation.end is None else operation.end


def label_of(operation: PairedOperation) -> str:
    """Return an operation in a few characters: ``read → 4``, ``write 5``, ``cas 3→4 refused``."""
    argument, result = _parts(operation.argument), _parts(operation.result)
    if operation.f == "cas" and argument:
        text = f"cas {'→'.join(_short(value) for value in argument[:2])}"
        refused = operation.type == "ok" and result and result[-1] is not True
        text += " refused" if refused else ""
    elif operation.f == "txn" and isinstance(operation.argument, str):
        # A transaction of a cycle, without the parts that do not matter.
        text = operation.argument
    elif operation.argument is None:
        text = operation.f + (f" → {_short(operation.result)}" if operation.type == "ok" else "")
    else:
        text = f"{operation.f} {_short(operation.argument)}"
    text += "" if operation.type == "ok" else " ?"
    text = printable(text)
    if len(text) > _LABEL_CHARACTERS_MAX:
        return text[: _LABEL_CHARACTERS_MAX - 1] + "…"
    return text


def _parts(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    if value == "":
        return '""'
    elements = _parts(value)
    return f"[{len(elements)} elements]" if len(elements) > 4 else str(value)


def draw(
    operations: Sequence[PairedOperation], core_indexes: frozenset[int], culprit: int | None = None
) -> Picture | None:
    """Return the picture; None for no operations, which are in order of invocation.

    Operations of ``core_indexes`` are outlined, the ``culprit`` is filled.
    """
    if not operations:
        return None
    places = _axis(operations)
    processes = visited_nodes(operations)
    width = max(places.values()) + 24
    height = _ROW_PX * len(processes) + _AXIS_PX
    names: list[Markup] = []
    parts: list[Markup] = []
    for row, (process, node) in enumerate(processes.items()):
        middle = row * _ROW_PX + _ROW_PX // 2
        name = f"process {process}" + (f" · {printable(node)}" if node else "")
        names.append(_soft(name[:_NAME_CHARACTERS_MAX], 0, middle + 4))
        parts.append(element("line", class_="rule", x1=0, x2=round(width), y1=middle, y2=middle))
    rows = {process: row for row, process in enumerate(processes)}
    for operation in operations:
        classes = "call" + (" core" if operation.index in core_indexes else "")
        classes += " culprit" if operation.index == culprit else ""
        parts.append(_bar(operation, rows[operation.process], places, width, classes))
    label = (
        f"{counted(len(operations), 'operation')} of "
        f"{counted(len(processes), 'process', 'processes')} over time; "
        f"{len(core_indexes)} of them, outlined in red, contradict each other."
    )
    return Picture(
        picture(_NAMES_PX, height, "", *names),
        picture(width, height, label, *parts, *_ticks(places, height, width)),
    )


def _soft(text: str, x: float, y: float) -> Markup:
    return element("text", text, class_="soft", x=x, y=y)


def visited_nodes(operations: Iterable[PairedOperation]) -> dict[int, str | None]:
    """Return processes by their first operation, with their node where it is one only."""
    nodes: dict[int, set[str | None]] = {}
    for operation in operations:
        nodes.setdefault(operation.process, set()).add(operation.node)
    return {
        process: next(iter(visited)) if len(visited) == 1 else None
        for process, visited in nodes.items()
    }


def _axis(operations: Sequence[PairedOperation]) -> dict[int, float]:
    """Return each moment's place: in order, squeezed, wide enough for each label in its bar."""
    beginnings: dict[int, list[PairedOperation]] = {}
    for operation in operations:
        if operation.end is not None:
            beginnings.setdefault(operation.end, []).append(operation)
    begins = {operation.start for operation in operations}
    moments = sorted(begins.union(beginnings))
    places: dict[int, float] = {}
    for number, moment in enumerate(moments):
        if number == 0:
            places[moment] = float(_LEFT_PX)
            continue
        earlier = moments[number - 1]
        gap_ms = (moment - earlier) / 1e6
        place = places[earlier] + 7 + 9 * math.log10(1 + gap_ms)
        for operation in beginnings.get(moment, ()):
            if operation.start != moment:
                needed = places[operation.start] + _CHARACTER_PX * len(label_of(operation)) + 10
                place = max(place, needed)
        places[moment] = place
    last = moments[-1]
    for operation in operations:
        if operation.end is None:
            needed = places[operation.start] + _CHARACTER_PX * len(label_of(operation)) + 10
            places[last] = max(places[last], needed)
    return places


def _bar(
    operation: PairedOperation, row: int, places: dict[int, float], width: float, classes: str
) -> Markup:
    left = places[operation.start]
    right = width if operation.end is None else max(places[operation.end], left + 4)
    top = row * _ROW_PX + (_ROW_PX - _BAR_PX) / 2
    classes += " open" if operation.end is None else ""
    ended = "never answered" if operation.end is None else f"{operation.end / 1e6:,.3f} ms"
    target = f" on {printable(operation.node)}" if operation.node else ""
    title = (
        f"{label_of(operation)}{target}, index {operation.index}, process {operation.process}, "
        f"from {operation.start / 1e6:,.3f} ms to {ended}"
    )
    label = label_of(operation)
    box = element("rect", class_=classes, x=left, y=top, width=right - left, height=_BAR_PX, rx=3)
    text = element("text", label, x=left + 5, y=top + _BAR_PX / 2 + 4)
    return element("g", element("title", title), box, text)


def _ticks(places: dict[int, float], height: int, width: float) -> Iterator[Markup]:
    shown = -math.inf
    top = height - _AXIS_PX
    for moment, place in places.items():
        if place - shown < _TICK_SPACE_PX or place + _TICK_SPACE_PX > width + 40:
            continue
        shown = place
        yield element("line", class_="rule", x1=place, x2=place, y1=top, y2=top + 6)
        yield _soft(f"{moment / 1e9:.4f} s", place, height - 8)
