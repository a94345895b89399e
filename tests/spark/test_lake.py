"""A lake as Spark reads it: the runs that count, in today's schemas, wherever it lies."""

import datetime as dt
import itertools
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.gate.lake_runs import read_lake
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.latency import throughput
from splitbrain.spark_analysis.lake import commits
from splitbrain.spark_analysis.lake.commits import DataFile, Partition, RunEntry, data_name
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.hadoop_store import HadoopStore
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.reader import open_lake, open_table
from splitbrain.spark_analysis.lake.snapshot import clean, read_snapshot
from splitbrain.spark_analysis.lake.store import LocalStore, Store
from splitbrain.spark_analysis.lake.upgrades import OLDER, Older
from splitbrain.spark_analysis.lake.writing import commit
from splitbrain.spark_analysis.schemas import (
    FAULTS,
    LAKE_TABLES,
    RUNS,
    STATE_EVENTS,
    Table,
    declare,
)
from tests.lake_runs import Content, content_of, make_run, rows_of, write_results

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()


def content_by_spark(session: SparkSession, store: Store) -> dict[str, Content]:
    """The same as ``content_of``, read by Spark."""
    found: dict[str, Content] = {}
    for table, frame in zip(LAKE_TABLES, open_lake(session, store), strict=True):
        for row in rows(frame):
            of_run = found.setdefault(row["run_id"], {})
            kept = {name: row[name] for name in table.schema.names}
            text = json.dumps(kept, sort_keys=True, default=str)
            of_run.setdefault(table.name, []).append(text)
    return {
        run_id: {table: sorted(texts) for table, texts in tables.items()}
        for run_id, tables in found.items()
    }


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [
        make_run(tmp_path / "runs" / f"run-{seed}", seed=seed, system=system)
        for seed, system in ((1, "kraft"), (2, "kraft"), (3, "a system/1=é"), (4, "redis"))
    ]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "a lake")


def test_spark_reads_what_the_files_hold_also_after_changes_and_compaction(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs, commit_bytes=150_000)
    first = content_by_spark(session, store)
    assert first == content_of(store)
    assert len(first) == 4

    write_results(runs[0], "invalid")
    ingest_runs(store, runs)
    assert any(live.superseded for live in read_snapshot(store).files())
    second = content_by_spark(session, store)
    assert second == content_of(store)
    assert second != first

    compact(store)
    clean(store, grace_s=-1)
    assert content_by_spark(session, store) == second


