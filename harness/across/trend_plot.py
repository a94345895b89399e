"""Draws one trend as an inline SVG: runs in their order, levels, and where they changed. Pure.

Runs stand at equal distances, as the search for changes sees them; dates are told below. Needs no
script, and takes its colours from the page.
"""

from itertools import pairwise
from statistics import median
from typing import Final

from markupsafe import Markup

from harness.across.findings import Change, Point, Trend
from harness.across.words import MEASURES, change_text, moment, value_text

_WIDTH: Final = 520
_HEIGHT: Final = 190
_LEFT: Final = 84
_RIGHT: Final = 14
_TOP: Final = 20
_BOTTOM: Final = 30


def draw_trend(trend: Trend) -> Markup:
    """The plot of one trend, which has at least one point."""
    values = [point.value for point in trend.points]
    low, high = _range(values)

    def x(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / len(values)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    name = MEASURES.get(trend.measure, trend.measure)
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="trend" viewBox="0 0 {w} {h}" '
            'role="img" aria-label="{label}">'
        ).format(w=_WIDTH, h=_HEIGHT, label=f"{name} of {trend.title}, {len(values)} runs")
    ]
    parts += [
        Markup(
            '<line class="grid" x1="{x1}" x2="{x2}" y1="{y:.1f}" y2="{y:.1f}"/>'
            '<text class="soft" x="{tx}" y="{ty:.1f}" text-anchor="end">{text}</text>'
        ).format(
            x1=_LEFT,
            x2=_WIDTH - _RIGHT,
            y=y(value),
            tx=_LEFT - 6,
            ty=y(value) + 4,
            text=value_text(trend.measure, value),
        )
        for value in (low, (low + high) / 2, high)
    ]
    place_of = {point.run_id: place for place, point in enumerate(trend.points)}
    edges = [0, *(place_of[one.run_id] for one in trend.changes if one.run_id in place_of)]
    for begin, end in pairwise([*edges, len(values)]):
        parts.append(
            Markup(
                '<line class="level" x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            ).format(a=x(begin - 0.5), b=x(end - 0.5), y=y(median(values[begin:end])))
        )
    parts += [
        _change(change, x(place_of[change.run_id] - 0.5))
        for change in trend.changes
        if change.run_id in place_of
    ]
    parts += [
        _point(trend.measure, point, x(place), y(point.value))
        for place, point in enumerate(trend.points)
    ]
    ends = ((_LEFT, "start", trend.points[0]), (_WIDTH - _RIGHT, "end", trend.points[-1]))
    for at, anchor, point in ends if len(values) > 1 else ends[:1]:
        parts.append(
            Markup(
                '<text class="soft" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
            ).format(x=at, y=_HEIGHT - 8, anchor=anchor, text=moment(point.started_at))
        )
    return Markup().join([*parts, Markup("</svg>")])


def _change(change: Change, x: float) -> Markup:
    return Markup(
        '<line class="change {which}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}">'
        "<title>{told}</title></line>"
    ).format(
        which="worse" if change.worse else "better",
        x=x,
        top=_TOP - 12,
        bottom=_HEIGHT - _BOTTOM,
        told=change_text(change),
    )


def _point(measure: str, point: Point, x: float, y: float) -> Markup:
    return Markup(
        '<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="2.4">'
        "<title>{run}: {value}</title></circle>"
    ).format(x=x, y=y, run=point.run_id, value=value_text(measure, point.value))


def _range(values: list[float]) -> tuple[float, float]:
    """What the axis shows; a flat trend stands in its middle."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or max(abs(high) * 0.1, 0.01)
    return max(low - margin, 0.0) if low >= 0 else low - margin, high + margin
