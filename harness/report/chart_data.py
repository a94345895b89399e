"""What the charts draw, as one record that becomes the JSON inside the page. Pure."""

from collections.abc import Sequence

import msgspec

from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.series import LatencySeries, Throughput
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.leadership import Reign

_NS_PER_S = 1e9
#: Bands and reigns drawn at most; the tables below the charts go on.
BANDS_MAX = 400
REIGNS_MAX = 2_000
#: Rows of band labels before they overlap.
_LABEL_ROWS_MAX = 4


class Band(msgspec.Struct, frozen=True):
    """One fault's time in force."""

    index: int
    kind: str
    label: str
    start_s: float
    end_s: float
    verified: bool
    #: Line of its label, so that labels of overlapping faults do not.
    row: int


class ShownReign(msgspec.Struct, frozen=True):
    """One node's belief to lead one epoch."""

    node: str
    epoch: int
    start_s: float
    end_s: float
    #: Another node believed to lead the same epoch: never harmless.
    clash: bool


class ChartData(msgspec.Struct, frozen=True):
    """Everything that the page's script reads."""

    end_s: float
    nodes: list[str]
    latency: list[LatencySeries]
    throughput: Throughput
    faults: list[Band]
    reigns: list[ShownReign]


def bands(windows: Sequence[FaultWindow]) -> list[Band]:
    """Fault windows with labels and label rows, in the order of their start."""
    free_from = [float("-inf")] * _LABEL_ROWS_MAX
    shown: list[Band] = []
    for window in windows[:BANDS_MAX]:
        start_s, end_s = window.start / _NS_PER_S, window.end / _NS_PER_S
        row = next((row for row, free in enumerate(free_from) if free <= start_s), 0)
        free_from[row] = end_s
        nodes = ", ".join(window.nodes)
        label = printable(f"{window.kind} {nodes}" + ("" if window.verified else " (did not bite)"))
        shown.append(
            Band(window.index, printable(window.kind), label, start_s, end_s, window.verified, row)
        )
    return shown


def shown_reigns(
    reigns: Sequence[Reign], end_time: int, *, from_outside: bool = False
) -> list[ShownReign]:
    """Reigns in seconds, with clashes of one epoch marked.

    Those never stamped are left out; those that never ended end with the run, at ``end_time``.
    Of what was seen ``from_outside`` none is marked: who answers and who believes are not the same.
    """
    leaders: dict[int, set[str]] = {}
    for reign in reigns:
        leaders.setdefault(reign.epoch, set()).add(reign.node)
    return [
        ShownReign(
            node=reign.node,
            epoch=reign.epoch,
            start_s=reign.start / _NS_PER_S,
            end_s=max(reign.start, end_time if reign.end is None else reign.end) / _NS_PER_S,
            clash=not from_outside and len(leaders[reign.epoch]) > 1,
        )
        for reign in reigns[:REIGNS_MAX]
        if reign.start is not None
    ]
