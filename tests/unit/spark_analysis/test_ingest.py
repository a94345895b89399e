"""Ingest: what stands in the tables, idempotence, atomicity, damage, bounded memory. No Spark."""

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import run_rows
from splitbrain.spark_analysis.ingest import ingest, table_folder
from splitbrain.spark_analysis.schemas import (
    COMMITTED,
    FAULTS,
    INGESTED_TABLES,
    LOGS,
    OPERATIONS,
    SCHEMA_METADATA_KEY,
    STATE_EVENTS,
    Table,
)
from splitbrain.spark_analysis.table_writer import PART_FILE, replace_table
from tests.spark.reference import Run
from tests.spark.run_folders import Shape, World


def part(folder: Path, table: Table) -> Path:
    return table_folder(RunFolder(folder), table) / PART_FILE


def rows(folder: Path, table: Table) -> list[dict[str, Any]]:
    return pq.read_table(part(folder, table)).to_pylist()


def content(folder: Path) -> dict[str, bytes]:
    return {table.name: part(folder, table).read_bytes() for table in INGESTED_TABLES}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return World(Shape(seed=5, seconds=3.0, positionless=0.1)).write(tmp_path / "run")


def test_operations_hold_each_paired_operation_once(folder: Path) -> None:
    ingested = ingest(folder, batch_rows=100)
    expected = Run(folder).operations
    found = {row["index"]: row for row in rows(folder, OPERATIONS)}

    assert ingested.rows["operations"] == len(found) == len(expected)
    for one in expected:
        row = found[one.index]
        assert row["run_id"] == "run"
        assert (row["process"], row["f"], row["key"]) == (one.process, one.f, one.key)
        assert (row["type"], row["start_ns"], row["end_ns"]) == (one.type, one.start, one.end)
        assert msgspec.json.decode(row["argument"]) == one.argument
        result = one.result if one.type == "ok" else None
        assert (row["result"] is None) == (one.type != "ok")
        assert msgspec.json.decode(row["result"] or "null") == result
        position = None if one.position is None else tuple(one.position)
        found_position = (row["position_epoch"], row["position_offset"])
        assert found_position == (position or (None, None))
        assert (row["node"], row["error"], row["final"]) == (one.node, one.error, one.final)


def test_files_carry_schema_and_version(folder: Path) -> None:
    ingest(folder)
    for table in INGESTED_TABLES:
        schema = pq.read_schema(part(folder, table))
        assert schema.equals(table.schema)
        assert schema.metadata[SCHEMA_METADATA_KEY] == f"{table.name}/{table.version}".encode()


def test_fault_phases_stand_side_by_side(folder: Path) -> None:
    ingest(folder)
    by_index = {row["index"]: row for row in rows(folder, FAULTS)}
    injected, not_applicable, not_bitten = by_index[0], by_index[3], by_index[4]

    assert injected["verified"]
    times = [injected[f"{phase}_ns"] for phase in ("invoked", "verified", "healing", "removed")]
    assert times == sorted(times)
    assert not not_applicable["applicable"]
    assert not_applicable["invoked_ns"] is None
    assert not_bitten["applicable"]
    assert not not_bitten["verified"]
    assert not_bitten["nodes"] == ["n3"]


def test_second_ingest_changes_nothing(folder: Path) -> None:
    first = ingest(folder)
    before = {table.name: part(folder, table).stat().st_mtime_ns for table in INGESTED_TABLES}
    assert ingest(folder) == first
    after = {table.name: part(folder, table).stat().st_mtime_ns for table in INGESTED_TABLES}
    assert after == before


def test_ingest_anew_gives_the_same_bytes(folder: Path) -> None:
    ingest(folder)
    before = content(folder)
    RunFolder(folder).ingest_manifest.unlink()
    ingest(folder)
    assert content(folder) == before


def test_run_that_grew_is_ingested_again(folder: Path) -> None:
    before = ingest(folder).rows["faults"]
    faults = RunFolder(folder).faults
    line = msgspec.json.decode(faults.read_bytes().splitlines()[0]) | {"index": 77}
    with faults.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
    assert ingest(folder).rows["faults"] == before + 1


