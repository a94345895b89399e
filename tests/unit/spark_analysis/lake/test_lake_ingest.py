"""Content of a lake after an ingest: equal to the run folders, once, in bounded memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from splitbrain.harness.campaign.gate.lake_runs import read_lake
from splitbrain.harness.campaign.suite.conclusion import prune
from splitbrain.history.pairing import pair
from splitbrain.history.reader import HistoryReader
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.commits import Partition
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.snapshot import read_snapshot
from splitbrain.spark_analysis.lake.sources import find_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.lake.sweeps import ingest_sweeps
from splitbrain.spark_analysis.schemas import LAKE_TABLES, SCHEMA_METADATA_KEY
from tests.lake_runs import (
    all_tables,
    content_of,
    make_run,
    names_of,
    rows_of,
    tables_with_rows,
    the_run,
    write_results,
)
from tests.unit.harness.campaign.sweep.test_sweep import order, swept


def test_a_run_tells_of_its_elections_and_how_to_run_it_again(
    store: LocalStore, tmp_path: Path
) -> None:
    told, silent = (make_run(tmp_path / name, seed=n) for n, name in enumerate(("told", "silent")))
    line = "splitbrain test --system kraft --seed 1 --some-option 'a b'"
    write_results(told, elections=4, longest_unavailability_ms=812, reproduce=line)
    ingest_runs(store, [told, silent])
    figures = {
        row["seed"]: (row["elections"], row["unavailability_max_ms"], row["reproduce"])
        for row in rows_of(store, "runs")
    }
    assert figures == {0: (4, 812.0, line), 1: (None, None, None)}
    gated = {run.seed: run for run in read_lake(store.uri).runs}
    assert (gated[0].elections, gated[0].longest_unavailability_ms) == (4, 812)
    assert gated[0].reproduce == line
    assert gated[1].elections is None
    assert gated[1].reproduce.startswith("splitbrain test --system kraft")


def test_coverage_is_that_of_the_results(store: LocalStore, tmp_path: Path) -> None:
    names = ("kind", "role", "phase", "workload", "faults", "bitten")
    cells = [("kill", "leader", "settled", "set", 2, 2), ("pause", "down", "election", "set", 1, 0)]
    told, silent = (make_run(tmp_path / name, seed=n) for n, name in enumerate(("told", "silent")))
    write_results(told, coverage=[dict(zip(names, cell, strict=True)) for cell in cells])
    write_results(silent, coverage=None)
    ingest_runs(store, [told, silent])
    rows = rows_of(store, "coverage")
    assert [tuple(row[name] for name in names) for row in rows] == cells
    assert {row["run_id"] for row in rows} == {
        row["run_id"] for row in rows_of(store, "runs") if row["seed"] == 0
    }


def test_operations_are_those_that_pairing_finds(tmp_path: Path, store: LocalStore) -> None:
    run = make_run(tmp_path / "run", operations_per_second=40)
    ingest_runs(store, [run], batch_rows=64)
    expected = {one.index: one for one in pair(HistoryReader(RunFolder(run).history))}
    found = {row["index"]: row for row in rows_of(store, "operations")}

    assert found.keys() == expected.keys()
    assert len(found) == len(rows_of(store, "operations")) == the_run(store)["operations"]
    assert {one.type for one in expected.values()} == {"ok", "fail", "info"}
    for index, one in expected.items():
        row = found[index]
        assert (row["process"], row["f"], row["key"]) == (one.process, one.f, one.key)
        assert (row["type"], row["start_ns"], row["end_ns"]) == (one.type, one.start, one.end)
        assert (row["node"], row["error"], row["final"]) == (one.node, one.error, one.final)
        assert msgspec.json.decode(row["argument"]) == one.argument
        assert msgspec.json.decode(row["result"] or "null") == one.result
        position = (row["position_epoch"], row["position_offset"])
        assert position == (one.position or (None, None))


def test_every_table_is_written_as_declared(tmp_path: Path, store: LocalStore) -> None:
    ingest_runs(store, [make_run(tmp_path / "run")])
    files = {live.file.table: live.file for live in read_snapshot(store).files()}
    assert files.keys() == all_tables()
    (tmp_path / "sweep").mkdir()
    assert swept(order(3, output=tmp_path / "sweep"))[0] == 0
    ingest_sweeps(store, [tmp_path / "sweep"])
    files = {live.file.table: live.file for live in read_snapshot(store).files()}
    for table in LAKE_TABLES:
        with store.reading(files[table.name].name) as path:
            schema = pq.read_schema(path)
        assert schema.equals(table.schema)
        metadata = schema.metadata or {}
        assert metadata[SCHEMA_METADATA_KEY] == f"{table.name}/{table.version}".encode()
        assert files[table.name].version == table.version


def test_the_run_itself_is_a_row(tmp_path: Path, store: LocalStore) -> None:
    make_run(tmp_path / "run", verdict="invalid", system_versions={"kraft": "1.2"})
    ingest_runs(store, find_runs(tmp_path))
    row = the_run(store)
    assert (row["name"], row["test"], row["workload"]) == ("run", "kraft-register", "register")
    assert (row["system_version"], row["seed"], row["nodes"]) == ("1.2", 7, ["n1", "n2", "n3"])
    assert (row["outcome"], row["verdict"], row["state"]) == ("invalid", "invalid", "whole")
    assert row["started_at"].isoformat() == "2026-11-21T02:00:00+00:00"
    (verdict,) = rows_of(store, "verdicts")
    assert verdict["violation_count"] == 1
    assert json.loads(verdict["violations"])[0]["kind"] == "stale-read"
    assert rows_of(store, "metrics")[0]["figures"] == [("lag", 1.5)]
    fault = rows_of(store, "faults")[0]
    assert "n1>n2" in fault["links"]
    assert fault["evidence"] == "4 links cut after 212 ms"
    assert fault["healed"]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, "valid"),
        ({"vacuous": ["nothing bit"]}, "vacuous"),
        ({"interrupted": True}, "unknown"),
        ({"harness_failed": True, "vacuous": ["nothing bit"]}, "failed"),
        ({"verdict": "invalid", "harness_failed": True}, "invalid"),
        ({"verdict": "unknown"}, "unknown"),
    ],
)
def test_outcomes_have_one_word(
    tmp_path: Path, store: LocalStore, fields: dict[str, Any], outcome: str
) -> None:
    run = make_run(tmp_path / "run")
    write_results(run, **fields)
    ingest_runs(store, [run])
    assert the_run(store)["outcome"] == outcome


def test_second_ingest_changes_nothing(tmp_path: Path, store: LocalStore) -> None:
    runs = [make_run(tmp_path / f"run-{seed}", seed=seed) for seed in (1, 2)]
    first = ingest_runs(store, runs)
    before = {name: store.read_all("commits").get(name) for name in names_of(store)}
    second = ingest_runs(store, runs)
    assert (len(first.new), second.new, second.changed, second.commits) == (2, [], [], [])
    assert second.unchanged == runs
    assert {name: store.read_all("commits").get(name) for name in names_of(store)} == before


def test_run_that_was_copied_or_touched_is_the_run_that_it_was(
    tmp_path: Path, store: LocalStore
) -> None:
    run = make_run(tmp_path / "run")
    ingest_runs(store, [run])
    moved = tmp_path / "elsewhere" / "another-name"
    shutil.copytree(run, moved)
    for file in moved.rglob("*"):
        os.utime(file)
    shutil.rmtree(run)
    report = ingest_runs(store, [moved])
    assert (report.unchanged, report.commits) == ([moved], [])


def test_two_folders_of_one_run_are_one_run_and_the_fuller_one_counts(
    tmp_path: Path, store: LocalStore
) -> None:
    run = make_run(tmp_path / "b")
    shutil.copytree(run, tmp_path / "a")
    history = RunFolder(tmp_path / "a").history
    history.write_bytes(b"".join(history.read_bytes().splitlines(keepends=True)[:10]))
    report = ingest_runs(store, find_runs(tmp_path))
    assert report.copies == [(tmp_path / "a", run)]
    assert the_run(store)["operations"] > 10


def test_runs_of_one_name_and_different_plans_are_two(tmp_path: Path, store: LocalStore) -> None:
    make_run(tmp_path / "x" / "run", seed=1)
    make_run(tmp_path / "y" / "run", seed=2)
    ingest_runs(store, find_runs(tmp_path))
    rows = rows_of(store, "runs")
    assert {row["name"] for row in rows} == {"run"}
    assert len({row["run_id"] for row in rows}) == 2


def test_changed_run_takes_the_place_of_the_old_one(tmp_path: Path, store: LocalStore) -> None:
    runs = [make_run(tmp_path / f"run-{seed}", seed=seed) for seed in (1, 2)]
    ingest_runs(store, runs)
    before = content_of(store)
    write_results(runs[1], "invalid")
    report = ingest_runs(store, runs)
    assert [one.folder for one in report.changed] == [runs[1]]
    after = content_of(store)
    changed = {run_id for run_id in before if before[run_id] != after[run_id]}
    assert changed == {report.changed[0].run_id}
    (file,) = {
        live.superseded for live in read_snapshot(store).files("operations") if live.superseded
    }
    assert file == changed


def test_small_runs_share_files(tmp_path: Path, store: LocalStore) -> None:
    runs = [make_run(tmp_path / f"run-{seed}", seed=seed) for seed in range(5)]
    ingest_runs(store, runs)
    assert len(names_of(store, ["tables"])) == len(all_tables())
    apart = LocalStore(tmp_path / "apart")
    ingest_runs(apart, runs, commit_bytes=1)
    assert len(names_of(apart, ["commits"])) == 5
    assert content_of(apart) == content_of(store)


def test_partitions_are_the_system_and_the_day_of_the_plan(
    tmp_path: Path, store: LocalStore
) -> None:
    make_run(tmp_path / "a", seed=1, system="a system/1", started_at="2026-11-21T23:30:00-05:00")
    make_run(tmp_path / "b", seed=2, started_at="lately")
    ingest_runs(store, find_runs(tmp_path))
    partitions = {entry.partition for entry, _ in read_snapshot(store).runs.values()}
    assert partitions == {Partition("unknown", "2026-11-22"), Partition("kraft", "unknown")}


def test_compacted_lake_holds_the_same_in_fewer_files(tmp_path: Path, store: LocalStore) -> None:
    runs = [make_run(tmp_path / f"run-{seed}", seed=seed) for seed in range(4)]
    ingest_runs(store, runs, commit_bytes=1)
    write_results(runs[0], "invalid")
    ingest_runs(store, runs)
    before = content_of(store)
    made = compact(store, batch_rows=50)
    assert (made.runs, made.files_after) == (4, len(all_tables()))
    assert content_of(store) == before
    assert {live.superseded for live in read_snapshot(store).files()} == {frozenset()}
    assert compact(store).runs == 0
    assert ingest_runs(store, runs).commits == []


def test_run_that_changes_after_a_compaction_is_read_again(
    tmp_path: Path, store: LocalStore
) -> None:
    runs = [make_run(tmp_path / f"run-{seed}", seed=seed) for seed in range(3)]
    ingest_runs(store, runs, commit_bytes=1)
    compact(store)
    write_results(runs[2], "invalid")
    report = ingest_runs(store, runs)
    assert [one.folder for one in report.changed] == [runs[2]]
    outcomes = sorted(row["outcome"] for row in rows_of(store, "runs"))
    assert outcomes == ["invalid", "valid", "valid"]


def test_run_folders_are_found_and_lakes_and_links_are_not(tmp_path: Path) -> None:
    run = make_run(tmp_path / "test" / "run")
    (tmp_path / "latest").symlink_to(run)
    lake = LocalStore(tmp_path / "lake")
    ingest_runs(lake, [run])
    (tmp_path / ".hidden").mkdir()
    shutil.copytree(run, tmp_path / ".hidden" / "run")
    assert list(find_runs(tmp_path)) == [run]
    assert list(find_runs(run)) == [run]


def test_tables_without_rows_have_no_file(tmp_path: Path, store: LocalStore) -> None:
    run = make_run(tmp_path / "run")
    RunFolder(run).metrics.unlink()
    ingest_runs(store, [run])
    (content,) = content_of(store).values()
    assert tables_with_rows(content) == all_tables() - {"metrics"}
    assert not any("/metrics/" in name for name in names_of(store))


def test_what_a_suite_throws_away_stays_in_the_lake(tmp_path: Path, store: LocalStore) -> None:
    run = make_run(tmp_path / "run")
    ingest_runs(store, [run])
    before = content_of(store)
    prune(run, is_program=False)
    assert not RunFolder(run).history.exists()
    report = ingest_runs(store, [run])
    assert (report.unchanged, report.changed) == ([run], [])
    assert content_of(store) == before


pytestmark = pytest.mark.timeout(300)
#: Prints the greatest resident size, MiB, of a process that ingests a run.
_CHILD = """
import resource, sys
from pathlib import Path
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.lake.sweeps import ingest_sweeps

ingest_runs(LocalStore(Path(sys.argv[2])), [Path(sys.argv[1])], batch_rows=5_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write_long_history(root: Path, operations: int) -> None:
    """Ten clients, one write after another."""
    with RunFolder(root).history.open("w") as file:
        for number in range(operations):
            slot, at = number % 10, number * 1_000
            fields = f'"process":{slot},"f":"write","key":"r{slot}","value":{number}'
            file.write(f'{{"index":{2 * number},"time":{at},"type":"invoke",{fields}}}\n')
            file.write(f'{{"index":{2 * number + 1},"time":{at + 500},"type":"ok",{fields}}}\n')


def peak_mib(tmp_path: Path, operations: int) -> float:
    root = make_run(tmp_path / f"run-{operations}")
    write_long_history(root, operations)
    made = subprocess.run(
        [sys.executable, "-c", _CHILD, root, tmp_path / f"lake-{operations}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(made.stdout)


def test_memory_is_bounded_by_the_batch_not_by_the_run(tmp_path: Path) -> None:
    short, long = peak_mib(tmp_path, 20_000), peak_mib(tmp_path, 200_000)
    # Ten times as many operations would be 180,000 rows more at about 1 KiB each.
    assert long < short + 25
