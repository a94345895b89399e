"""The page over all runs: the template of ``harness/report/assets`` filled with findings.

Everything in a lake may be hostile: text is escaped by the template engine or put into the data by
``page_assets``. The size of the page is bounded whatever that of the lake.
"""

from pathlib import Path
from typing import Final, Literal

import msgspec
from markupsafe import Markup

from splitbrain.contracts.analysis.across import Change, Findings, Point
from splitbrain.contracts.words import counted
from splitbrain.harness.console import plain_text
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.across.matrix import matrix_of
from splitbrain.harness.report.across.trends import (
    Trend,
    draw_trend,
    levels_of,
    shown_range,
    trends_of,
)
from splitbrain.harness.report.across.words import (
    HEADER,
    SHARES,
    change_text,
    failure_title,
    flake_text,
    flake_title,
    headline,
    met_rows,
    moment,
)
from splitbrain.harness.report.coverage_tables import NOTE
from splitbrain.harness.report.page_assets import VENDOR, json_for_script, render_page

#: Longer ids are cut; a lake may hold anything.
_ID_CHARACTERS_MAX: Final = 80


class ChartLevel(msgspec.Struct, frozen=True):
    """A level and the change that it began with."""

    begin: int
    end: int
    middle: float
    #: The change in words; None for the first level.
    text: str | None
    worse: bool


class TrendChart(msgspec.Struct, frozen=True):
    """One trend; the lists have one entry per run, by start."""

    unit: Literal["share", "ms"]
    low: float
    high: float
    run_ids: list[str]
    #: Seconds since 1970, UTC.
    started_s: list[int]
    values: list[float]
    levels: list[ChartLevel]


def shown_id(run_id: str) -> str:
    """Return a run's id, printable and of bounded length."""
    return plain_text.value_text(run_id, _ID_CHARACTERS_MAX)


def _chart(trend: Trend) -> TrendChart:
    low, high = shown_range(trend)
    return TrendChart(
        unit="share" if trend.measure in SHARES else "ms",
        low=low,
        high=high,
        run_ids=[shown_id(point.run_id) for point in trend.points],
        started_s=[int(point.started_at.timestamp()) for point in trend.points],
        values=[float(f"{point.value:.6g}") for point in trend.points],
        levels=[
            ChartLevel(
                level.begin,
                level.end,
                level.middle,
                change_text(level.change) if level.change else None,
                worse=level.change is not None and level.change.worse,
            )
            for level in levels_of(trend)
        ],
    )


#: Trends with a picture; the others are rows of a table.
CHARTS_MAX: Final = 30
#: Runs in the table beside one picture.
RUN_ROWS_MAX: Final = 25


class ShownTrend(msgspec.Struct, frozen=True):
    """A trend with its static picture and its last runs, the latest first."""

    trend: Trend
    picture: Markup
    #: Each with the change that it brought, if any.
    runs: list[tuple[Point, Change | None]]


def across_page(findings: Findings, *, vendor: Path = VENDOR) -> str:
    """Return the whole page; ``vendor`` is the folder of the chart library."""
    trends = trends_of(findings)
    drawn, others = trends[:CHARTS_MAX], trends[CHARTS_MAX:]
    filters = {
        "printable": printable,
        "moment": moment,
        "change_text": change_text,
        "failure_title": failure_title,
        "flake_text": flake_text,
        "flake_title": flake_title,
        "shown_id": shown_id,
        "counted": counted,
    }
    return render_page(
        "across.html.j2",
        filters,
        scripts=["trends.js"],
        styles=["across.css"],
        vendor=vendor,
        trend_data=json_for_script([_chart(trend) for trend in drawn]),
        headline=headline(findings),
        findings=findings,
        coverage_header=HEADER,
        coverage_note=NOTE,
        coverage=met_rows(findings.coverage.rows),
        trends=[_shown(trend) for trend in drawn],
        other_trends=others,
        more_trends=findings.points.trends - len(trends),
        matrix=matrix_of(findings.matrix.rows),
    )


def _shown(trend: Trend) -> ShownTrend:
    changes = {change.run_id: change for change in trend.changes}
    last = reversed(trend.points[-RUN_ROWS_MAX:])
    runs = [(point, changes.get(point.run_id)) for point in last]
    return ShownTrend(trend, draw_trend(trend), runs)
