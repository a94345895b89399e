"""Each job equals its plain-Python reference on randomized run folders, read twice.

All runs are analysed at once, from a lake in which one of them was replaced, so that every job is
also shown to keep runs apart.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs import (
    availability,
    commits,
    divergence,
    duplicates,
    latency,
    leadership,
)
from splitbrain.spark_analysis.jobs.outcomes import client_errors
from tests.spark import reference, reference_findings
from tests.spark.reference import Run
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

References = dict[str, Run]
Row = tuple[Any, ...]


def rows_in(frame: DataFrame) -> set[Row]:
    rows = [tuple(row) for row in frame.collect()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def rows_of(references: References, of: Callable[[Run], Iterable[Row]]) -> set[Row]:
    """The rows of every run, as ``rows_in`` has them."""
    return {(run_id, *row) for run_id, run in references.items() for row in of(run)}


def figures_in(frame: DataFrame, names: str, figures: str) -> dict[Row, Row]:
    """The figures of each row by its names, which tell it from all others."""
    rows = frame.collect()
    found = {_cells(row, f"run_id {names}"): _cells(row, figures) for row in rows}
    assert len(found) == len(rows)
    return found


def figures_of(references: References, of: Callable[[Run], Mapping[Any, Any]]) -> dict[Row, Row]:
    """The figures of every run, as ``figures_in`` has them; doubles up to their last bits."""
    return {
        (run_id, *_several(name)): tuple(map(_close, _several(figures)))
        for run_id, run in references.items()
        for name, figures in of(run).items()
    }


def _cells(row: Any, names: str) -> Row:
    """Cells of a row; a client's value as the references write it."""
    return tuple(
        repr(msgspec.json.decode(row[name])) if name == "value" else row[name]
        for name in names.split()
    )


def _several(cells: Any) -> Row:
    return cells if isinstance(cells, tuple) else (cells,)


def _close(figure: Any) -> Any:
    return pytest.approx(figure, rel=1e-12) if isinstance(figure, float) else figure


def test_latency_quantiles_equal_reference(tables: RunTables, references: References) -> None:
    frame = latency.latency_quantiles(tables.operations)
    found = figures_in(frame, "f second type", "count p50_ms p95_ms p99_ms max_ms")
    assert found == figures_of(references, reference.latency_quantiles)


def test_throughput_equals_reference(tables: RunTables, references: References) -> None:
    found = figures_in(latency.throughput(tables.operations), "second", "ok fail info")
    assert found == figures_of(references, reference.throughput)


def test_fault_windows_equal_reference(tables: RunTables, references: References) -> None:
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
            assert found[key][name] == _close(figure), (key, name)
    # The worlds are rich enough for the comparison to mean something.
    assert sum(figures["failover_ms"] is not None for figures in expected.values()) >= 10
    assert sum(figures["failover_ms"] is None for figures in expected.values()) >= 5


def test_longest_unavailability_equals_reference(tables: RunTables, references: References) -> None:
    rows = availability.longest_unavailability(tables.operations).collect()
    found = {row["run_id"]: (row["start_ns"], row["end_ns"]) for row in rows}
    expected = {run_id: reference.longest_unavailability(run) for run_id, run in references.items()}
    assert found == {run_id: gap for run_id, gap in expected.items() if gap is not None}
    for row in rows:
        assert row["gap_ms"] == _close((row["end_ns"] - row["start_ns"]) / 1e6)


def test_lost_commits_equal_reference(tables: RunTables, references: References) -> None:
    frame = commits.lost_commits(tables.operations, tables.committed, tables.logs)
    expected = figures_of(references, reference.lost_commits)
    assert figures_in(frame, "index", "holders unknown") == expected
    assert len(expected) >= 20


def test_acknowledged_writes_equal_reference(tables: RunTables, references: References) -> None:
    frame = commits.acknowledged_writes(tables.operations).select("run_id", "index")
    assert rows_in(frame) == rows_of(
        references, lambda run: [(one.index,) for one in reference.acknowledged_writes(run)]
    )


def test_phantom_commits_equal_reference(tables: RunTables, references: References) -> None:
    frame = commits.phantom_commits(tables.operations, tables.committed)
    found = figures_in(frame, "offset epoch f key value", "reason nodes")

    def phantoms(run: Run) -> dict[Row, Row]:
        rows = reference.phantom_commits(run).items()
        return {(offset, epoch, *content): cells for (offset, epoch, content), cells in rows}

    assert found == figures_of(references, phantoms)
    assert {reason for reason, _ in found.values()} == {"failed", "duplicate"}


def test_reigns_and_overlaps_equal_reference(tables: RunTables, references: References) -> None:
    timeline = leadership.election_timeline(tables.state_events, tables.faults, tables.operations)
    leaders = leadership.reigns_of(timeline)
    assert rows_in(leaders) == rows_of(references, reference.reigns)
    overlaps = rows_in(leadership.leader_overlaps(leaders))
    assert overlaps == rows_of(references, reference.leader_overlaps)
    assert {same_epoch for *_, same_epoch in overlaps} == {True, False}


def test_election_timeline_equals_reference(tables: RunTables, references: References) -> None:
    timeline = leadership.election_timeline(tables.state_events, tables.faults, tables.operations)
    found = rows_in(timeline)
    assert found == rows_of(references, reference_findings.election_timeline)
    assert {row[5] for row in found} >= {"killed", "resigned", "run-ended"}
    assert {row[7] for row in found} == {1, 2}
    gaps = {row[6] for row in found}
    assert gaps >= {None, 0}
    assert any(gap for gap in gaps)


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
    found = rows_in(leadership.without_fault(timeline, tables.faults))
    drawn = {folder.name: Run(folder) for folder in folders}
    assert found == rows_of(drawn, reference_findings.without_fault)
    assert len(folders) < len(found) < timeline.count() - len(folders)


def test_first_divergences_equal_reference(tables: RunTables, references: References) -> None:
    found = rows_in(divergence.first_divergences(tables.committed, tables.logs))
    assert found == rows_of(references, reference_findings.first_divergences)
    assert len(found) >= 5
    assert len({row[0] for row in found}) < len(references)


def test_duplicate_commits_equal_reference(tables: RunTables, references: References) -> None:
    frame = duplicates.duplicates(tables.operations, tables.committed)
    found = figures_in(frame, "node f key value", "count expected first_offset")
    assert found == figures_of(references, reference_findings.committed_twice)
    assert {row["kind"] for row in frame.select("kind").distinct().collect()} == {"committed"}


def test_client_errors_equal_reference(tables: RunTables, references: References) -> None:
    found = figures_in(
        client_errors(tables.operations), "f node type error", "count first_ns last_ns"
    )
    assert found == figures_of(references, reference_findings.client_errors)
    assert len(found) > 10
