"""All runs of a lake together, from the tables to the records that the page is made of."""

import datetime as dt
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from harness.across.findings import Findings, trends_of
from harness.across.page import across_page
from spark_analysis.across_process import AcrossRequest, look_across
from spark_analysis.lake.ingest import ingest_runs
from spark_analysis.lake.store import LocalStore
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
    answer = msgspec.json.encode(look_across(session, request))
    findings = msgspec.json.decode(answer, type=Findings)
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
