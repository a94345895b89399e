"""Trends out of the findings over all runs, their levels, and the range that a picture shows. Pure.

Both pictures, the live one and the one that stands still, and the table beside them use these.
"""

from itertools import groupby, pairwise
from statistics import median
from typing import Final

import msgspec

from splitbrain.contracts.analysis.across import Change, Findings, Point, TrendName
from splitbrain.harness.report.across.words import SHARES

#: Room above and below the values, as a share of what they span.
_MARGIN: Final = 0.08


class Trend(msgspec.Struct, frozen=True):
    """One trend with its changes."""

    measure: str
    title: str
    points: list[Point]
    changes: list[Change]

    @property
    def is_worse(self) -> bool:
        """Whether it became worse."""
        return any(change.worse for change in self.changes)


def trends_of(findings: Findings) -> list[Trend]:
    """Each trend with its changes; those that became worse first, then by name."""
    found: list[Trend] = []
    for name, points in groupby(findings.points.rows, _name):
        own = [change for change in findings.changes.rows if _name(change) == name]
        own.sort(key=lambda change: (change.started_at, change.run_id))
        found.append(Trend(name[3], " · ".join(name[:3]), list(points), own))
    return sorted(
        found, key=lambda one: (not one.is_worse, not one.changes, one.title, one.measure)
    )


def _name(one: TrendName) -> tuple[str, str, str, str]:
    return one.system, one.workload, one.runtime, one.measure


class Level(msgspec.Struct, frozen=True):
    """Runs one after the other between which nothing changed."""

    #: Places in the trend's points, the second behind the last.
    begin: int
    end: int
    #: Of the values of these runs.
    middle: float
    #: What it began with; None for the first.
    change: Change | None


def levels_of(trend: Trend) -> list[Level]:
    """The levels of a trend with at least one point, in the order of its runs."""
    place_of = {point.run_id: place for place, point in enumerate(trend.points)}
    # A change before the first run that is shown is no longer in the picture.
    known = [(place_of[one.run_id], one) for one in trend.changes if place_of.get(one.run_id)]
    begins: list[tuple[int, Change | None]] = [(0, None), *known]
    ends = [*begins, (len(trend.points), None)]
    return [
        Level(begin, end, median(point.value for point in trend.points[begin:end]), change)
        for (begin, change), (end, _) in pairwise(ends)
    ]


def shown_range(trend: Trend) -> tuple[float, float]:
    """Lowest and highest value of the axis; a flat trend stands in its middle.

    No axis goes below 0 without need, nor that of a share above 1.
    """
    values = [point.value for point in trend.points]
    low, high = min(values), max(values)
    margin = (high - low) * _MARGIN or max(abs(high) * 0.1, 0.01)
    top = high + margin
    if trend.measure in SHARES and high <= 1:
        top = min(top, 1.0)
    return (max(low - margin, 0.0) if low >= 0 else low - margin), top
