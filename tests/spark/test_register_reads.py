"""Stale reads have the ages that the definitions give; elements read twice are told."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.analysis.run import Duplicate
from splitbrain.history.records import PairedOperation
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.stale_reads import stale_reads
from splitbrain.spark_analysis.schemas import COMMITTED, table_of
from tests.spark import reference_findings as reference
from tests.spark.operation_frames import OperationFrames

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

MS = 1_000_000


@pytest.fixture
def frame_of(session: SparkSession, tmp_path: Path) -> OperationFrames:
    return OperationFrames(session, tmp_path)


def operation(index: int, f: str, start: int, end: int | None, **fields: Any) -> PairedOperation:
    """One of register ``r``, times in ms; without an end it is open."""
    blank = PairedOperation(
        index, index, f, "r", None, None, "ok" if end is not None else "info", start * MS, None
    )
    return msgspec.structs.replace(blank, end=None if end is None else end * MS, **fields)


def drawn(draw: random.Random, size: int) -> list[PairedOperation]:
    """Writes, compare-and-sets and reads of two registers that answer as they like."""
    operations: list[PairedOperation] = []
    for index in range(size):
        f = draw.choice(["read", "read", "write", "cas"])
        start = draw.randrange(100)
        kind = draw.choice(["ok", "ok", "ok", "ok", "info", "fail"])
        end = None if kind == "info" else start + draw.randrange(1, 15)
        written = None if draw.random() < 0.03 else draw.randrange(size * 2)
        expected = draw.randrange(9)
        argument = {"read": None, "write": written, "cas": [expected, written]}[f]
        answer: Any = {
            "read": draw.choice([None, *range(size * 2)]),
            "write": written,
            "cas": [expected, written, draw.random() < 0.7],
        }[f]
        operations.append(
            operation(
                index,
                f,
                start,
                end,
                key=draw.choice(["r", None]),
                argument=argument,
                result=answer if kind == "ok" else None,
                type=kind,
            )
        )
    return operations


def test_stale_reads_equal_reference(frame_of: OperationFrames) -> None:
    draw = random.Random(3)
    runs = {f"run-{number}": drawn(draw, draw.randrange(4, 60)) for number in range(160)}
    rows = stale_reads(frame_of(runs)).collect()
    found = {(row.run_id, row["index"]): (row.age_ms, row.age_versions) for row in rows}
    assert len(found) == len(rows)
    assert found == {
        (run_id, index): age
        for run_id, operations in runs.items()
        for index, age in reference.stale_reads(operations).items()
    }
    assert len(found) > 50
    assert len({versions for _, versions in found.values()}) > 3


def test_one_stale_read_is_as_old_as_it_is(frame_of: OperationFrames) -> None:
    run = [
        operation(0, "write", 0, 10, argument="a", result="a"),
        operation(1, "write", 20, 30, argument="b", result="b"),
        operation(2, "cas", 40, 50, argument=["b", "c"], result=["b", "c", True]),
        operation(3, "read", 60, 70, result="a", node="n2"),
        operation(4, "read", 60, 70, result="c"),
        # Invoked while the second write was under way: it may still have been the first.
        operation(5, "read", 25, 35, result="a"),
    ]
    (row,) = stale_reads(frame_of({"run": run})).collect()
    assert (row["index"], row.node, row.key, row.result) == (3, "n2", "r", '"a"')
    assert (row.age_ms, row.age_versions) == (30.0, 2)


def test_an_element_that_one_read_returned_twice_is_told(
    frame_of: OperationFrames, session: SparkSession
) -> None:
    run = [
        operation(0, "add", 0, 10, argument=1),
        operation(1, "read", 20, 30, result=[1, 2, 1], node="n1"),
        operation(2, "read", 20, 30, result=[1, 2]),
        # A list that a register holds is no set.
        operation(3, "read", 20, 30, key="list", result=[7, 7]),
    ]
    nothing = session.createDataFrame([], struct_type(COMMITTED))
    found = duplicates(frame_of({"run": run}), nothing)
    assert [field.name for field in found.schema] == list(table_of(Duplicate).schema.names)
    (row,) = found.collect()
    assert (row.kind, row.key, row.value, row.node) == ("read", "r", "1", "n1")
    assert (row["count"], row.expected, row["index"]) == (2, 1, 1)


def test_a_text_and_the_number_that_it_spells_are_two_elements(
    frame_of: OperationFrames, session: SparkSession
) -> None:
    large = 10**45
    run = [
        operation(0, "add", 0, 10, argument=1),
        operation(1, "read", 20, 30, result=[1, "1", True, "true", None, "null", [1], "[1]"]),
        operation(2, "read", 20, 30, result=["1", 1, "1"]),
        operation(3, "read", 20, 30, result=[large, large + 1]),
        operation(4, "read", 20, 30, result=[None, "", None]),
    ]
    nothing = session.createDataFrame([], struct_type(COMMITTED))
    found = duplicates(frame_of({"run": run}), nothing).collect()
    assert sorted((row["index"], row.value, row["count"]) for row in found) == [
        (2, '"1"', 2),
        (4, "null", 2),
    ]
