"""Data of the charts, as one record that becomes the JSON inside the page. Pure.

Bounded: points are thinned so that the slowest and the fastest of every stretch stay. Times are in
seconds and milliseconds, since a browser's numbers cannot hold nanoseconds since long ago.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from splitbrain.harness.console.plain_text import printable
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.leadership import Reign
from splitbrain.history.records import Event

_NS_PER_S = 1e9
#: Bands and reigns drawn at most; the tables below the charts go on.
BANDS_MAX = 400
REIGNS_MAX = 2_000
#: Rows of band labels before they overlap.
_LABEL_ROWS_MAX = 4
POINTS_MAX = 20_000
#: Stretches of the throughput chart; each is a whole number of seconds long.
STRETCHES_MAX = 1_200
#: Zero on a log scale.
_LATENCY_MS_MIN = 0.001
_NS_PER_MS = 1e6
OUTCOMES = ("ok", "fail", "info")
#: Later series are drawn over earlier ones: the rare and telling last.
_DRAWING_ORDER = ("fail", "ok", "info")


class Call(msgspec.Struct, frozen=True):
    """One completed operation as the client saw it; unknown outcomes have a length too."""

    kind: str
    outcome: str
    #: Seconds since the run's start.
    start_s: float
    latency_ms: float


class LatencySeries(msgspec.Struct, frozen=True):
    """Points of one kind and outcome, ascending in time."""

    kind: str
    outcome: str
    times_s: list[float]
    latencies_ms: list[float]
    #: Calls that the points stand for.
    count: int


class Throughput(msgspec.Struct, frozen=True):
    """Calls per second, stretch by stretch, by the time of the completion."""

    times_s: list[float]
    stretch_s: int
    ok: list[float]
    fail: list[float]
    info: list[float]
    #: Of the ok ones; None where a stretch has none.
    p50_ms: list[float | None]
    p99_ms: list[float | None]


class Band(msgspec.Struct, frozen=True):
    """One fault's time in force."""

    index: int
    kind: str
    label: str
    start_s: float
    end_s: float
    verified: bool
    #: Row of its label, so that labels of overlapping faults do not overlap.
    row: int


class ShownReign(msgspec.Struct, frozen=True):
    """One node's belief to lead one epoch."""

    node: str
    epoch: int
    start_s: float
    end_s: float
    #: Another node claimed to lead the same epoch: never harmless.
    clash: bool


class ChartData(msgspec.Struct, frozen=True):
    """Everything that the page's script reads."""

    end_s: float
    nodes: list[str]
    latency: list[LatencySeries]
    throughput: Throughput
    faults: list[Band]
    reigns: list[ShownReign]


def bands(windows: Sequence[FaultWindow]) -> list[Band]:
    """Return fault windows with labels and label rows, by start."""
    free_from = [float("-inf")] * _LABEL_ROWS_MAX
    shown: list[Band] = []
    for window in windows[:BANDS_MAX]:
        start_s, end_s = window.start / _NS_PER_S, window.end / _NS_PER_S
        row = next((row for row, free in enumerate(free_from) if free <= start_s), 0)
        free_from[row] = end_s
        nodes = ", ".join(window.nodes)
        label = printable(f"{window.kind} {nodes}" + ("" if window.verified else " (no effect)"))
        shown.append(
            Band(window.index, printable(window.kind), label, start_s, end_s, window.verified, row)
        )
    return shown


def shown_reigns(
    reigns: Sequence[Reign], end_time: int, *, from_outside: bool = False
) -> list[ShownReign]:
    """Return reigns in seconds, with clashes of one epoch marked.

    Those never stamped are left out; those that never ended end with the run, at ``end_time``.
    ``from_outside`` marks none: a node that answers need not claim that it leads.
    """
    leaders: dict[int, set[str]] = {}
    for reign in reigns:
        leaders.setdefault(reign.epoch, set()).add(reign.node)
    return [
        ShownReign(
            node=reign.node,
            epoch=reign.epoch,
            start_s=reign.start / _NS_PER_S,
            end_s=max(reign.start, end_time if reign.end is None else reign.end) / _NS_PER_S,
            clash=not from_outside and len(leaders[reign.epoch]) > 1,
        )
        for reign in reigns[:REIGNS_MAX]
        if reign.start is not None
    ]


