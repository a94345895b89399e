"""One inline SVG of throughput, latency quantiles, faults and leaders. Pure.

For a page without scripts, and a set-up without the chart library. Coarser than the live charts and
never larger: at most ``STRETCHES_MAX`` points per curve.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from splitbrain.harness.report.chart_data import Band, ShownReign, Throughput

STRETCHES_MAX = 300
_WIDTH_PX = 1040
_LEFT_PX = 64
_PANEL_PX = 130
_GAP_PX = 34
_LANE_PX = 30
_EPOCH_COLORS = 6


def draw_static_charts(
    figures: Throughput,
    bands: Sequence[Band],
    reigns: Sequence[ShownReign],
    nodes: Sequence[str],
    end_s: float,
) -> Markup:
    """Draw all panels above each other on one time axis."""
    height = 2 * (_PANEL_PX + _GAP_PX) + _LANE_PX * len(nodes) + 40

    def x(time_s: float) -> float:
        share = min(max(time_s / end_s, 0.0), 1.0) if end_s > 0 else 0.0
        return _LEFT_PX + share * (_WIDTH_PX - _LEFT_PX - 10)

    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            'viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
        ).format(
            w=_WIDTH_PX,
            h=height,
            label="Throughput, latency quantiles and leaders over time, with the faults as bands.",
        )
    ]
    parts += [
        Markup(
            '<rect class="band" x="{x:.1f}" y="0" width="{w:.1f}" height="{h}"/>'
            '<text x="{tx:.1f}" y="{ty}">{label}</text>'
        ).format(
            x=x(band.start_s),
            w=max(x(band.end_s) - x(band.start_s), 1.5),
            h=height - 24,
            tx=x(band.start_s) + 3,
            ty=12 + 14 * band.row,
            label=band.label,
        )
        for band in bands
    ]
    step = math.ceil(len(figures.times_s) / STRETCHES_MAX)
    parts.append(_throughput_panel(figures, step, x, top=_GAP_PX))
    parts.append(_latency_panel(figures, step, x, top=_PANEL_PX + 2 * _GAP_PX))
    parts.append(_lanes(reigns, nodes, x, top=2 * (_PANEL_PX + _GAP_PX) + 12))
    for tick in range(6):
        time_s = end_s * tick / 5
        parts.append(
            Markup(
                '<text class="soft" x="{x:.1f}" y="{y}" text-anchor="middle">{t} s</text>'
            ).format(x=x(time_s), y=height - 6, t=round(time_s, 1))
        )
    return Markup().join([*parts, Markup("</svg>")])


def _throughput_panel(
    figures: Throughput, step: int, x: Callable[[float], float], *, top: float
) -> Markup:
    highest = max([*figures.ok, *figures.fail, *figures.info, 1.0])
    parts = [_panel_title("operations per second", f"{highest:,.0f}", "0", top)]
    for name, rates in (("ok", figures.ok), ("fail", figures.fail), ("info", figures.info)):
        points = [
            (
                x(figures.times_s[place]),
                top + _PANEL_PX * (1 - max(rates[place : place + step]) / highest),
            )
            for place in range(0, len(rates), step)
        ]
        parts.append(_curve([points], name))
    return Markup().join(parts)


def _latency_panel(
    figures: Throughput, step: int, x: Callable[[float], float], *, top: float
) -> Markup:
    known = [value for value in (*figures.p50_ms, *figures.p99_ms) if value is not None]
    if not known:
        return Markup()
    low, high = math.log10(min(known)), math.log10(max(known))
    spread = max(high - low, 0.1)
    parts = [_panel_title("latency, p50 and p99", f"{10**high:,.3g} ms", f"{10**low:,.3g} ms", top)]
    for name, values in (("p50", figures.p50_ms), ("p99", figures.p99_ms)):
        runs: list[list[tuple[float, float]]] = [[]]
        for place in range(0, len(values), step):
            present = [value for value in values[place : place + step] if value is not None]
            if not present:
                runs.append([])  # an outage is a gap, not a line across it
                continue
            share = (math.log10(max(present)) - low) / spread
            runs[-1].append((x(figures.times_s[place]), top + _PANEL_PX * (1 - share)))
        parts.append(_curve(runs, name))
    return Markup().join(parts)


def _panel_title(title: str, high: str, low: str, top: float) -> Markup:
    return Markup(
        '<line class="rule" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        '<text class="soft" x="{left}" y="{title_y}">{title}</text>'
        '<text class="soft" x="{label_x}" y="{high_y}" text-anchor="end">{high}</text>'
        '<text class="soft" x="{label_x}" y="{bottom}" text-anchor="end">{low}</text>'
    ).format(
        left=_LEFT_PX,
        right=_WIDTH_PX,
        bottom=top + _PANEL_PX,
        title=title,
        title_y=top - 4,
        label_x=_LEFT_PX - 6,
        high=high,
        high_y=top + 10,
        low=low,
    )


def _curve(runs: Sequence[Sequence[tuple[float, float]]], name: str) -> Markup:
    path = " ".join(
        ("M" if number == 0 else "L") + f"{px:.1f} {py:.1f}"
        for run in runs
        for number, (px, py) in enumerate(run)
    )
    return Markup('<path class="curve line-{name}" d="{path}"/>').format(name=name, path=path)


def _lanes(
    reigns: Sequence[ShownReign], nodes: Sequence[str], x: Callable[[float], float], *, top: float
) -> Markup:
    parts: list[Markup] = []
    for lane, node in enumerate(nodes):
        parts.append(
            Markup('<text class="soft" x="{x}" y="{y}" text-anchor="end">{node}</text>').format(
                x=_LEFT_PX - 6, y=top + lane * _LANE_PX + 19, node=node
            )
        )
    for reign in reigns:
        if reign.node not in nodes:
            continue
        parts.append(
            Markup(
                '<g><title>{title}</title><rect class="reign e{color}{clash}" x="{x:.1f}" y="{y}" '
                'width="{w:.1f}" height="{h}" rx="3"/></g>'
            ).format(
                title=f"{reign.node} leads epoch {reign.epoch}",
                color=reign.epoch % _EPOCH_COLORS,
                clash=" clash" if reign.clash else "",
                x=x(reign.start_s),
                y=top + nodes.index(reign.node) * _LANE_PX + 3,
                w=max(x(reign.end_s) - x(reign.start_s), 1.5),
                h=_LANE_PX - 6,
            )
        )
    return Markup().join(parts)
