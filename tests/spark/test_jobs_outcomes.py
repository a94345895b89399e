"""The matrix, failures, flakes and trends over many runs equal their plain-Python references."""

import datetime as dt
import json
import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.analysis.across import Cell, Change, Failure, Flake, Point, RunFingerprint
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.availability import fault_windows
from splitbrain.spark_analysis.jobs.outcomes import (
    failures_since,
    flakes,
    outcome_matrix,
    run_fingerprints,
)
from splitbrain.spark_analysis.jobs.trends import (
    POINTS_MAX,
    changes_of,
    trend_changes,
    trend_points,
)
from splitbrain.spark_analysis.lake.reader import LakeTables
from splitbrain.spark_analysis.schemas import table_of
from tests.spark import reference_outcomes as reference
from tests.spark.reference import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Row = dict[str, Any]
NIGHT = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
RUN_COLUMNS = (
    "run_id string, system string, system_version string, workload string, runtime string, "
    "bugs array<string>, expected boolean, outcome string, started_at timestamp, "
    "plan_digest string, reproduce string"
)
OUTCOMES = ("valid", "valid", "invalid", "invalid", "unknown", "vacuous", "failed", "none")


def finding(draws: random.Random, number: int) -> CheckResult:
    """One of four failures, with numbers of its own; half of them judged before they had names.

    One of the four has one of two names, so that nobody can say which the unnamed ones are.
    """
    kind = draws.choice(["read", "cas"])
    core = [
        {"index": number, "f": "write", "type": "ok", "start": number, "end": number + 1},
        {"index": number + 5, "f": kind, "type": "ok", "start": number + 5, "end": number + 9},
    ]
    checker = draws.choice(["linearizability:cas-register", "set-full"])
    found: dict[str, Any] = {"kind": "not-linearizable", "core": core}
    if draws.random() < 0.5:
        names = ["stale read"] if kind == "read" else ["wrong refusal", "lost update"]
        found |= {"anomaly": draws.choice(names), "account": f"It happened at {number}."}
    return CheckResult(checker, Verdict.INVALID, f"bad {number}", violations=(found,))