def test_crash_in_the_middle_leaves_every_table_whole_and_is_made_good(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(folder)
    before = content(folder)
    history = RunFolder(folder).history
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(lines[: len(lines) // 2]))

    def crash(*arguments: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run_rows, "state_event_rows", crash)
        with pytest.raises(KeyboardInterrupt):
            ingest(folder)
    half = content(folder)
    assert half["operations"] != before["operations"]
    assert {name: half[name] for name in ("state_events", "committed", "logs")} == {
        name: before[name] for name in ("state_events", "committed", "logs")
    }
    assert len(rows(folder, STATE_EVENTS)) > 0

    ingested = ingest(folder)
    assert ingested.rows["operations"] == len(rows(folder, OPERATIONS))
    leftovers = [path for path in folder.rglob("*") if path.name.startswith(".")]
    assert leftovers == []


def test_failed_rewrite_leaves_the_old_table(tmp_path: Path) -> None:
    with replace_table(LOGS, tmp_path) as writer:
        writer.add(("run", "n1", 0, 10))
    before = (tmp_path / PART_FILE).read_bytes()
    written: list[int] = []

    def write_and_fail() -> None:
        with replace_table(LOGS, tmp_path, batch_rows=1) as writer:
            writer.add(("run", "n2", 0, 10))
            written.append(writer.row_count)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert written == [1]
    assert (tmp_path / PART_FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [PART_FILE]


def test_missing_files_give_empty_tables(tmp_path: Path) -> None:
    ingested = ingest(tmp_path)
    assert set(ingested.rows.values()) == {0}
    assert ingested.damage == ("history.jsonl is missing.",)
    for table in INGESTED_TABLES:
        assert rows(tmp_path, table) == []


def test_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="there is no such folder"):
        ingest(tmp_path / "gone")


def test_torn_last_lines_are_left_out_and_the_history_s_is_told(tmp_path: Path) -> None:
    whole = World(Shape(seed=6, seconds=2.0)).write(tmp_path / "whole")
    torn = World(Shape(seed=6, seconds=2.0, torn=True)).write(tmp_path / "torn")
    assert ingest(whole).damage == ()
    ingested = ingest(torn)
    assert ingested.damage == ("The last line of history.jsonl is torn.",)
    assert ingested.rows == ingest(whole).rows


def test_operations_cut_off_by_a_dead_harness_are_open(folder: Path) -> None:
    history = RunFolder(folder).history
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(lines[:101]))
    ingest(folder)
    open_rows = [row for row in rows(folder, OPERATIONS) if row["end_ns"] is None]
    assert open_rows
    assert {row["type"] for row in open_rows} == {"info"}


def test_history_broken_in_the_middle_is_taken_up_to_there(folder: Path) -> None:
    history = RunFolder(folder).history
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join([*lines[:200], b"{broken}\n", *lines[200:]]))
    ingested = ingest(folder)
    assert 0 < ingested.rows["operations"] <= 200
    (told,) = ingested.damage
    assert "up to a broken place" in told
    assert "line 201" in told


def test_completion_of_nothing_is_damage_not_a_row(folder: Path) -> None:
    history = RunFolder(folder).history
    lines = history.read_bytes().splitlines(keepends=True)
    completion = next(line for line in lines if b'"type":"ok"' in line)
    history.write_bytes(completion + b"".join(lines))
    ingested = ingest(folder)
    assert ingested.rows["operations"] == 0
    assert "has invoked nothing" in ingested.damage[0]


def test_log_dump_that_stops_before_its_end_counts_as_none(folder: Path) -> None:
    log = RunFolder(folder).root / "nodes" / "n2" / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    ingested = ingest(folder)
    by_node = {row["node"]: row for row in rows(folder, LOGS)}
    assert by_node["n1"]["start_offset"] == 0
    assert by_node["n2"]["start_offset"] is None
    assert "nodes/n2/log.jsonl stops at offset" in ingested.damage[0]


def test_empty_log_dump_is_a_log(folder: Path) -> None:
    log = RunFolder(folder).root / "nodes" / "n2" / "log.jsonl"
    log.write_bytes(b'{"node":"n2","start_offset":0,"end_offset":0}\n')
    assert ingest(folder).damage == ()
    by_node = {row["node"]: row for row in rows(folder, LOGS)}
    assert (by_node["n2"]["start_offset"], by_node["n2"]["end_offset"]) == (0, 0)
    assert {row["node"] for row in rows(folder, COMMITTED)} == {"n1", "n3"}


def test_memory_is_bounded_by_the_batch_not_by_the_run(tmp_path: Path) -> None:
    small = World(Shape(seed=8, seconds=5.0, faults=0, pace_ms=2.0)).write(tmp_path / "small")
    history = RunFolder(small).history
    events = [msgspec.json.decode(line) for line in history.read_bytes().splitlines()]
    long = tmp_path / "long"
    long.mkdir()
    # The same minute of work, ten times.
    with RunFolder(long).history.open("wb") as file:
        for repeat in range(10):
            for event in events:
                event["index"] += len(events) if repeat else 0
                event["process"] += 2_000_000 if repeat else 0
                file.write(msgspec.json.encode(event) + b"\n")

    def peak_bytes(folder: Path) -> int:
        tracemalloc.start()
        try:
            ingest(folder, batch_rows=500)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    first = peak_bytes(small)
    assert ingest(small).rows["operations"] > 5000
    assert peak_bytes(long) < 1.5 * first + 2_000_000
