"""Draws one trend as an inline SVG: runs in their order, levels, and where they changed. Pure.

The picture for a page without scripts, for a printer, and for a set-up whose chart library is
missing. Runs stand at equal distances, as the search for changes sees them; dates are told below.
It names no run, so that it stays small: the table beside it does.
"""

from typing import Final

from markupsafe import Markup

from splitbrain.contracts.analysis.across import Change
from splitbrain.harness.folder.results import counted
from splitbrain.harness.report.across.trends import Trend, levels_of, shown_range
from splitbrain.harness.report.across.words import MEASURES, change_text, moment, value_text

_WIDTH: Final = 520
_HEIGHT: Final = 200
_LEFT: Final = 84
_RIGHT: Final = 14
_TOP: Final = 26
_BOTTOM: Final = 30


def draw_trend(trend: Trend) -> Markup:
    """The plot of one trend, which has at least one point."""
    count = len(trend.points)
    low, high = shown_range(trend)

    def x(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / count

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    name = MEASURES.get(trend.measure, trend.measure)
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="trend" viewBox="0 0 {w} {h}" '
            'role="img" aria-label="{label}">'
        ).format(w=_WIDTH, h=_HEIGHT, label=f"{name} of {trend.title}, {counted(count, 'run')}")
    ]
    parts += [
        _mark(value_text(trend.measure, value), y(value)) for value in (low, (low + high) / 2, high)
    ]
    for level in levels_of(trend):
        parts.append(
            Markup(
                '<line class="level" x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            ).format(a=x(level.begin - 0.5), b=x(level.end - 0.5), y=y(level.middle))
        )
        if level.change:
            parts.append(_change(level.change, x(level.begin - 0.5)))
    dots = "".join(
        f"M{x(place):.1f} {y(point.value):.1f}h0" for place, point in enumerate(trend.points)
    )
    parts.append(Markup('<path class="points" d="{dots}"/>').format(dots=dots))
    ends = ((_LEFT, "start", trend.points[0]), (_WIDTH - _RIGHT, "end", trend.points[-1]))
    for at, anchor, point in ends if count > 1 else ends[:1]:
        parts.append(
            Markup(
                '<text class="soft" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
            ).format(x=at, y=_HEIGHT - 8, anchor=anchor, text=moment(point.started_at))
        )
    return Markup().join([*parts, Markup("</svg>")])


def _mark(text: str, y: float) -> Markup:
    return Markup(
        '<line class="grid" x1="{x1}" x2="{x2}" y1="{y:.1f}" y2="{y:.1f}"/>'
        '<text class="soft" x="{tx}" y="{ty:.1f}" text-anchor="end">{text}</text>'
    ).format(x1=_LEFT, x2=_WIDTH - _RIGHT, y=y, tx=_LEFT - 6, ty=y + 4, text=text)


def _change(change: Change, x: float) -> Markup:
    which = "worse" if change.worse else "better"
    # The word stands on that side of the line where there is room.
    is_late = x > _WIDTH / 2
    return Markup(
        '<line class="change {which}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}">'
        "<title>{told}</title></line>"
        '<text class="{which}" x="{tx:.1f}" y="{ty}" text-anchor="{anchor}">{which}</text>'
    ).format(
        which=which,
        x=x,
        top=_TOP - 18,
        bottom=_HEIGHT - _BOTTOM,
        told=change_text(change),
        tx=x - 4 if is_late else x + 4,
        ty=_TOP - 8,
        anchor="end" if is_late else "start",
    )
