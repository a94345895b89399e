"""Data of the page's operations view: bars per process around a violation. Pure.

Without a violation it shows the busiest stretch. Unlike the static picture beside it, which
squeezes time so that a few labels can be read, the view has the real axis, faults and leaders as
bands, and a zoom. Bounded, nearest to the violation first; no outlined operation is left out.
"""

import heapq
from collections.abc import Sequence

import msgspec

from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.chart_data import Band, ShownReign
from splitbrain.harness.report.operations_picture import choose, finish, label_of, visited_nodes
from splitbrain.harness.report.violations import (
    CORE_MAX,
    VIEWS_MAX,
    core_operations,
    explained_violations,
    is_timed,
)
from splitbrain.history.records import PairedOperation

OPERATIONS_MAX = 1_500
#: Each outlined operation needs at most one row, so there are rows for all of them.
ROWS_MAX = CORE_MAX
#: The page's assets that the view alone needs.
SCRIPT, STYLE = "operations_view.js", "operations_view.css"
_NAME_CHARACTERS_MAX = 24
_NS_PER_S = 1e9


class ViewData(msgspec.Struct, frozen=True):
    """One violation's view, as columns; becomes JSON in the page."""

    title: str
    #: Object of the operations; None where the history has one only.
    key: str | None
    #: Times are seconds; or, where the history has none, numbers of events.
    timed: bool
    #: First and last moment drawn, and those of the contradicting operations.
    span: tuple[float, float]
    focus: tuple[float, float]
    rows: list[str]
    #: By operation: its row, start, end (null: open), label, index in the history.
    row: list[int]
    start: list[float]
    end: list[float | None]
    label: list[str]
    index: list[int]
    #: By operation: 0 one of many, 1 contradicts, 2 has no place.
    role: list[int]
    #: By operation: ``ok`` or ``info``.
    outcome: list[str]
    #: Faults in force: label, start, end.
    faults: list[tuple[str, float, float]]
    #: Reigns: node, epoch, start, end.
    leaders: list[tuple[str, int, float, float]]
    #: Operations of the same object that are not drawn.
    left_out: int


class OperationsView(msgspec.Struct, frozen=True):
    """The section of the page: the views to choose from."""

    views: list[ViewData]
    #: Whether nothing contradicts: the one view shows the busiest stretch.
    busiest: bool = False


def operations_view(
    operations: Sequence[PairedOperation],
    checkers: Sequence[CheckResult],
    faults: Sequence[Band],
    reigns: Sequence[ShownReign],
) -> OperationsView | None:
    """Return views of the first violations that name operations, else of the busiest stretch.

    None where nothing was answered.
    """
    views: list[ViewData] = []
    for result, _, violation in explained_violations(checkers):
        core = core_operations(violation, operations)[:CORE_MAX]
        if core and len(views) < VIEWS_MAX:
            title = f"{result.checker}: {name_of(result.checker, violation)}"
            views.append(_view(title, core, core[:1], operations, faults, reigns))
    if views:
        return OperationsView(views)
    around = busiest(operations)[:CORE_MAX]
    if not around:
        return None
    view = _view("busiest", around, (), operations, faults, reigns)
    return OperationsView([view], busiest=True)


def _view(
    title: str,
    core: Sequence[PairedOperation],
    culprit: Sequence[PairedOperation],
    operations: Sequence[PairedOperation],
    faults: Sequence[Band],
    reigns: Sequence[ShownReign],
) -> ViewData:
    """Return the view around ``core``, which is outlined if there is a culprit in it."""
    key = core[0].key
    nearest = choose(operations, core, key, OPERATIONS_MAX)
    rows = _rows(core, nearest)
    shown = [operation for operation in nearest if operation.process in rows]
    timed = is_timed(operations)
    unit = _NS_PER_S if timed else 1.0
    begin = min(operation.start for operation in shown) / unit
    end = max(map(finish, shown)) / unit
    contradicting = {operation.index for operation in core} if culprit else set[int]()
    no_place = {operation.index for operation in culprit}
    of_key = sum(operation.key == key and operation.type != "fail" for operation in operations)
    return ViewData(
        title=printable(title if key is None else f"{title} of key {key}"),
        key=None if key is None else printable(key),
        timed=timed,
        span=(begin, end),
        focus=(min(operation.start for operation in core) / unit, max(map(finish, core)) / unit),
        rows=[name for _, name in sorted(rows.values())],
        row=[rows[operation.process][0] for operation in shown],
        start=[operation.start / unit for operation in shown],
        end=[None if operation.end is None else operation.end / unit for operation in shown],
        label=[label_of(operation) for operation in shown],
        index=[operation.index for operation in shown],
        role=[
            2 if operation.index in no_place else int(operation.index in contradicting)
            for operation in shown
        ],
        outcome=[operation.type for operation in shown],
        faults=[
            (band.label, band.start_s, band.end_s)
            for band in faults
            if timed and band.start_s <= end and band.end_s >= begin
        ],
        leaders=[
            (printable(reign.node), reign.epoch, reign.start_s, reign.end_s)
            for reign in reigns
            if timed and reign.start_s <= end and reign.end_s >= begin
        ],
        left_out=max(0, of_key - len(shown)),
    )


def _rows(
    core: Sequence[PairedOperation], nearest: Sequence[PairedOperation]
) -> dict[int, tuple[int, str]]:
    """Return each process' row and name: those that contradict first, then by first operation."""
    nodes = visited_nodes([*core, *nearest])
    names: dict[int, tuple[int, str]] = {}
    for row, (process, node) in enumerate(list(nodes.items())[:ROWS_MAX]):
        name = f"process {process}" + (f" · {printable(node)}" if node else "")
        names[process] = (row, name[:_NAME_CHARACTERS_MAX])
    return names


def busiest(operations: Sequence[PairedOperation]) -> list[PairedOperation]:
    """Return the operations open on one object at the first moment at which most of its were.

    Only answered operations count: those without answer never end, and would make the end of every
    history its busiest moment. Empty where nothing was answered. n log n.
    """
    ends_by_key: dict[str | None, list[int]] = {}
    most, place = 0, None
    answered = [operation for operation in operations if operation.type == "ok"]
    for operation in sorted(answered, key=lambda operation: (operation.start, operation.index)):
        if operation.end is None:
            continue
        ends = ends_by_key.setdefault(operation.key, [])
        while ends and ends[0] < operation.start:
            heapq.heappop(ends)
        heapq.heappush(ends, operation.end)
        if len(ends) > most:
            most, place = len(ends), operation
    if place is None:
        return []
    return [
        operation
        for operation in answered
        if operation.key == place.key
        and operation.end is not None
        and operation.start <= place.start <= operation.end
    ]
