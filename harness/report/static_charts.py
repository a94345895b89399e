"""One inline SVG of throughput, latency quantiles, faults and leaders. Pure.

For a page without scripts, and a set-up without the chart library; coarser than the live charts.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from splitbrain.harness.report.chart_data import Band, ShownReign, Throughput
from splitbrain.harness.report.svg import element, picture

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

    parts: list[Markup] = []
    for band in bands:
        left = x(band.start_s)
        width = max(x(band.end_s) - left, 1.5)
        parts += [
            element("rect", class_="band", x=left, y=0, width=width, height=height - 24),
            element("text", band.label, x=left + 3, y=12 + 14 * band.row),
        ]
    step = math.ceil(len(figures.times_s) / STRETCHES_MAX)
    parts.append(_throughput_panel(figures, step, x, top=_GAP_PX))
    parts.append(_latency_panel(figures, step, x, top=_PANEL_PX + 2 * _GAP_PX))
    parts.append(_lanes(reigns, nodes, x, top=2 * (_PANEL_PX + _GAP_PX) + 12))
    for tick in range(6):
        time_s = end_s * tick / 5
        parts.append(_soft(f"{round(time_s, 1)} s", x(time_s), height - 6, "middle"))
    label = "Throughput, latency quantiles and leaders over time, with the faults as bands."
    return picture(_WIDTH_PX, height, label, *parts)


def _soft(text: str, x: float, y: float, anchor: str | None = None) -> Markup:
    return element("text", text, class_="soft", x=x, y=y, text_anchor=anchor)


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
    bottom = top + _PANEL_PX
    return Markup().join(
        [
            element("line", class_="rule", x1=_LEFT_PX, x2=_WIDTH_PX, y1=bottom, y2=bottom),
            _soft(title, _LEFT_PX, top - 4),
            _soft(high, _LEFT_PX - 6, top + 10, "end"),
            _soft(low, _LEFT_PX - 6, bottom, "end"),
        ]
    )


def _curve(runs: Sequence[Sequence[tuple[float, float]]], name: str) -> Markup:
    path = " ".join(
        ("M" if number == 0 else "L") + f"{px:.1f} {py:.1f}"
        for run in runs
        for number, (px, py) in enumerate(run)
    )
    return element("path", class_=f"curve line-{name}", d=path)


def _lanes(
    reigns: Sequence[ShownReign], nodes: Sequence[str], x: Callable[[float], float], *, top: float
) -> Markup:
    parts = [
        _soft(node, _LEFT_PX - 6, top + lane * _LANE_PX + 19, "end")
        for lane, node in enumerate(nodes)
    ]
    for reign in reigns:
        if reign.node not in nodes:
            continue
        box = element(
            "rect",
            class_=f"reign e{reign.epoch % _EPOCH_COLORS}{' clash' if reign.clash else ''}",
            x=x(reign.start_s),
            y=top + nodes.index(reign.node) * _LANE_PX + 3,
            width=max(x(reign.end_s) - x(reign.start_s), 1.5),
            height=_LANE_PX - 6,
            rx=3,
        )
        title = element("title", f"{reign.node} leads epoch {reign.epoch}")
        parts.append(element("g", title, box))
    return Markup().join(parts)
