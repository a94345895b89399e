"""Keys that print alike are two on Spark as well, from the lines of a history on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.cli import main as cli
from splitbrain.history.importers import load
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs.linearizability import part_verdicts
from splitbrain.spark_analysis.schemas import OPERATIONS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

KEYS = [1, "1", True, "true", ":x", '"1"', "plain", [1, 2], "[1 2]"]


def run_folder(root: Path, keys: Sequence[Any]) -> RunFolder:
    """A run in which each key is written once, with its own place as value, and read."""
    root.mkdir()
    lines: list[bytes] = []
    for number, key in enumerate(keys):
        for f, type_, value in (
            ("write", "invoke", number),
            ("write", "ok", number),
            ("read", "invoke", None),
            ("read", "ok", number),
        ):
            event = {"index": len(lines), "time": len(lines), "process": 0, "f": f}
            lines.append(msgspec.json.encode({**event, "type": type_, "key": key, "value": value}))
    folder = RunFolder(root)
    folder.history.write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def test_keys_that_print_alike_are_apart_in_tables_jobs_and_verdicts(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "run", KEYS)
    ingest(folder.root)
    told = [operation.key for operation in load(folder.history).operations]
    assert len(set(told)) == len(KEYS)
    assert pq.read_table(folder.operations)["key"].to_pylist() == told
    # The table is judged as the history is: what was read of a key is what was written to it.
    table = str(folder.operations)
    assert cli.run(["check", table, "--model", "register"]) == 0
    frame = session.read.schema(struct_type(OPERATIONS)).parquet(table)
    rows = part_verdicts(frame, "register").collect()
    assert {row.key for row in rows} == set(told)
    assert {row.verdict for row in rows} == {Verdict.VALID.value}


def test_truths_are_no_numbers_to_a_job(session: SparkSession, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ["a"])
    lines = folder.history.read_bytes().splitlines(keepends=True)
    read = msgspec.json.decode(lines[3])
    lines[3] = msgspec.json.encode({**read, "value": False}) + b"\n"
    folder.history.write_bytes(b"".join(lines))
    ingest(folder.root)
    frame = session.read.schema(struct_type(OPERATIONS)).parquet(str(folder.operations))
    (row,) = part_verdicts(frame, "register").collect()
    assert row.verdict == Verdict.INVALID.value
