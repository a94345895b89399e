"""Losses by the node that acknowledged them and the fault that they fall to. Pure.

A loss falls to the fault in force at that moment, else to the nearest one; a fault that hit the
acknowledging node comes before one that hit others. That says where to look and proves no cause.
Faults that found no target are left out. ``lists`` of a result names every loss, also those of an
unknown node or fault; its violations describe only the first.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.records import PairedOperation

When = Literal["during", "after", "before"]


class Attribution(msgspec.Struct, frozen=True):
    """Position of a moment relative to one fault."""

    fault: FaultWindow
    when: When
    #: Time from the fault's end or to its start; 0 during it.
    distance_ns: int


def attribute(windows: Sequence[FaultWindow], time: int, node: str | None) -> Attribution | None:
    """Return the fault to which a moment on a node falls; None if there was no fault at all."""
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


#: Names of the lists in ``CheckResult.lists``: every single loss, and counts by node and fault.
LOST_LIST = "lost"
BY_FAULT_LIST = "lost-by-fault"
LISTED_MAX = 100_000
#: Groups of losses in a sentence.
_GROUPS_SHOWN_MAX = 4
_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000


class _Group(msgspec.Struct):
    node: str | None
    fault: FaultWindow | None
    when: When | None
    count: int = 0
    distance_ns_max: int = 0

    def clause(self) -> str:
        """Return ``602 acknowledged by n1 during fault 0 (partition:leader on n1)``."""
        by = "by an unknown node" if self.node is None else f"by {self.node}"
        return f"{self.count:,} {by} {self._where()}"

    def _where(self) -> str:
        if self.fault is None:
            return "without any fault"
        if self.when == "during":
            return f"during {self.fault.name}"
        seconds = self.distance_ns_max / _NS_PER_S
        return f"up to {seconds:.1f} s {self.when} {self.fault.name}"


class Losses:
    """All losses of one run."""

    def __init__(self, faults: Sequence[FaultWindow]) -> None:
        self._faults = faults
        self._groups: dict[tuple[str | None, int | None, When | None], _Group] = {}
        self._rows: list[dict[str, Any]] = []
        #: Acknowledged losses; the others were only seen.
        self.acknowledged = 0

    def add(
        self, operation: PairedOperation | None, value: Any, key: str | None, time: int | None
    ) -> str:
        """Count one loss; return where and when it was acknowledged, in words, or nothing.

        Args:
            operation: the lost change; None or unanswered if it was only seen.
            value: the lost value.
            key: its object.
            time: when it was known to be there, ns since the run's start; None if unknown.
        """
        acknowledged = operation is not None and operation.type == "ok"
        node = operation.node if operation is not None and acknowledged else None
        found = None if time is None else attribute(self._faults, time, node)
        row: dict[str, Any] = {"key": key, "value": value, "acknowledged": acknowledged}
        if operation is not None:
            row["index"] = operation.index
        if time is not None:
            row["time_ms"] = time // _NS_PER_MS
        row["node"] = node
        if found is not None:
            row["fault"], row["when"] = found.fault.index, found.when
        if len(self._rows) < LISTED_MAX:
            self._rows.append(row)
        if acknowledged:
            self.acknowledged += 1
            self._count(node, found)
        return _circumstances(node, found)

    def clauses(self) -> str:
        """Return the groups in words, by node and fault; empty without faults."""
        groups = self._sorted()
        if all(group.fault is None for group in groups):
            return ""
        clauses = [group.clause() for group in groups[:_GROUPS_SHOWN_MAX]]
        clauses[0] = clauses[0].replace(" by ", " acknowledged by ", 1)
        rest = sum(group.count for group in groups[_GROUPS_SHOWN_MAX:])
        return "; ".join([*clauses, *([f"{rest:,} elsewhere"] if rest else [])])

    def figures(self) -> dict[str, Any]:
        """Return how many acknowledged losses fall into a fault; empty without losses."""
        if not self.acknowledged:
            return {}
        during = sum(group.count for group in self._groups.values() if group.when == "during")
        return {"lost-during-faults": during, "lost-outside-faults": self.acknowledged - during}

    def lists(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """Return every loss by invocation, and the groups, largest first; empty without losses."""
        if not self._rows:
            return {}
        by_fault = tuple(
            {
                "fault": None if group.fault is None else group.fault.index,
                "when": group.when,
                "node": group.node,
                "count": group.count,
            }
            for group in self._sorted()
        )
        rows = sorted(self._rows, key=lambda row: row.get("index", -1))
        return {LOST_LIST: tuple(rows), BY_FAULT_LIST: by_fault}

    def _count(self, node: str | None, found: Attribution | None) -> None:
        fault = None if found is None else found.fault
        when = None if found is None else found.when
        group = self._groups.setdefault(
            (node, None if fault is None else fault.index, when), _Group(node, fault, when)
        )
        group.count += 1
        if found is not None:
            group.distance_ns_max = max(group.distance_ns_max, found.distance_ns)

    def _sorted(self) -> list[_Group]:
        return sorted(self._groups.values(), key=lambda group: -group.count)


def _circumstances(node: str | None, found: Attribution | None) -> str:
    by = "" if node is None else f" by {node}"
    if found is None:
        return by
    if found.when == "during":
        return f"{by} during {found.fault.name}"
    return f"{by} {found.distance_ns / _NS_PER_S:.1f} s {found.when} {found.fault.name}"
