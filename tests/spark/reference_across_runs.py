"""The jobs over many runs in plain Python, from their definitions and as slow as they like."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from splitbrain.history.records import PairedOperation
from tests.spark.reference import MS, Run, fault_windows, quantile


def fault_of(run: Run, operation: PairedOperation) -> str:
    labels: set[str] = set()
    for index in {event.index for event in run.faults}:
        # The first time that a phase was reached counts.
        phases = {event.phase: event for event in reversed(run.faults) if event.index == index}
        if "invoked" not in phases or operation.start < phases["invoked"].time:
            continue
        if "removed" not in phases or operation.start < phases["removed"].time:
            labels.add(f"{phases['invoked'].kind}:{phases['invoked'].target}")
    return "+".join(sorted(labels)) or "none"


def latency_by(
    runs: Mapping[str, Run], systems: Mapping[str, str], by: Sequence[str]
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[PairedOperation]] = defaultdict(list)
    for name, run in runs.items():
        for one in run.load:
            values = {
                "system": systems[name],
                "f": one.f,
                "second": one.start // 10**9,
                "node": one.node,
                "fault": fault_of(run, one) if "fault" in by else None,
            }
            groups[*(values[dimension] for dimension in by), one.type].append(one)
    result: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for key, group in groups.items():
        latencies = [one.end - one.start for one in group if one.end is not None]
        figures: Sequence[Any] = [None] * 4
        if latencies:
            figures = [quantile(latencies, p) / MS for p in (0.5, 0.95, 0.99, 1)]
        result[key] = (len(group), *figures)
    return result


def fault_effects(
    runs: Mapping[str, Run], systems: Mapping[str, str]
) -> dict[tuple[str, str, str], dict[str, Any]]:
    groups: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, run in runs.items():
        for window in fault_windows(run).values():
            groups[systems[name], window["kind"], window["target"]].append((name, window))
    return {key: _effects(group) for key, group in groups.items()}


def _effects(group: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    windows = [window for _, window in group]
    during = _known(windows, "availability_during")
    effects: dict[str, Any] = {
        "runs": len({name for name, _ in group}),
        "faults": len(group),
        "verified": sum(window["verified"] for window in windows),
        "availability_during_min": min(during, default=None),
        "availability_during_mean": fmean(during) if during else None,
    }
    for name, count in (("failover", "failovers"), ("recovery", "recoveries")):
        values = _known(windows, f"{name}_ms")
        effects[count] = len(values)
        for p, figure in ((0.5, "p50"), (0.99, "p99"), (1, "max")):
            effects[f"{name}_{figure}_ms"] = quantile(values, p) if values else None
    return effects


def _known(windows: Sequence[dict[str, Any]], name: str) -> list[Any]:
    return [window[name] for window in windows if window[name] is not None]