class Drawn:
    """Runs with all that the jobs look at, drawn from a seed."""

    def __init__(self, seed: int, count: int) -> None:
        draws = random.Random(seed)
        self.runs: list[Row] = []
        self.faults: list[Row] = []
        self.findings: dict[str, list[CheckResult]] = {}
        for number in range(count):
            run_id = f"run-{number:03}"
            run = {
                "run_id": run_id,
                "system": draws.choice(["kraft", "redis"]),
                "system_version": draws.choice(["1.0", "1.1", None]),
                "workload": draws.choice(["register", "set", None]),
                "runtime": "docker",
                "bugs": draws.choice([[], [], ["stale-leader-reads"]]),
                "expected": draws.random() < 0.3,
                "outcome": draws.choice(OUTCOMES),
                "started_at": NIGHT + dt.timedelta(minutes=draws.randint(-300, 300)),
                "reproduce": f"splitbrain test --seed {number}",
                "plan_digest": draws.choice(
                    [None, *(f"plan-{plan}" for plan in range(count // 4))]
                ),
            }
            self.runs.append(run)
            for kind in draws.sample(["kill", "pause", "partition"], draws.randint(0, 2)):
                invoked = draws.choice([None, 5, 6])
                self.faults += [{"run_id": run_id, "kind": kind, "invoked_ns": invoked}] * 2
            if run["outcome"] == "invalid" and draws.random() < 0.9:
                self.findings[run_id] = [finding(draws, number) for _ in range(draws.randint(1, 2))]

    def frames(self, session: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
        """Runs, faults and verdicts."""
        names = [field.split()[0] for field in RUN_COLUMNS.split(", ")]
        runs = session.createDataFrame(
            [tuple(run[name] for name in names) for run in self.runs], RUN_COLUMNS
        )
        faults = session.createDataFrame(
            [tuple(fault.values()) for fault in self.faults],
            "run_id string, kind string, invoked_ns bigint",
        )
        told = [
            (run_id, one.checker, one.verdict.value, one.reason, "{}", json.dumps(one.violations))
            for run_id, results in self.findings.items()
            for one in (*results, CheckResult("lost-commits", Verdict.VALID, "All held."))
        ]
        columns = (
            "run_id string, checker string, verdict string, reason string, figures string, "
            "violations string"
        )
        return runs, faults, session.createDataFrame(told, columns)


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(seed=8, count=80)


@pytest.fixture(scope="module")
def frames(session: SparkSession, drawn: Drawn) -> tuple[DataFrame, DataFrame, DataFrame]:
    return drawn.frames(session)


def rows_of(frame: DataFrame, table: Any) -> list[Row]:
    assert frame.schema.names == struct_type(table).names
    return frame.toArrow().to_pylist()


def test_matrix_equals_reference(
    frames: tuple[DataFrame, DataFrame, DataFrame], drawn: Drawn
) -> None:
    rows = rows_of(outcome_matrix(frames[0], frames[1]), table_of(Cell))
    cell = ("system", "version", "workload", "fault", "expected")
    found = {tuple(row.pop(name) for name in cell): row for row in rows}
    assert len(found) == len(rows)
    assert found == reference.outcome_matrix(drawn.runs, drawn.faults)
    assert any(row["invalid"] and row["valid"] for row in found.values())


def test_failures_and_flakes_equal_reference(
    frames: tuple[DataFrame, DataFrame, DataFrame], drawn: Drawn
) -> None:
    runs, _, verdicts = frames
    fingerprints = run_fingerprints(verdicts, runs)
    rows = rows_of(fingerprints, table_of(RunFingerprint))
    found = {tuple(row.values()) for row in rows}
    assert len(found) == len(rows)
    assert found == reference.fingerprints(drawn.runs, drawn.findings)
    # Moments at which all is new, all is resolved, and something of each.
    told: set[str] = set()
    differs = False
    for hours in (-6, -4.9, 0, 4.5, 6):
        since = NIGHT + dt.timedelta(hours=hours)
        failures = rows_of(failures_since(fingerprints, runs, since), table_of(Failure))
        expected = reference.failures_since(drawn.runs, found, since)
        assert len(failures) == len(expected)
        for row in failures:
            told.add(row["state"])
            same = expected[row["fingerprint"], row["expected"]]
            assert {name: row[name] for name in same} == same
            # A canary makes nothing known that nobody expected.
            other = expected.get((row["fingerprint"], not row["expected"]))
            differs = differs or (other is not None and other["state"] != row["state"])
    assert differs
    assert told == {"new", "known", "resolved"}
    flaky = rows_of(flakes(fingerprints, runs), table_of(Flake))
    classes = {
        (row["plan_digest"], row["fingerprint"]): (row["failed"], row["runs"], row["flake"])
        for row in flaky
    }
    assert classes == reference.flakes(drawn.runs, found)
    assert {row["flake"] for row in flaky} >= {"not-replayed", "never-again", "sometimes"}


def test_a_plan_that_fails_each_time_is_deterministic(session: SparkSession) -> None:
    drawn = Drawn(seed=1, count=4)
    for number, run in enumerate(drawn.runs):
        run |= {"plan_digest": "same", "outcome": "invalid" if number < 3 else "vacuous"}
        drawn.findings[run["run_id"]] = [finding(random.Random(3), number)]
    runs, _, verdicts = drawn.frames(session)
    (row,) = rows_of(flakes(run_fingerprints(verdicts, runs), runs), table_of(Flake))
    assert (row["failed"], row["runs"], row["flake"]) == (3, 3, "deterministic")


def test_trend_points_equal_reference(lake: LakeTables, references: dict[str, Run]) -> None:
    started = sql.lit(NIGHT).alias("started_at")
    runs = lake.runs.withColumns({"started_at": started, "system": sql.lit("kraft")})
    windows = fault_windows(lake.operations, lake.faults)
    rows = rows_of(trend_points(lake.operations, windows, runs), table_of(Point))
    found = {(row["run_id"], row["measure"]): row["value"] for row in rows}
    assert len(found) == len(rows)
    expected = reference.trend_points(references)
    assert found == pytest.approx(expected, rel=1e-12)
    assert {measure for _, measure in expected} == {"availability", "failover_ms", "latency_p99_ms"}
    # A planted bug, an expected violation and an unknown start are no points.
    planted = runs.withColumn("bugs", sql.array(sql.lit("stale-leader-reads")))
    canaries = runs.withColumn("expected", sql.expr("true"))
    for left_out in (planted, canaries):
        assert trend_points(lake.operations, windows, left_out).isEmpty()
    assert trend_points(lake.operations, windows, lake.runs).isEmpty()


def test_a_planted_step_of_one_trend_is_found_and_no_other(session: SparkSession) -> None:
    draws = random.Random(5)
    rows: list[tuple[Any, ...]] = []
    for number in range(60):
        at = NIGHT + dt.timedelta(hours=number)
        slow = 40.0 if number >= 35 else 0.0
        for workload, value in (
            ("register", draws.gauss(300 + slow, 8)),
            ("set", draws.gauss(300, 8)),
        ):
            name = f"{workload}-{number:02}"
            rows.append(("kraft", workload, "docker", "failover_ms", at, name, "1", value))
    draws.shuffle(rows)
    points = session.createDataFrame(rows, struct_type(table_of(Point))).repartition(4)
    (found,) = rows_of(trend_changes(points), table_of(Change))
    names = struct_type(table_of(Point)).names
    ordered = [dict(zip(names, row, strict=True)) for row in sorted(rows, key=lambda row: row[4])]
    (expected,) = changes_of([row for row in ordered if row["workload"] == "register"])
    assert found == expected
    assert (found["workload"], found["run_id"], found["worse"]) == ("register", "register-35", True)
    assert len(ordered) < POINTS_MAX
