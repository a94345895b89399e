"""The gate's figures in plain Python, from their definitions in ``figure_catalogue``."""

from collections.abc import Callable, Collection, Sequence
from statistics import mean
from typing import Any

import msgspec

from splitbrain.contracts.figure import Condition, Subject
from tests.spark import reference
from tests.spark import reference_findings as findings
from tests.spark.reference import Run

#: Value and samples.
Figure = tuple[float | None, int]


class Chosen(msgspec.Struct, frozen=True):
    """A run and what conditions look at."""

    run: Run
    dimensions: dict[str, str]


def figure(subject: Subject, runs: Sequence[Chosen]) -> Figure:
    """Value and samples of one subject."""
    chosen = [
        one.run
        for one in runs
        if all(
            condition.holds_for(one.dimensions[condition.dimension])
            for condition in subject.conditions
            if condition.dimension in one.dimensions
        )
    ]
    name = subject.figure
    if name.startswith("latency"):
        return _latency(name, chosen, subject.conditions_on("operation"))
    if name.startswith(("failover", "recovery", "availability")):
        return _window(name, chosen, subject.conditions_on("fault"))
    if name.startswith("throughput"):
        return _throughput(name, chosen)
    if name.startswith("operations_"):
        return _outcome(name, chosen, subject.conditions_on("operation"))
    return _found(name, chosen)


def _quantile_ms(values: Sequence[float], p: float) -> float:
    return reference.quantile(list(values), p)  # type: ignore[arg-type]


def _latency(name: str, runs: Sequence[Run], conditions: Sequence[Condition]) -> Figure:
    by_run = [
        [
            (one.end - one.start) // 1000
            for one in run.load
            if one.type == "ok"
            and one.end is not None
            and all(condition.holds_for(one.f) for condition in conditions)
        ]
        for run in runs
    ]
    pooled = [us for run in by_run for us in run]
    if not pooled:
        return None, 0
    if name == "latency_p99_worst_ms":
        value = max(reference.quantile(run, 0.99) for run in by_run if run)
    else:
        share = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}[name.split("_")[1]]
        value = reference.quantile(pooled, share)
    return value / 1000, len(pooled)


def _window(name: str, runs: Sequence[Run], conditions: Sequence[Condition]) -> Figure:
    family, _, kind = name.removesuffix("_ms").partition("_")
    column = "availability_during" if family == "availability" else f"{family}_ms"
    values: list[float] = []
    for run in runs:
        found = reference.fault_windows(run)
        for window in reference.windows(run):
            if window.verified and all(one.holds_for(window.kind) for one in conditions):
                value = found[window.index][column]
                values += [] if value is None else [value]
    if not values:
        return None, 0
    match kind:
        case "p50":
            value = _quantile_ms(values, 0.5)
        case "p99":
            value = _quantile_ms(values, 0.99)
        case "max":
            value = max(values)
        case "min":
            value = min(values)
        case _:
            value = mean(values)
    return value, len(values)


def _throughput(name: str, runs: Sequence[Run]) -> Figure:
    rates: list[float] = []
    for run in runs:
        by_second = reference.throughput(run)
        if by_second:
            seconds = max(by_second) - min(by_second) + 1
            rates.append(sum(ok for ok, _, _ in by_second.values()) / seconds)
    if not rates:
        return None, 0
    return (min(rates) if name == "throughput_min" else mean(rates)), len(rates)


def _has_log(run: Run) -> bool:
    return bool(run.logs)


def _has_events(run: Run) -> bool:
    return any(run.state_events.values())


def _reads(*writes: str) -> Callable[[Run], bool]:
    return lambda run: (
        any(one.f == "read" and one.type == "ok" for one in run.operations)
        and any(one.f in writes for one in run.operations)
    )


def _stale(run: Run) -> list[float]:
    return [age for age, _ in findings.stale_reads(run.operations).values()]


def _overlaps(run: Run) -> list[float]:
    return [(row[5] - row[4]) / 1e6 for row in reference.leader_overlaps(run) if not row[6]]


_REGISTERS = _reads("write", "cas")
#: Whether a run can have any, its findings, and the figure: how many of all runs, or the greatest.
_FINDINGS: dict[str, tuple[Callable[[Run], bool], Callable[[Run], Collection[Any]], str]] = {
    "phantom_commits": (_has_log, reference.phantom_commits, "count"),
    "split_brain_epochs": (
        *(_has_events, lambda run: {row[0] for row in reference.leader_overlaps(run) if row[6]}),
        "count",
    ),
    "leader_overlap_max_ms": (_has_events, _overlaps, "greatest"),
    "diverged_logs": (lambda run: len(run.logs) > 1, findings.first_divergences, "count"),
    "duplicated_commits": (_has_log, findings.committed_twice, "count"),
    "duplicated_elements": (_reads("add"), findings.read_twice, "count"),
    "stale_reads": (_REGISTERS, _stale, "count"),
    "stale_read_max_ms": (_REGISTERS, _stale, "greatest"),
    "elections_without_fault": (
        *(_has_events, lambda run: {row[0] for row in findings.without_fault(run)}),
        "count",
    ),
    "leaderless_max_ms": (
        *(_has_events, lambda run: [row[5] or 0.0 for row in findings.election_timeline(run)]),
        "greatest",
    ),
}


def _found(name: str, runs: Sequence[Run]) -> Figure:
    can_have, find, kind = _FINDINGS[name]
    found = [find(run) for run in runs if can_have(run)]
    if not found:
        return None, 0
    if kind == "count":
        return float(sum(map(len, found))), len(found)
    return max((value for of_run in found for value in of_run), default=0.0), len(found)


def _outcome(name: str, runs: Sequence[Run], conditions: Sequence[Condition]) -> Figure:
    kinds = [
        one.type
        for run in runs
        for one in run.operations
        if all(condition.holds_for(one.f) for condition in conditions)
    ]
    kind = {"operations_failed": "fail", "operations_open": "info"}[name]
    return (kinds.count(kind) / len(kinds), len(kinds)) if kinds else (None, 0)
