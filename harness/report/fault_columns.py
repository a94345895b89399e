"""Columns of the table of faults: the same on the terminal, in ``summary.md`` and on the page.

A further column is a further row of ``FAULT_COLUMNS``. Decides nothing.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from splitbrain.harness.folder.results import FaultResult

#: Colour of a cell, a class of the page.
Tone = Literal["", "yes", "no", "doubt", "soft"]
#: Explanation of the mark behind a node, below a table of faults.
LEADER_NOTE: Final = "* led when the fault came"


class FaultColumn(msgspec.Struct, frozen=True):
    """One column."""

    title: str
    #: Content of a fault's cell: text, milliseconds since the run's start, or None for nothing.
    cell: Callable[[FaultResult], str | int | None]
    tone: Callable[[FaultResult], Tone] = lambda _fault: ""
    is_figure: bool = False
    #: Broken into lines where there is no room; the other columns never are.
    is_wide: bool = False
    #: Left out where a line has room for little.
    is_on_page_only: bool = False

    def text(self, fault: FaultResult, digits: int = 1) -> str:
        """Return the cell as unescaped text, times in seconds with so many digits."""
        content = self.cell(fault)
        if isinstance(content, int):
            return f"{content / 1000:.{digits}f} s"
        return content or "-"


def _nodes(fault: FaultResult) -> str:
    return ",".join(f"{node}*" if node == fault.leader else node for node in fault.nodes)


def _took_effect(fault: FaultResult) -> str:
    return "yes" if fault.verified else ("no" if fault.applied else "n/a")


def _healed(fault: FaultResult) -> str | int | None:
    return fault.healed_ms if fault.healed else ("no" if fault.applied else None)


def _noticed(fault: FaultResult) -> str | None:
    if fault.noticed is None:
        return None if fault.notice is None else "unknown"
    return "yes" if fault.noticed else "no"


def _effect(fault: FaultResult) -> str:
    """Return the effects seen, and how the system noticed them; ``unnoticed`` covers the rest."""
    if fault.noticed is None:
        noticed = None if fault.notice is None else f"noticed? {fault.notice}"
    else:
        noticed = f"noticed: {fault.notice}" if fault.noticed else None
    return "; ".join(filter(None, (fault.evidence, noticed)))


FAULT_COLUMNS: Final = (
    FaultColumn("#", lambda fault: str(fault.index), is_figure=True),
    FaultColumn("at", lambda fault: fault.at_ms, is_figure=True),
    FaultColumn("fault", lambda fault: f"{fault.kind}:{fault.target}"),
    FaultColumn("nodes", _nodes),
    FaultColumn(
        "took effect",
        _took_effect,
        lambda fault: "yes" if fault.verified else "doubt" if fault.applied else "soft",
    ),
    FaultColumn("verified", lambda fault: fault.verified_ms, is_figure=True, is_on_page_only=True),
    FaultColumn(
        "healed",
        _healed,
        lambda fault: "no" if fault.applied and not fault.healed else "",
        is_figure=True,
    ),
    FaultColumn("resumed", lambda fault: fault.resumed_ms, is_figure=True, is_on_page_only=True),
    FaultColumn("noticed", _noticed, lambda fault: "doubt" if fault.is_unnoticed else ""),
    FaultColumn("effect seen", _effect, is_wide=True),
)
SHORT_COLUMNS: Final = tuple(column for column in FAULT_COLUMNS if not column.is_on_page_only)


def hit_a_leader(faults: Iterable[FaultResult]) -> bool:
    """Return whether a node is marked."""
    return any(fault.leader in fault.nodes for fault in faults if fault.leader)
