"""All runs of a lake together, from the tables to the records that the page is made of."""

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.analysis.across import Change, Findings, Point
from splitbrain.harness.report.across.page import across_page
from splitbrain.harness.report.across.trends import trends_of
from splitbrain.spark_analysis import across_process
from splitbrain.spark_analysis.across_process import AcrossRequest, look_across, shown_points
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.trends import TREND
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.schemas import table_of
from tests.lake_runs import make_run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_failure_met_again_is_known_and_its_plan_deterministic(
    session: SparkSession, tmp_path: Path
) -> None:
    for name, day, seed, verdict in (
        ("a", "2026-11-19", 1, "invalid"),
        ("b", "2026-11-20", 1, "invalid"),
        ("c", "2026-11-20", 2, "valid"),
    ):
        make_run(
            tmp_path / "runs" / name,
            seed=seed,
            verdict=verdict,
            run_id=name,
            started_at=f"{day}T22:00:00Z",
        )
    lake = tmp_path / "lake"
    ingest_runs(LocalStore(lake), (tmp_path / "runs").iterdir())
    request = AcrossRequest(str(lake), None)
    # Without a moment: the last day with a run.
    findings = look_across(session, request)
    assert msgspec.json.decode(msgspec.json.encode(findings), type=Findings) == findings
    assert findings.since == dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
    assert findings.runs == 3
    (failure,) = findings.failures.rows
    assert (failure.state, failure.runs_since, failure.runs_before) == ("known", 1, 1)
    (flake,) = findings.flakes.rows
    assert (flake.flake, flake.failed, flake.runs) == ("deterministic", 2, 2)
    assert sum(len(trend.points) for trend in trends_of(findings)) == findings.points.count > 0
    assert findings.changes.rows == []
    assert findings.points.trends == len(trends_of(findings))
    assert "<svg" in across_page(findings)


def test_a_trend_that_became_worse_is_shown_before_one_that_is_longer(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(across_process, "TRENDS_MAX", 3)
    night = dt.datetime(2026, 11, 1, 22, tzinfo=dt.UTC)

    def points_of(workload: str, count: int) -> list[dict[str, Any]]:
        return [
            {**name_of(workload), "started_at": night, "run_id": f"{number}", "value": 1.0}
            for number in range(count)
        ]

    def change_of(workload: str, *, worse: bool) -> dict[str, Any]:
        figures = {"before": 1.0, "after": 2.0, "p_value": 0.001, "worse": worse}
        return {**name_of(workload), "started_at": night, "run_id": "1", **figures}

    def name_of(workload: str) -> dict[str, Any]:
        return dict(zip(TREND, ("kraft", workload, "docker", "failover_ms"), strict=True))

    lengths = {"better": 2, "long": 6, "longer": 7, "worse": 3}
    points = session.createDataFrame(
        [point for name, count in lengths.items() for point in points_of(name, count)],
        struct_type(table_of(Point)),
    )
    # A change for the better beside one for the worse makes it no better.
    changes = session.createDataFrame(
        [change_of("better", worse=False), *(change_of("worse", worse=w) for w in (True, False))],
        struct_type(table_of(Change)),
    )
    shown = shown_points(points, changes)
    assert {row.workload for row in shown.rows} == {"worse", "better", "longer"}
    assert (len(shown.rows), shown.count, shown.trends) == (3 + 2 + 7, 18, 4)