def completed_calls(events: Iterable[Event]) -> list[Call]:
    """Return the completed calls of a history, by completion."""
    open_by_process: dict[int, Event] = {}
    calls: list[Call] = []
    for event in events:
        if event.type == "invoke":
            open_by_process[event.process] = event
            continue
        invoked = open_by_process.pop(event.process, None)
        if invoked is not None:
            calls.append(
                Call(
                    kind=event.f,
                    outcome=event.type,
                    start_s=invoked.time / _NS_PER_S,
                    latency_ms=max((event.time - invoked.time) / _NS_PER_MS, _LATENCY_MS_MIN),
                )
            )
    return calls


def latency_series(calls: Sequence[Call], points_max: int = POINTS_MAX) -> list[LatencySeries]:
    """Return at most ``points_max`` points of the latency chart, in drawing order."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.kind, call.outcome), []).append(call)
    rare = sum(len(group) for (_, outcome), group in groups.items() if outcome != "ok")
    common = len(calls) - rare
    rare_max = max(points_max - common, points_max // 2)
    common_max = points_max - min(rare, rare_max)
    series: list[LatencySeries] = []
    for (kind, outcome), group in sorted(groups.items(), key=_drawing_order):
        total, share_max = (common, common_max) if outcome == "ok" else (rare, rare_max)
        share = len(group) if total <= share_max else share_max * len(group) // total
        kept = thin(sorted(group, key=lambda call: call.start_s), share)
        series.append(
            LatencySeries(
                kind=kind,
                outcome=outcome,
                times_s=[round(call.start_s, 6) for call in kept],
                latencies_ms=[round(call.latency_ms, 3) or _LATENCY_MS_MIN for call in kept],
                count=len(group),
            )
        )
    return series


def thin(calls: Sequence[Call], count_max: int) -> list[Call]:
    """Return at most ``count_max`` calls, with the slowest and fastest of every stretch."""
    if len(calls) <= count_max:
        return list(calls)
    stretches = count_max // 3
    if stretches == 0:
        return sorted(calls, key=lambda call: -call.latency_ms)[:count_max]
    kept: list[Call] = []
    for number in range(stretches):
        stretch = range(number * len(calls) // stretches, (number + 1) * len(calls) // stretches)
        fastest = min(stretch, key=lambda place: calls[place].latency_ms)
        slowest = max(stretch, key=lambda place: calls[place].latency_ms)
        kept += [calls[place] for place in sorted({stretch.start, fastest, slowest})]
    return kept


def throughput(calls: Sequence[Call], end_s: float) -> Throughput:
    """Return the throughput chart's figures from the run's start to its end."""
    stretch_s = max(1, math.ceil(end_s / STRETCHES_MAX))
    count = max(1, math.ceil(end_s / stretch_s))
    rates = {outcome: [0.0] * count for outcome in OUTCOMES}
    latencies: list[list[float]] = [[] for _ in range(count)]
    for call in calls:
        ended_s = call.start_s + call.latency_ms / 1000
        place = min(int(ended_s / stretch_s), count - 1)
        rates[call.outcome][place] += 1 / stretch_s
        if call.outcome == "ok":
            latencies[place].append(call.latency_ms)
    return Throughput(
        times_s=[float(place * stretch_s) for place in range(count)],
        stretch_s=stretch_s,
        ok=[round(rate, 6) for rate in rates["ok"]],
        fail=[round(rate, 6) for rate in rates["fail"]],
        info=[round(rate, 6) for rate in rates["info"]],
        p50_ms=[_quantile(values, 0.50) for values in latencies],
        p99_ms=[_quantile(values, 0.99) for values in latencies],
    )


def _drawing_order(item: tuple[tuple[str, str], list[Call]]) -> tuple[int, str]:
    (kind, outcome), _ = item
    return _DRAWING_ORDER.index(outcome), kind


def _quantile(values: list[float], share: float) -> float | None:
    """Return the nearest rank: a latency that a call really had."""
    if not values:
        return None
    values.sort()
    return round(values[min(len(values) - 1, math.ceil(share * len(values)) - 1)], 3)