def test_frames_have_the_declared_columns_and_the_partitions(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    lake = open_lake(session, store)
    for table, frame in zip(LAKE_TABLES, lake, strict=True):
        names = [*table.schema.names, "system", "day"]
        assert frame.columns == names
        kinds = [field.dataType for field in struct_type(table)]
        assert [field.dataType for field in frame.schema][: len(kinds)] == kinds
    systems = {row["system"] for row in rows(lake.operations.select("system").distinct())}
    assert systems == {"kraft", "redis", "unknown"}
    assert {row["day"] for row in rows(lake.runs)} == {"2026-11-21"}


def test_condition_on_the_system_reads_its_folders_alone(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    operations = open_lake(session, store).operations
    redis = operations.where(sql.col("system") == "redis")
    files = {row["f"] for row in rows(redis.select(sql.input_file_name().alias("f")).distinct())}
    assert len(files) == 1
    frame: Any = redis
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(system" in plan


def test_jobs_work_on_a_whole_lake(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    by_run: dict[str, int] = {}
    for row in rows(throughput(open_lake(session, store).operations)):
        ended = row["ok"] + row["fail"] + row["info"]
        by_run[row["run_id"]] = by_run.get(row["run_id"], 0) + ended
    expected: dict[str, int] = {}
    for row in rows_of(store, "operations"):
        expected[row["run_id"]] = expected.get(row["run_id"], 0) + (not row["final"])
    assert by_run == expected


def test_empty_lake_is_one_sentence(session: SparkSession, store: LocalStore) -> None:
    with pytest.raises(HarnessError, match="no run was committed to it"):
        open_lake(session, store)


def test_table_without_rows_is_an_empty_frame(
    session: SparkSession, store: LocalStore, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run")
    (run / "metrics.jsonl").unlink()
    ingest_runs(store, [run])
    metrics = open_lake(session, store).metrics
    assert metrics.count() == 0
    assert metrics.columns[-2:] == ["system", "day"]


# --- older schemas --------------------------------------------------------------------------


def write_older(store: Store, table: Table, columns: dict[str, list[Any]]) -> None:
    """Commit one run whose only table is of an older version, as that version wrote it."""
    commit_id, partition = commits.new_commit_id(), Partition("kraft", "2026-01-01")
    name = data_name(table.name, partition, commit_id)
    content = pa.table(columns, schema=table.schema)
    with store.writing(name) as path:
        pq.write_table(content, path)
        size = path.stat().st_size
    file = DataFile(name, table.name, table.version, partition, content.num_rows, size)
    run_id = columns["run_id"][0]
    entry = RunEntry(run_id, partition, 1, commit_id, 0, (), False, "whole")
    commit(store, commit_id, [entry], [file], began_s=time.monotonic())


def test_files_of_older_versions_are_read_beside_today_s(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    columns: dict[str, list[Any]] = {
        "index": [0, 1],
        "kind": ["cut-then-kill", "pause"],
        "target": ["leader", "n2"],
        "nodes": [["n1"], ["n2"]],
        "leader": ["n1", None],
        "invoked_ns": [1, 5],
        "verified_ns": [2, 6],
        "healing_ns": [3, 7],
        "removed_ns": [4, None],
        "resumed_ns": [None, None],
        "verified": [True, True],
        "applicable": [True, True],
    }
    write_older(store, OLDER["faults", 1].table, {"run_id": ["old", "old"], **columns})
    since = {"links": [["n1>n2"], []], "evidence": ["seen", None], "healed": [True, False]}
    write_older(store, OLDER["faults", 2].table, {"run_id": ["new", "new"], **columns, **since})
    write_older(
        store,
        OLDER["state_events", 1].table,
        {
            "run_id": ["older"],
            "node": ["n1"],
            "incarnation": [0],
            "sequence": [0],
            "kind": ["role"],
            "epoch": [3],
            "role": ["leader"],
            "leader": [1],
            "offset": [None],
            "base_offset": [None],
            "reason": [None],
            "time_ns": [9],
        },
    )
    lake = open_lake(session, store)
    faults = rows(lake.faults.where("run_id = 'old'").orderBy("index"))
    later = rows(lake.faults.where("run_id = 'new'").orderBy("index"))
    assert [row["links"] for row in later] == since["links"]
    for found in (faults, later):
        assert [row["healed"] for row in found] == [True, False]
        assert [row["ends_process"] for row in found] == ["later", None]
    assert [(row["links"], row["evidence"]) for row in faults] == [([], None)] * 2
    assert faults[0]["system"] == "kraft"
    (event,) = rows(lake.state_events.where("run_id = 'older'"))
    assert (event["epoch"], event["detail"], event["day"]) == (3, None, "2026-01-01")
    assert lake.faults.where("run_id not in ('old', 'new')").count() == 3 * len(runs)
    # Rows of an older version stay where they are, and stay readable.
    assert compact(store, target_bytes=1 << 30).older == 3
    assert open_lake(session, store).faults.where("run_id = 'old'").count() == 2


def test_runs_of_every_older_version_are_read_with_what_they_tell(
    session: SparkSession, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    columns: dict[str, list[Any]] = {
        "name": ["r"],
        "test": ["t"],
        "system_version": ["1"],
        "runtime": ["docker"],
        "workload": ["register"],
        "nemesis": ["kill"],
        "bugs": [["stale"]],
        "nodes": [["n1", "n2"]],
        "seed": [7],
        "planned_faults": [2],
        "time_limit_s": [30.0],
        "concurrency": [5],
        "rate": [None],
        "started_at": [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
        "tool_version": ["0.1"],
        "tool_commit": [None],
        "replay_of": [None],
        "outcome": ["invalid"],
        "verdict": ["invalid"],
        "vacuous": [[]],
        "exit_code": [1],
        "problems": [["p"]],
        "state": ["whole"],
        "damage_kinds": [[]],
        "damage": [[]],
        "operations": [40],
    }
    figures = {"elections": [2], "unavailability_max_ms": [3.0], "reproduce": ["sim --seed 7"]}
    since: dict[int, dict[str, list[Any]]] = {
        1: {},
        2: {"plan_digest": ["d"]},
        3: {"plan_digest": ["d"], **figures},
    }
    assert {version for name, version in OLDER if name == "runs"} == since.keys()
    for version, more in since.items():
        table = OLDER["runs", version].table
        write_older(store, table, {"run_id": [f"old-{version}"], **columns, **more})
    lake = open_lake(session, store)
    for version, more in since.items():
        (row,) = rows(lake.runs.where(sql.col("run_id") == f"old-{version}"))
        told = {"run_id": [f"old-{version}"], **columns, **more}
        assert {name: row[name] for name in told} == {name: one for name, (one,) in told.items()}
        unknown = set(RUNS.schema.names) - told.keys() - {"expected"}
        assert {row[name] for name in unknown} <= {None}
        # A planted bug was what told of an expected violation.
        assert row["expected"] is True
        assert row["system"] == "kraft"
    assert lake.runs.count() == len(runs) + len(since)
    # The gate reads the same rows without Spark.
    old = {run.run_id: run for run in read_lake(store.uri).runs}
    for version, more in since.items():
        run = old[f"old-{version}"]
        assert run.elections == more.get("elections", [None])[0]
        assert run.longest_unavailability_ms == more.get("unavailability_max_ms", [None])[0]
        assert "--seed 7" in run.reproduce


def test_every_older_version_has_a_way_to_today_s() -> None:
    for table in (FAULTS, STATE_EVENTS, *LAKE_TABLES):
        for version in range(1, table.version):
            older = OLDER[table.name, version].table
            assert (older.name, older.version) == (table.name, version)


def test_rows_go_through_every_version_between(session: SparkSession, store: LocalStore) -> None:
    number, text = pa.field("seconds", pa.int64()), pa.field("took_ms", pa.float64())
    first, second = declare("faults", 1, number), declare("faults", 2, text)
    third = declare("faults", 3, text, pa.field("slow", pa.bool_()))
    older = {
        ("faults", 1): Older(
            first, lambda rows: rows.withColumn("took_ms", sql.col("seconds") * 1000.0)
        ),
        ("faults", 2): Older(
            second, lambda rows: rows.withColumn("slow", sql.col("took_ms") > 1500)
        ),
    }
    write_older(store, first, {"run_id": ["a", "a"], "seconds": [1, 2]})
    write_older(store, second, {"run_id": ["b"], "took_ms": [7.5]})
    write_older(store, third, {"run_id": ["c"], "took_ms": [8.5], "slow": [True]})
    frame = open_table(session, store, read_snapshot(store), third, older=older)
    found = [(row["run_id"], row["took_ms"], row["slow"]) for row in rows(frame)]
    assert sorted(found) == [
        *(("a", 1000.0, False), ("a", 2000.0, True)),
        *(("b", 7.5, False), ("c", 8.5, True)),
    ]


def test_tables_of_a_later_version_are_refused(session: SparkSession, store: LocalStore) -> None:
    later = declare("faults", 99, pa.field("what", pa.string()))
    write_older(store, later, {"run_id": ["x"], "what": ["?"]})
    with pytest.raises(HarnessError, match="it holds version 99, and this splitbrain knows"):
        open_lake(session, store)


# --- lakes elsewhere ------------------------------------------------------------------------

#: Hadoop keeps a mount table once it has read it.
_MOUNTS = itertools.count()


@pytest.fixture
def elsewhere(session: SparkSession, tmp_path: Path) -> HadoopStore:
    """A lake of another scheme than file, which Hadoop serves from a folder of the test."""
    context: Any = session.sparkContext
    settings = context._jsc.hadoopConfiguration()
    name = f"test{next(_MOUNTS)}"
    settings.set(f"fs.viewfs.mounttable.{name}.link./lakes", f"file://{tmp_path}/far")
    (tmp_path / "far").mkdir()
    return HadoopStore(session, f"viewfs://{name}/lakes/night")


def test_lake_behind_a_uri_is_the_lake_in_a_folder(
    session: SparkSession, elsewhere: HadoopStore, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs, commit_bytes=1)
    assert read_snapshot(elsewhere).runs == {}
    report = ingest_runs(elsewhere, runs, commit_bytes=1)
    assert len(report.new) == 4
    assert ingest_runs(elsewhere, runs).commits == []
    assert content_of(elsewhere) == content_of(store)
    assert content_by_spark(session, elsewhere) == content_of(store)

    write_results(runs[0], "invalid")
    ingest_runs(elsewhere, runs)
    ingest_runs(store, runs)
    assert compact(elsewhere).runs == 2
    removed = clean(elsewhere, grace_s=-60)
    assert removed.commits == 3
    assert content_of(elsewhere) == content_of(store)
    assert content_by_spark(session, elsewhere) == content_of(store)


def test_torn_commit_elsewhere_counts_for_nothing(elsewhere: HadoopStore, runs: list[Path]) -> None:
    ingest_runs(elsewhere, runs[:1])
    elsewhere.write("commits/torn.json", b'{"layout":1,')
    snapshot = read_snapshot(elsewhere)
    assert snapshot.torn == ("commits/torn.json",)
    assert len(snapshot.runs) == 1


def test_what_cannot_be_written_elsewhere_is_an_error_of_one_line(elsewhere: HadoopStore) -> None:
    elsewhere.write("commits/a.json", b"a")
    with pytest.raises(
        OSError, match=r"could not write viewfs://test\d+/lakes/night/commits/a\.json"
    ):
        elsewhere.write("commits/a.json", b"b")
    assert elsewhere.read_all("commits") == {"commits/a.json": b"a"}
