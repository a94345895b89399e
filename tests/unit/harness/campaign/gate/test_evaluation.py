"""Nothing is met that was not measured, and a violated threshold always wins."""

import math
from pathlib import Path

import pytest

from splitbrain.contracts.figure import Measured, Subject
from splitbrain.harness.campaign.gate.catalogue import figure_named
from splitbrain.harness.campaign.gate.evaluation import (
    Judged,
    change_for_the_worse,
    evaluate,
    verdict_of,
)
from splitbrain.harness.campaign.gate.policy import Policy, read_policy

LATENCY = Subject("latency_p99_ms")
RUNS = Subject("runs_valid")


def policy(tmp_path: Path, *thresholds: str, more: str = "") -> Policy:
    path = tmp_path / "gate.toml"
    path.write_text(f"schema = 1\nrequire = {list(thresholds)!r}\n{more}")
    return read_policy(path)


def judge(
    read: Policy,
    now: dict[Subject, Measured],
    then: dict[Subject, Measured] | None = None,
    *,
    is_waived: bool = False,
) -> Judged:
    """What came of the last threshold."""
    return evaluate(read, read.tier(None), now, then, is_waived=is_waived)[-1]


@pytest.mark.parametrize(("value", "state"), [(10.0, "met"), (9.0, "violated"), (None, "unknown")])
def test_a_bound_is_met_violated_or_unknown(
    tmp_path: Path, value: float | None, state: str
) -> None:
    read = policy(tmp_path, "runs_valid >= 10")
    assert judge(read, {RUNS: Measured(value, 1, None if value else "why not")}).state == state
    assert judge(read, {}).state == "unknown"


@pytest.mark.parametrize(
    ("now", "then", "state"),
    [
        (109.0, 100.0, "met"),
        (111.0, 100.0, "violated"),
        (50.0, 100.0, "met"),
        (0.0, 0.0, "met"),
        (1.0, 0.0, "violated"),
    ],
)
def test_a_regression_is_a_relative_change(
    tmp_path: Path, now: float, then: float, state: str
) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    found = judge(read, {LATENCY: Measured(now, 5000)}, {LATENCY: Measured(then, 5000)})
    assert found.state == state


def test_of_what_should_be_high_less_is_worse() -> None:
    throughput, latency = figure_named("throughput_mean"), figure_named("latency_p99_ms")
    assert change_for_the_worse(throughput, 80, 100) == pytest.approx(0.2)
    assert change_for_the_worse(latency, 80, 100) == pytest.approx(-0.2)
    assert change_for_the_worse(throughput, 5, 0) == 0
    assert math.isinf(change_for_the_worse(latency, 5, 0))


def test_a_regression_needs_samples_on_both_sides(tmp_path: Path) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    few, many = Measured(100.0, 999), Measured(100.0, 1000)
    for now, then in ((few, many), (many, few)):
        found = judge(read, {LATENCY: now}, {LATENCY: then})
        assert found.state == "unknown"
        assert "fewer than 1,000" in found.reason
    assert judge(read, {LATENCY: many}, {LATENCY: many}).state == "met"
    lenient = policy(
        tmp_path, "regression(latency_p99) < 10%", more="[samples_min]\nlatency_p99 = 5\n"
    )
    assert judge(lenient, {LATENCY: few}, {LATENCY: few}).state == "met"


def test_a_missing_baseline_is_unknown_unless_it_is_waived(tmp_path: Path) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    now = {LATENCY: Measured(1.0, 5000)}
    assert judge(read, now).state == "unknown"
    assert "--baseline" in judge(read, now).reason
    assert judge(read, now, is_waived=True).state == "not-compared"
    assert judge(read, now, {}).state == "unknown"
    new = policy(tmp_path, "failures_new == 0")
    assert judge(new, {Subject("failures_new"): Measured(None, 3)}).state == "unknown"
    assert judge(new, {}, is_waived=True).state == "not-compared"


@pytest.mark.parametrize(
    ("states", "runs", "valid", "failed", "verdict"),
    [
        (["met"], 3, 2, False, ("green", 0)),
        (["met", "not-compared"], 3, 2, False, ("green", 0)),
        (["met", "unknown"], 3, 2, False, ("unknown", 2)),
        (["unknown", "violated"], 3, 2, False, ("red", 1)),
        (["violated"], 3, 2, True, ("red", 1)),
        (["met", "unknown"], 3, 2, True, ("failed", 3)),
        (["met"], 0, 0, False, ("unknown", 2)),
        (["met"], 3, 0, False, ("unknown", 2)),
    ],
)
def test_the_verdict_follows_the_worst(
    tmp_path: Path,
    states: list[str],
    runs: int,
    valid: int,
    failed: bool,
    verdict: tuple[str, int],
) -> None:
    threshold = policy(tmp_path, "runs_valid >= 1").tier(None).thresholds[0]
    judged = [Judged(threshold, state, None, Measured(1.0), None, "") for state in states]  # type: ignore[arg-type]
    assert verdict_of(judged, runs=runs, valid_runs=valid, harness_failed=failed) == verdict
