"""Elections, divergences, duplicates and errors equal their references on randomized runs."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs import divergence, duplicates, leadership
from splitbrain.spark_analysis.jobs.outcomes import client_errors
from tests.spark import reference_findings as reference
from tests.spark.reference import Run
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_election_timeline_equals_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = leadership.election_timeline(tables.state_events, tables.faults, tables.operations)
    found = [tuple(row) for row in rows.collect()]
    expected = {
        (run_id, *row)
        for run_id, run in references.items()
        for row in reference.election_timeline(run)
    }
    assert len(found) == len(expected)
    assert set(found) == expected
    assert {row[5] for row in found} >= {"killed", "resigned", "run-ended"}
    assert {row[7] for row in found} == {1, 2}
    gaps = [row[6] for row in found]
    assert any(gap is None for gap in gaps)
    assert any(gap == 0 for gap in gaps)
    assert any(gap is not None and gap > 0 for gap in gaps)


def test_elections_without_fault_equal_reference(session: SparkSession, tmp_path: Path) -> None:
    folders: list[Path] = []
    for seed in (41, 42, 43):
        world = World(Shape(seed=seed, faults=6, seconds=40.0))
        # The effect of most faults then has no reason.
        world.faults = [event for event in world.faults if event.index in (1, 4)]
        folders.append(world.write(tmp_path / f"run-{seed}"))
        ingest(folders[-1])
    tables = open_tables(session, folders)
    timeline = leadership.election_timeline(tables.state_events, tables.faults, tables.operations)
    found = [tuple(row) for row in leadership.without_fault(timeline, tables.faults).collect()]
    expected = {
        (folder.name, *row) for folder in folders for row in reference.without_fault(Run(folder))
    }
    assert len(found) == len(expected)
    assert set(found) == expected
    assert len(folders) < len(expected) < timeline.count() - len(folders)


def test_first_divergences_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    found = [
        tuple(row) for row in divergence.first_divergences(tables.committed, tables.logs).collect()
    ]
    expected = {
        (run_id, *row)
        for run_id, run in references.items()
        for row in reference.first_divergences(run)
    }
    assert len(found) == len(expected)
    assert set(found) == expected
    assert len(expected) >= 5
    assert len({row[0] for row in expected}) < len(references)


def test_duplicate_commits_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = duplicates.duplicates(tables.operations, tables.committed).collect()
    found = {
        (row["run_id"], row["node"], row["f"], row["key"], repr(json.loads(row["value"]))): (
            row["count"],
            row["expected"],
            row["first_offset"],
        )
        for row in rows
    }
    assert len(found) == len(rows)
    assert {row["kind"] for row in rows} == {"committed"}
    assert found == {
        (run_id, *name): figures
        for run_id, run in references.items()
        for name, figures in reference.committed_twice(run).items()
    }


def test_client_errors_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = client_errors(tables.operations).collect()
    found = {
        (row["run_id"], row["f"], row["node"], row["type"], row["error"]): (
            row["count"],
            row["first_ns"],
            row["last_ns"],
        )
        for row in rows
    }
    assert len(found) == len(rows) > 10
    assert found == {
        (run_id, *name): figures
        for run_id, run in references.items()
        for name, figures in reference.client_errors(run).items()
    }
