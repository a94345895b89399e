"""The readers agree with the plain ones on a thousand files, and each planted bug is seen."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.reader_fuzz.comparison import Finding, compared
from bench.reader_fuzz.fuzzing import file_of, looked_at
from splitbrain.harness.judge.bare_columns import line_ranges
from splitbrain.history import pairing
from splitbrain.history.edn_values import EdnSet, Name
from splitbrain.history.identity import ValuesApart
from splitbrain.history.records import Event, PairedOperation

SEED = 1
#: A planted bug is met among so many files.
FILES = 2_000


def test_the_readers_and_the_plain_ones_agree() -> None:
    tally = looked_at(SEED, range(500))
    assert tally.differences == []
    # Kinds of files: each format, columns, violations, and files that are refused.
    for name in ("jsonl", "edn", "kv", "jepsen-log", "parquet", "etcd-robustness"):
        assert tally.counts[name] > 10
    assert tally.counts["read by both"] > 200
    assert tally.counts["read as columns"] > 25
    assert tally.counts["without an order"] > 25


COMPLETE: Callable[[Event, Event], PairedOperation] = pairing._complete


def complete_and_over(invocation: Event, completion: Event) -> PairedOperation:
    return msgspec.structs.replace(COMPLETE(invocation, completion), end=completion.time)


def key_as_text(key: object) -> str | None:
    return None if key is None else str(key)


def apart(kind: type, change: Callable[[ValuesApart, Any], object]) -> dict[type, Any]:
    return {**ValuesApart._CHANGES, kind: change}


HISTORY, CHANGES = "splitbrain.history", "splitbrain.history.identity.ValuesApart._CHANGES"
RANGES = "splitbrain.harness.judge.bare_columns.line_ranges"
SHAPES = (
    "splitbrain.history.importers",
    "splitbrain.checker.models.register",
    "bench.reader_fuzz.comparison",
)
KEYS = ("reader", "raw_operations", "line_columns", "edn_columns")
LINES, BOTH = ("jsonl",), ("jsonl", "edn")
EDN = ("edn", "jepsen-log")
#: Each bug: the formats in whose files it is looked for, and what stands in the place of what.
MUTANTS: dict[str, tuple[Sequence[str], dict[str, Any]]] = {
    "keys as text": (BOTH, {f"{HISTORY}.{module}.key_text": key_as_text for module in KEYS}),
    "fractions cut": (LINES, {f"{HISTORY}.reader.whole_number": lambda value, _name: int(value)}),
    "truth is one": (
        BOTH,
        {f"{HISTORY}.importers.operations_apart": lambda operations: (list(operations), False)},
    ),
    "truth is one in columns": (
        (*BOTH, "parquet"),
        {f"{HISTORY}.column_reader.columns_apart": lambda columns: columns},
    ),
    "names left out": (
        LINES,
        {f"{HISTORY}.reader.is_nemesis": lambda process: isinstance(process, str)},
    ),
    "torn log taken": (
        ("jepsen-log",),
        {f"{HISTORY}.jepsen._is_whole_log_line": lambda _operation, _text: True},
    ),
    "torn line not told": (
        LINES,
        {f"{HISTORY}.reader.HistoryReader._decode_last": lambda _reader, _line: iter(())},
    ),
    "answers not compared": (
        EDN,
        {f"{module}.wrong_shape": lambda _operation: None for module in SHAPES},
    ),
    "going back allowed": (
        BOTH,
        {f"{HISTORY}.pairing._why_not_yet": lambda _, current, __: current and "it is at work"},
    ),
    "keyword is text": (EDN, {CHANGES: apart(Name, lambda _apart, name: name.text)}),
    "set is list": (EDN, {CHANGES: apart(EdnSet, lambda all_, items: [*map(all_.of, items)])}),
    "discarded is read": (EDN, {f"{HISTORY}.edn._DISCARD": "#never"}),
    "refusal is failure": (
        EDN,
        {f"{HISTORY}.raw_operations.judge_cas": lambda raw, value, _argument: (raw.type, value)},
    ),
    "info is over": (LINES, {f"{HISTORY}.pairing._complete": complete_and_over}),
    "last range lost": (LINES, {RANGES: lambda path, count: line_ranges(path, count + 1)[:-1]}),
}


def found(formats: Sequence[str], folder: Path) -> Iterator[Finding]:
    for number in range(FILES):
        file = file_of(SEED, number)
        if file.format in formats:
            yield from compared(file, folder / "history").findings


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    formats, replacements = MUTANTS[name]
    for path, replacement in replacements.items():
        monkeypatch.setattr(path, replacement)
    assert next(found(formats, tmp_path), None) is not None
