"""Each job equals its plain-Python reference on randomized run folders, read twice.

All runs are analysed at once, so that every job is also shown to keep runs apart.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from spark_analysis.ingest import ingest
from spark_analysis.jobs import availability, commits, latency, leadership
from spark_analysis.tables import RunTables, open_tables
from tests.spark import reference
from tests.spark.reference import Run
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SHAPES = (
    Shape(seed=1),
    Shape(seed=2, positionless=0.2, snapshot=True),
    Shape(seed=3, faults=5, repeated_values=0.9, torn=True),
    Shape(seed=4, nodes=5, faults=1, missing_log=True, positionless=0.1),
    Shape(seed=5, faults=0, seconds=3.0),
    Shape(seed=6, faults=2, missing_log=True, positionless=1.0, repeated_values=0.0),
    Shape(seed=7, nodes=2, snapshot=True, positionless=0.5),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run id to folder: drawn worlds, some of them damaged beyond what planting tests do."""
    root = tmp_path_factory.mktemp("runs")
    folders: dict[str, Path] = {}
    for shape in SHAPES:
        world = World(shape)
        if shape.seed % 2 == 0:
            _damage(world)
        folder = world.write(root / f"run-{shape.seed}")
        folders[folder.name] = folder
    empty = root / "run-empty"
    empty.mkdir()
    (empty / "history.jsonl").touch()
    folders[empty.name] = empty
    return folders


def _damage(world: World) -> None:
    """Lose, repeat and invent records, hide completions, and let two nodes lead one epoch."""
    acknowledged = world.acknowledged()
    for event in world.random.sample(acknowledged, min(20, len(acknowledged))):
        world.lose(event, nodes=world.random.randint(1, len(world.nodes)))
    for event in world.random.sample(world.events, 40):
        if event.f != "read":
            argument = event.value[:2] if event.f == "cas" else event.value
            world.commit(event.f, event.key or "", argument)
    reign = world.reigns[-1]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
    # A fault that overlaps another one and was never removed.
    first = world.faults[0]
    late = msgspec.structs.replace(first, index=90, phase="invoked", time=first.time + 50 * MS)
    world.faults.append(late)


@pytest.fixture(scope="module")
def references(runs: dict[str, Path]) -> dict[str, Run]:
    return {run_id: Run(folder) for run_id, folder in runs.items()}


@pytest.fixture(scope="module")
def tables(session: SparkSession, runs: dict[str, Path]) -> RunTables:
    for folder in runs.values():
        ingest(folder, batch_rows=1000)
    return open_tables(session, list(runs.values()))


def close(figure: Any) -> Any:
    """Equal up to the last bits where it is a double."""
    return pytest.approx(figure, rel=1e-12) if isinstance(figure, float) else figure


def test_latency_quantiles_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    names = ("count", "p50_ms", "p95_ms", "p99_ms", "max_ms")
    rows = latency.latency_quantiles(tables.operations).collect()
    found = {
        (row["run_id"], row["f"], row["second"], row["type"]): tuple(row[name] for name in names)
        for row in rows
    }
    assert len(found) == len(rows)
    expected = {
        (run_id, *key): figures
        for run_id, run in references.items()
        for key, figures in reference.latency_quantiles(run).items()
    }
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        assert list(found[key]) == [close(figure) for figure in figures], key


def test_throughput_equals_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = latency.throughput(tables.operations).collect()
    found = {(row["run_id"], row["second"]): (row["ok"], row["fail"], row["info"]) for row in rows}
    assert found == {
        (run_id, second): figures
        for run_id, run in references.items()
        for second, figures in reference.throughput(run).items()
    }


def test_fault_windows_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = availability.fault_windows(tables.operations, tables.faults).collect()
    found = {(row["run_id"], row["index"]): row.asDict() for row in rows}
    assert len(found) == len(rows)
    expected = {
        (run_id, index): figures
        for run_id, run in references.items()
        for index, figures in reference.fault_windows(run).items()
    }
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        for name, figure in figures.items():
            value = found[key][name]
            assert value == close(figure), (key, name)
    # The worlds are rich enough for the comparison to mean something.
    assert sum(figures["failover_ms"] is not None for figures in expected.values()) >= 10
    assert sum(figures["failover_ms"] is None for figures in expected.values()) >= 5


def test_longest_unavailability_equals_reference(
    tables: RunTables, references: dict[str, Run]
) -> None:
    rows = availability.longest_unavailability(tables.operations).collect()
    found = {row["run_id"]: (row["start_ns"], row["end_ns"]) for row in rows}
    expected = {run_id: reference.longest_unavailability(run) for run_id, run in references.items()}
    assert found == {run_id: gap for run_id, gap in expected.items() if gap is not None}
    for row in rows:
        assert row["gap_ms"] == close((row["end_ns"] - row["start_ns"]) / 1e6)


def test_lost_commits_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = commits.lost_commits(tables.operations, tables.committed, tables.logs).collect()
    found = {(row["run_id"], row["index"]): (row["holders"], row["unknown"]) for row in rows}
    assert len(found) == len(rows)
    expected = {
        (run_id, index): figures
        for run_id, run in references.items()
        for index, figures in reference.lost_commits(run).items()
    }
    assert found == expected
    assert len(expected) >= 20


def test_acknowledged_writes_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = commits.acknowledged_writes(tables.operations).select("run_id", "index").collect()
    assert {(row["run_id"], row["index"]) for row in rows} == {
        (run_id, one.index)
        for run_id, run in references.items()
        for one in reference.acknowledged_writes(run)
    }


def test_phantom_commits_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    rows = commits.phantom_commits(tables.operations, tables.committed).collect()
    found = {
        (row["run_id"], row["offset"], row["epoch"], row["f"], row["key"]): (
            repr(msgspec.json.decode(row["value"])),
            row["reason"],
            row["nodes"],
        )
        for row in rows
    }
    expected = {
        (run_id, offset, epoch, f, key): (value, reason, nodes)
        for run_id, run in references.items()
        for (offset, epoch, (f, key, value)), (reason, nodes) in reference.phantom_commits(
            run
        ).items()
    }
    assert found == expected
    assert {reason for _, reason, _ in expected.values()} == {"failed", "duplicate"}


def test_reigns_and_overlaps_equal_reference(tables: RunTables, references: dict[str, Run]) -> None:
    leaders = leadership.reigns(tables.state_events, tables.faults, tables.operations)
    assert sorted(tuple(row) for row in leaders.collect()) == sorted(
        (run_id, *reign) for run_id, run in references.items() for reign in reference.reigns(run)
    )
    overlaps = sorted(tuple(row) for row in leadership.leader_overlaps(leaders).collect())
    assert overlaps == sorted(
        (run_id, *overlap)
        for run_id, run in references.items()
        for overlap in reference.leader_overlaps(run)
    )
    assert {same_epoch for *_, same_epoch in overlaps} == {True, False}
