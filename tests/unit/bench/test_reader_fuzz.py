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
from splitbrain.history.raw_operations import RawOperation
from splitbrain.history.reader import HistoryReader
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


def keys_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("reader", "raw_operations", "line_columns", "edn_columns"):
        monkeypatch.setattr(
            f"splitbrain.history.{module}.key_text", lambda key: None if key is None else str(key)
        )


def fractions_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.history.reader.whole_number", lambda value, _name: int(value))


def truth_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "splitbrain.history.importers.operations_apart", lambda told: (list(told), False)
    )


def truth_is_one_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.history.column_reader.columns_apart", lambda columns: columns)


def names_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "splitbrain.history.reader.is_nemesis", lambda process: isinstance(process, str)
    )


def torn_log_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "splitbrain.history.jepsen._is_whole_log_line", lambda _operation, _text: True
    )


def torn_line_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HistoryReader, "_decode_last", lambda _reader, _line: iter(()))


def answers_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        "splitbrain.history.importers",
        "splitbrain.checker.models.register",
        "bench.reader_fuzz.comparison",
    ):
        monkeypatch.setattr(f"{module}.wrong_shape", lambda _operation: None)


def going_back_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pairing, "_why_not_yet", lambda _event, current, _last: current and "it is at work"
    )


def keyword_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ValuesApart._CHANGES, Name, lambda _apart, name: name.text)


def set_is_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ValuesApart._CHANGES, EdnSet, lambda apart, items: [*map(apart.of, items)])


def discarded_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.history.edn._DISCARD", "#never")


def refusal_is_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(raw: RawOperation, value: Any, _argument: object) -> tuple[str, Any]:
        return raw.type, value

    monkeypatch.setattr("splitbrain.history.raw_operations.judge_cas", judge)


def info_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    complete: Callable[[Event, Event], PairedOperation] = pairing._complete

    def over(invocation: Event, completion: Event) -> PairedOperation:
        return msgspec.structs.replace(complete(invocation, completion), end=completion.time)

    monkeypatch.setattr(pairing, "_complete", over)


def last_range_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "splitbrain.harness.judge.bare_columns.line_ranges",
        lambda path, count: line_ranges(path, count + 1)[:-1],
    )


LINES = ("jsonl",)
EDN = ("edn", "jepsen-log")
#: Each bug, and the formats in whose files it is looked for.
MUTANTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], Sequence[str]], ...] = (
    (keys_as_text, ("jsonl", "edn")),
    (fractions_cut, LINES),
    (truth_is_one, ("jsonl", "edn")),
    (truth_is_one_in_columns, ("jsonl", "edn", "parquet")),
    (names_left_out, LINES),
    (torn_log_taken, ("jepsen-log",)),
    (torn_line_not_told, LINES),
    (answers_not_compared, EDN),
    (going_back_allowed, ("jsonl", "edn")),
    (keyword_is_text, EDN),
    (set_is_list, EDN),
    (discarded_is_read, EDN),
    (refusal_is_failure, EDN),
    (info_is_over, LINES),
    (last_range_lost, LINES),
)


def found(formats: Sequence[str], folder: Path) -> Iterator[Finding]:
    for number in range(FILES):
        file = file_of(SEED, number)
        if file.format in formats:
            yield from compared(file, folder / "history").findings


@pytest.mark.parametrize(("mutant", "formats"), MUTANTS)
def test_a_planted_bug_is_seen(
    mutant: Callable[[pytest.MonkeyPatch], None],
    formats: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    mutant(monkeypatch)
    assert next(found(formats, tmp_path), None) is not None
