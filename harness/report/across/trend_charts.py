"""The trends as the page's script draws them: one record that becomes the JSON inside it. Pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from splitbrain.harness.console.plain_text import value_text
from splitbrain.harness.report.across.trends import Trend, levels_of, shown_range
from splitbrain.harness.report.across.words import SHARES, change_text

#: Longer ids are cut; a lake may hold anything.
_ID_CHARACTERS_MAX: Final = 80


class ChartLevel(msgspec.Struct, frozen=True):
    """A level and the change that it began with."""

    begin: int
    end: int
    middle: float
    #: Of the change; None for the first level.
    told: str | None
    worse: bool


class TrendChart(msgspec.Struct, frozen=True):
    """One trend; the lists have one entry per run, in the order of their starts."""

    unit: Literal["share", "ms"]
    low: float
    high: float
    run_ids: list[str]
    #: Seconds since 1970, UTC.
    started_s: list[int]
    values: list[float]
    levels: list[ChartLevel]


def trend_charts(trends: Sequence[Trend]) -> list[TrendChart]:
    """What is drawn of each trend."""
    return [_chart(trend) for trend in trends]


def shown_id(run_id: str) -> str:
    """A run's id, printable and of bounded length."""
    return value_text(run_id, _ID_CHARACTERS_MAX)


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
