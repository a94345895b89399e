"""Each job equals its plain-Python reference on randomized run folders, read twice.

All runs are analysed at once, from a lake in which one of them was replaced, so that every job is
also shown to keep runs apart.
"""

from typing import Any

import msgspec
import pytest

from splitbrain.spark_analysis.frames import RunTables
from splitbrain.spark_analysis.jobs import availability, commits, latency, leadership
from tests.spark import reference
from tests.spark.reference import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


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
    timeline = leadership.election_timeline(tables.state_events, tables.faults, tables.operations)
    leaders = leadership.reigns_of(timeline)
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
