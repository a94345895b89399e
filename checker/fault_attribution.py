"""Which fault a moment on a node falls to: the one in force, else the nearest one. Pure.

Told by time and node alone: it says where to look, and proves no cause. Whoever acknowledged counts
first: a fault that hit that node comes before one that hit others. Faults that found no target are
left out. Must never give a moment to a fault that was not injected.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from splitbrain.history.fault_windows import FaultWindow

When = Literal["during", "after", "before"]


class Attribution(msgspec.Struct, frozen=True):
    """Where a moment lies, seen from one fault."""

    fault: FaultWindow
    when: When
    #: Time from the end, or to the start, of the fault; 0 during it.
    distance_ns: int


def attribute(windows: Sequence[FaultWindow], time: int, node: str | None) -> Attribution | None:
    """The fault to which a moment on a node falls; None where there was no fault at all.

    Of the faults in force one that hit the node is taken; with none in force the nearest of those
    that hit the node, before or after; faults of other nodes only where none ever hit this one.
    """
    hit = [window for window in windows if node in window.nodes]
    for candidates in (hit, windows):
        for window in reversed(candidates):
            if window.start <= time <= window.end:
                return Attribution(window, "during", 0)
    return min(
        (_beside(window, time) for window in hit or windows),
        key=lambda found: (found.distance_ns, found.when, -found.fault.index),
        default=None,
    )


def _beside(window: FaultWindow, time: int) -> Attribution:
    if time < window.start:
        return Attribution(window, "before", window.start - time)
    return Attribution(window, "after", time - window.end)
