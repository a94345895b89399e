"""Transactions that are read into columns come out as those that are read as objects."""

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.column_parts import answered
from splitbrain.checker.transactions.levels import LEVELS, Kind
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge import bare_judging
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.history.column_reader import read_columns
from splitbrain.history.columns import ColumnOperations, OperationColumns
from splitbrain.history.event_columns import paired_columns
from splitbrain.history.importers import load
from splitbrain.history.line_columns import joined, line_ranges, read_range
from splitbrain.history.pairing import events_of
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.small_transactions import random_transactions, transaction
from tests.unit.harness.judge.test_column_checking import LIMITS, told, write

KINDS: tuple[Kind, ...] = ("list-append", "rw-register")


def columns_in(path: Path) -> OperationColumns:
    columns = read_columns(path, are_transactions=True)
    assert columns is not None
    return columns


def read_by_ranges(path: Path) -> OperationColumns:
    ranges = [read_range(each) for each in line_ranges(path, 4, are_transactions=True)]
    assert len(ranges) > 1
    columns = paired_columns(joined([each for each in ranges if each is not None]))
    assert columns is not None
    return columns


def write_spaced(path: Path, operations: list[PairedOperation]) -> Path:
    """As other writers of JSON do it."""
    lines = [json.dumps(msgspec.to_builtins(event)) for event in events_of(operations)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def long_history(random: Random, kind: Kind) -> list[PairedOperation]:
    """Several short ones, one behind the other, on keys of their own or on the same."""
    found: list[PairedOperation] = []
    for number in range(random.randint(1, 4)):
        key: Any = {"x": number, "y": f"y{number}", "z": "z"}
        shift = 100 * number

        def moved(parts: Any, key: Any = key, shift: int = shift) -> Any:
            return parts and [
                [f, key[name], [e + shift for e in v] if isinstance(v, list) else v and v + shift]
                for f, name, v in parts
            ]

        base = max((o.end or o.start for o in found), default=0) + random.choice((0, 1))
        for o in random_transactions(random, kind):
            fields: dict[str, Any] = {
                "index": len(found),
                "process": o.process + 10 * number,
                "argument": moved(o.argument),
                "result": moved(o.result),
                "start": base + max(o.start, 0),
                "end": None if o.end is None else base + max(o.end, 0),
                "final": random.random() < 0.2,
            }
            found.append(msgspec.structs.replace(o, **fields))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_judged_as_objects(kind: Kind, tmp_path: Path) -> None:
    random = Random(f"columns {kind}")
    verdicts: set[Verdict] = set()
    for number in range(80):
        put = random.choice((write, write_spaced))
        path = put(tmp_path / f"{number}.jsonl", long_history(random, kind))
        level = random.choice([*LEVELS])
        objects = load(path).operations
        expected = check(objects, Unlimited(), kind, level)
        for columns in (columns_in(path), read_by_ranges(path)):
            assert answered(columns, kind) is not None
            operations = ColumnOperations(columns)
            assert [*operations] == objects
            assert check(operations, Unlimited(), kind, level) == expected
        verdicts.add(expected.verdict)
    assert {Verdict.VALID, Verdict.INVALID} <= verdicts


def appended(number: int, *parts: list[Any], **fields: Any) -> PairedOperation:
    return transaction(number, [*parts], 10 * number, 10 * number + 15, process=number, **fields)


@pytest.mark.parametrize("seen", [[1], [2]])
def test_a_large_file_is_judged_as_a_small_one(
    seen: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = [
        appended(0, ["append", "x", 1]),
        appended(1, ["append", "x", 2], outcome="fail"),
        appended(2, ["r", "x", seen], ["append", "y", 3]),
    ]
    path = write(tmp_path / "history.jsonl", history)
    results: list[Any] = []
    for size in (0, 1 << 60):
        monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", size)
        judged = judge_history(path, "list-append", None, LIMITS)
        assert judged.verdict is (Verdict.VALID if seen == [1] else Verdict.INVALID)
        results.append(told(judged))
    assert results[0] == results[1]


ODD: dict[str, tuple[Kind, list[list[Any]], Any]] = {
    "another function": ("list-append", [["incr", "x", 1]], [["incr", "x", 1]]),
    "a write of the other kind": ("rw-register", [["append", "x", 1]], [["append", "x", 1]]),
    "two items": ("list-append", [["r", "x"]], [["r", "x"]]),
    "a read of no list": ("list-append", [["r", "x", None]], [["r", "x", 3]]),
    "a read of a list": ("rw-register", [["r", "x", None]], [["r", "x", [3]]]),
    "a write of nothing": ("list-append", [["append", "x", None]], [["append", "x", None]]),
    "a write of a list": ("list-append", [["append", "x", [1]]], [["append", "x", [1]]]),
    "a value that is written twice": (
        "rw-register",
        [["w", "x", 9], ["w", "x", 9]],
        [["w", "x", 9], ["w", "x", 9]],
    ),
    "another key": ("list-append", [["r", "x", None]], [["r", "y", None]]),
    "another value": ("list-append", [["append", "x", 1]], [["append", "x", 2]]),
    "another number of parts": ("list-append", [["r", "x", None]], []),
    "no answer": ("list-append", [["r", "x", None]], None),
    "a question with a value": ("list-append", [["r", "x", [1]]], [["r", "x", [1]]]),
    "no key": ("list-append", [["r", None, None]], [["r", None, None]]),
    "a truth for a key": ("list-append", [["r", True, None]], [["r", True, None]]),
    "a fraction": ("rw-register", [["w", "x", 1.5]], [["w", "x", 1.5]]),
    "a fraction in a list": ("list-append", [["r", "x", None]], [["r", "x", [1, 2.0]]]),
    "a truth in a list": ("list-append", [["r", "x", None]], [["r", "x", [True]]]),
    "a text in a list": ("list-append", [["r", "x", None]], [["r", "x", ["a"]]]),
    "a list in a list": ("list-append", [["r", "x", None]], [["r", "x", [[1]]]]),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_left_to_who_can_tell(name: str, tmp_path: Path) -> None:
    kind, argument, result = ODD[name]
    operation = msgspec.structs.replace(appended(0), argument=argument, result=result)
    columns = read_columns(write(tmp_path / "odd.jsonl", [operation]), are_transactions=True)
    assert columns is None or answered(columns, kind) is None


def test_operations_that_are_no_transactions_are_left_to_who_can_tell(tmp_path: Path) -> None:
    operation = msgspec.structs.replace(appended(0, ["append", "x", 1]), f="read")
    columns = columns_in(write(tmp_path / "odd.jsonl", [operation]))
    assert answered(columns, "list-append") is None
