"""Trends of the findings over all runs, their levels, and each as an inline SVG. Pure.

The static picture is for a page without scripts, a printer, and a set-up without the chart library.
Its runs stand at equal distances, as the search for changes sees them.
"""

from itertools import groupby, pairwise
from statistics import median
from typing import Final

import msgspec
from markupsafe import Markup

from splitbrain.contracts.analysis.across import Change, Findings, Point, TrendName
from splitbrain.contracts.words import counted
from splitbrain.harness.report.across.words import MEASURES, SHARES, change_text, moment, value_text
from splitbrain.harness.report.svg import element, picture

#: Margin above and below the values, as a share of their range.
_MARGIN: Final = 0.08


class Trend(msgspec.Struct, frozen=True):
    """One trend with its changes."""

    measure: str
    title: str
    points: list[Point]
    changes: list[Change]

    @property
    def name(self) -> str:
        """Return the measure in words."""
        return MEASURES.get(self.measure, self.measure)

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        return value_text(self.measure, value)

    @property
    def is_worse(self) -> bool:
        """Return whether it became worse."""
        return any(change.worse for change in self.changes)


def trends_of(findings: Findings) -> list[Trend]:
    """Return each trend with its changes; those that became worse first, then by name."""
    found: list[Trend] = []
    for name, points in groupby(findings.points.rows, _name):
        own = [change for change in findings.changes.rows if _name(change) == name]
        own.sort(key=lambda change: (change.started_at, change.run_id))
        found.append(Trend(name[3], " · ".join(name[:3]), list(points), own))
    return sorted(
        found, key=lambda trend: (not trend.is_worse, not trend.changes, trend.title, trend.measure)
    )


def _name(trend: TrendName) -> tuple[str, str, str, str]:
    return trend.system, trend.workload, trend.runtime, trend.measure


class Level(msgspec.Struct, frozen=True):
    """Consecutive runs between which nothing changed."""

    #: Places in the trend's points, the second behind the last.
    begin: int
    end: int
    middle: float
    #: Change at its begin; None for the first.
    change: Change | None


def levels_of(trend: Trend) -> list[Level]:
    """Return the levels of a trend with at least one point, in the order of its runs."""
    place_of = {point.run_id: place for place, point in enumerate(trend.points)}
    # A change before the first shown run is not in the picture.
    known = [
        (place_of[change.run_id], change) for change in trend.changes if place_of.get(change.run_id)
    ]
    begins: list[tuple[int, Change | None]] = [(0, None), *known]
    ends = [*begins, (len(trend.points), None)]
    return [
        Level(begin, end, median(point.value for point in trend.points[begin:end]), change)
        for (begin, change), (end, _) in pairwise(ends)
    ]


def shown_range(trend: Trend) -> tuple[float, float]:
    """Return the ends of the axis; a flat trend stands in its middle.

    No axis goes below 0 without need, nor that of a share above 1.
    """
    values = [point.value for point in trend.points]
    low, high = min(values), max(values)
    margin = (high - low) * _MARGIN or max(abs(high) * 0.1, 0.01)
    top = high + margin
    if trend.measure in SHARES and high <= 1:
        top = min(top, 1.0)
    return (max(low - margin, 0.0) if low >= 0 else low - margin), top


_WIDTH: Final = 520
_HEIGHT: Final = 200
_LEFT: Final = 84
_RIGHT: Final = 14
_TOP: Final = 26
_BOTTOM: Final = 30


def draw_trend(trend: Trend) -> Markup:
    """Return the plot of one trend, which has at least one point."""
    count = len(trend.points)
    low, high = shown_range(trend)

    def x(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / count

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    middle = (low + high) / 2
    parts = [_mark(trend.text(value), y(value)) for value in (low, middle, high)]
    for level in levels_of(trend):
        begin, end, height = x(level.begin - 0.5), x(level.end - 0.5), y(level.middle)
        parts.append(element("line", class_="level", x1=begin, x2=end, y1=height, y2=height))
        if level.change:
            parts.append(_change(level.change, begin))
    dots = "".join(
        f"M{x(place):.1f} {y(point.value):.1f}h0" for place, point in enumerate(trend.points)
    )
    parts.append(element("path", class_="points", d=dots))
    ends = ((_LEFT, "start", trend.points[0]), (_WIDTH - _RIGHT, "end", trend.points[-1]))
    for at, anchor, point in ends if count > 1 else ends[:1]:
        parts.append(_soft(moment(point.started_at), at, _HEIGHT - 8, anchor))
    label = f"{trend.name} of {trend.title}, {counted(count, 'run')}"
    return picture(_WIDTH, _HEIGHT, label, *parts, class_="trend")


def _soft(text: str, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, class_="soft", x=x, y=y, text_anchor=anchor)


def _mark(text: str, y: float) -> Markup:
    line = element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y)
    return line + _soft(text, _LEFT - 6, y + 4, "end")


def _change(change: Change, x: float) -> Markup:
    which = "worse" if change.worse else "better"
    title = element("title", change_text(change))
    # The word stands on that side of the line where there is room.
    at, anchor = (x - 4, "end") if x > _WIDTH / 2 else (x + 4, "start")
    top, bottom = _TOP - 18, _HEIGHT - _BOTTOM
    return element(
        "line", title, class_=f"change {which}", x1=x, x2=x, y1=top, y2=bottom
    ) + element("text", which, class_=which, x=at, y=_TOP - 8, text_anchor=anchor)
