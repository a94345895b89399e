"""Coverage of faults over all runs equals its plain-Python reference, from the lake on."""

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.analysis.across import Met
from splitbrain.harness.folder.coverage_cells import PHASES, ROLES
from splitbrain.harness.report.across.words import met_rows
from splitbrain.spark_analysis.across_process import AcrossRequest, look_across
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.trends import fault_coverage
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.schemas import COVERAGE, table_of
from tests.lake_runs import make_run, write_results

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BY = ("system", "workload", "kind", "role", "phase")


def reference(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """Runs, faults and those that bit."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in BY)].append(row)
    return {
        key: (
            len({row["run_id"] for row in group}),
            sum(row["faults"] for row in group),
            sum(row["bitten"] for row in group),
        )
        for key, group in groups.items()
    }


def drawn(draw: random.Random, runs: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(runs):
        of_run = {
            "run_id": f"run-{number}",
            "system": draw.choice(("a", "b")),
            "workload": draw.choice(("register", "set")),
        }
        met = [
            (kind, role, phase) for kind in ("kill", "pause") for role in ROLES for phase in PHASES
        ]
        for kind, role, phase in draw.sample(met, draw.randrange(12)):
            faults = draw.randrange(1, 5)
            bitten = draw.randrange(faults + 1)
            cell = {"kind": kind, "role": role, "phase": phase, "faults": faults, "bitten": bitten}
            rows.append({**of_run, **cell})
    return rows


def test_fault_coverage_equals_reference(session: SparkSession) -> None:
    rows = drawn(random.Random(8), 60)
    schema = COVERAGE.schema.remove_metadata().append(pa.field("system", pa.string()))
    frame = session.createDataFrame(pa.Table.from_pylist(rows, schema))
    result = fault_coverage(frame)
    assert result.schema.names == struct_type(table_of(Met)).names
    found = result.toArrow().to_pylist()
    by_key = {
        tuple(row[name] for name in BY): (row["runs"], row["faults"], row["bitten"])
        for row in found
    }
    assert len(by_key) == len(found)
    assert by_key == reference(rows)
    assert any(runs > 1 for runs, _, _ in by_key.values())


def test_what_faults_met_goes_from_the_results_to_the_page(
    session: SparkSession, tmp_path: Path
) -> None:
    cell = {"kind": "kill", "role": "leader", "phase": "settled", "workload": "register"}
    other = {**cell, "role": "down", "phase": "a later word"}
    for name, cells in (
        ("a", [{**cell, "faults": 3, "bitten": 3}, {**other, "faults": 9, "bitten": 0}]),
        ("b", [{**cell, "faults": 2, "bitten": 1}]),
        ("c", None),
    ):
        run = make_run(tmp_path / "runs" / name, run_id=name, system="kraft")
        write_results(run, coverage=cells)
    lake = tmp_path / "lake"
    ingest_runs(LocalStore(lake), (tmp_path / "runs").iterdir())
    findings = look_across(session, AcrossRequest(str(lake), None))
    assert [(met.role, met.runs, met.faults, met.bitten) for met in findings.coverage.rows] == [
        ("down", 1, 9, 0),
        ("leader", 2, 5, 4),
    ]
    # Of what this version does not know there is no row.
    assert met_rows(findings.coverage.rows) == [
        ("kraft", "register", "kill", "leader", "0", "0", "5 (4 took effect)", "0"),
        ("kraft", "register", "kill", "follower", "0", "0", "0", "0"),
        ("kraft", "register", "kill", "candidate", "0", "0", "0", "0"),
    ]
