"""The histories that checkers are measured on are what they are said to be."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench import checker_cases, checkers
from bench.checker_cases import CASES, histories
from bench.histories import HistoryOptions, generate, with_stale_read
from bench.history_columns import columns_of, load, save, write_events
from splitbrain.history.importers import load as load_history
from splitbrain.history.pairing import pair
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable


def facts(operations: list[PairedOperation]) -> list[tuple[Any, ...]]:
    """Return the part of each operation that is to survive the columns."""
    return [(o.process, o.f, o.key, o.argument, o.result, o.type, o.end) for o in operations]


@pytest.mark.parametrize("info", [0.0, 0.3])
def test_columns_hold_the_whole_history(info: float, tmp_path: Path) -> None:
    operations = generate(HistoryOptions(200, 5, keys=3, info=info))
    save(columns_of("name", operations, "cas-register"), tmp_path / "history.npz")
    assert facts(load(tmp_path / "history.npz").to_operations()) == facts(operations)


def test_events_hold_the_whole_history(tmp_path: Path) -> None:
    operations = generate(HistoryOptions(200, 5, keys=3, info=0.2))
    write_events(operations, tmp_path / "history.jsonl")
    assert facts(pair(load_history(tmp_path / "history.jsonl").events)) == facts(operations)


def test_a_history_is_valid_until_a_stale_read_is_planted() -> None:
    planted = 0
    for seed in range(60):
        operations = generate(HistoryOptions(12, 2, values=3, seed=seed))
        assert linearizable(operations, "cas-register")
        try:
            spoiled = with_stale_read(Random(seed), operations)
        except ValueError:
            continue
        planted += 1
        assert not linearizable(spoiled, "cas-register")
    assert planted > 20


def test_a_row_generates_no_more_histories_than_asked_for() -> None:
    (case,) = (case for case in CASES if case.name == "cas-20-1k-stale")
    assert [name for name, _, _ in histories(case, 2)] == [
        "cas-20-1k-stale seed 0",
        "cas-20-1k-stale seed 1",
    ]


def test_a_wrong_verdict_is_named_and_a_late_one_does_not_count_as_decided() -> None:
    case = checker_cases.Case("x", "", "", HistoryOptions(1, 1), stale=True)
    answers = [
        {"name": "a", "verdict": "valid", "cpu_s": 0.1, "peak_mib": 1},
        {"name": "b", "verdict": "invalid", "cpu_s": 9.0, "peak_mib": 2},
        {"name": "c", "verdict": "unknown", "cpu_s": 1.0, "peak_mib": 3},
    ]
    cells = checkers.summarise(case, answers, 1.0, {})
    assert cells["wrong"] == ["a"]
    assert (cells["decided"], cells["histories"], cells["peak_mib"]) == (1, 3, 3)
