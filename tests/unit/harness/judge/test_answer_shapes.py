"""An answer that says something else than was asked is refused with its line, in every model.

Each is tried as columns, as a large file is read, and as objects; with every value equal to itself
only: ``true`` is not ``1``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.history.errors import HistoryError
from tests.unit.harness.in_process import run_parts_here

LIMITS = Limits(30, 1024, 1)
#: Answers to what is asked for with one value, and those that are none.
DONE = (None, 1, 1.0)
OTHER = (2, True, "1", [1], {"1": 1}, False)
TXN = [["r", "x", None], ["w", "y", 1]]

ANSWERS: tuple[tuple[str, str, Any, tuple[Any, ...], tuple[Any, ...]], ...] = (
    ("register", "write", 1, DONE, OTHER),
    ("cas-register", "write", 1, DONE, OTHER),
    ("cas-register", "write", [1, {"a": True}], (None, [1, {"a": True}]), ([1, {"a": 1}], [1])),
    (
        "cas-register",
        "cas",
        [None, 1],
        (None, [None, 1], [None, 1, True], [None, 1.0, True]),
        ([None, 2, True], [0, 1, True], [None, True, True], [None, 1, 1], [None, 1, True, 1], True),
    ),
    ("multi-register", "txn", TXN, (TXN,), ([["r", "x", None], ["w", "y", True]], TXN[:1], None)),
    ("kv", "put", "a", (None, "a"), ("b", "", True)),
    ("kv", "append", "a", (None, "a"), ("b", ["a"])),
    ("kv", "get", None, (None, ""), (0, False, [])),
    ("counter", "add", 1, DONE, OTHER),
    ("counter", "add-and-get", 1, (1, 1.0), ("1", True, [1])),
    ("counter", "read", None, (0, None), ("0", False, [])),
    ("set", "add", 1, DONE, OTHER),
    ("set", "remove", 1, DONE, OTHER),
    ("set", "contains", 1, (False,), ("no", None, 0, "false", [])),
    ("set", "read", None, ([], None), (0, "", {}, False)),
    ("fifo-queue", "enqueue", 1, DONE, OTHER),
    ("unordered-queue", "enqueue", 1, DONE, OTHER),
    ("mutex", "acquire", "a", (None, True, 7, "a", ["a", 1, True]), ("no", "b", [], ["a", False])),
    (
        "fenced-register",
        "write",
        [1, 5],
        (None, True, [1, 5], [1, 5, True]),
        ([1, 6, True], [2, 5], "no", [1, 5, "no"], [True, 5, True], 5),
    ),
    ("topics", "create", 3, ([3, True],), ([3, "yes"], [2, True], 3, True, None)),
    ("topics", "delete", None, (False,), ("no", None, 0, [])),
    ("topics", "describe", None, (None,), ("3", False, [3])),
    ("set-full", "add", 1, DONE, OTHER),
    ("set-full:stale-reads-allowed", "read", None, ([],), (0, "", {})),
    ("counter-bounds", "add", 1, DONE, OTHER),
    ("bank", "read", None, ({"a": 1},), ([1], None, 5)),
    ("bank:total=1", "read", None, ({"a": 1},), ([1],)),
    ("queue-totals", "enqueue", 1, (*DONE, False), (2, True, "1")),
    ("queue-totals", "drain", None, ([], None), (0, "", {})),
    ("unique-ids", "generate", None, ("a", 0, False), (None,)),
    ("sessions", "write", 1, DONE, OTHER),
    ("sessions", "add", 1, DONE, OTHER),
    ("fencing", "write", [1, 5], (None, True, [1, 5, True]), ([1, 6, True], "no")),
    ("fencing", "acquire", None, (None, True, 7), ("no", ["a"])),
)


@pytest.fixture(params=[0, 1 << 60], ids=["columns", "objects"], autouse=True)
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.harness.judge.bare_judging.COLUMNS_FROM_BYTES", request.param)
    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", run_parts_here)


def history(path: Path, *operations: tuple[str, Any, Any]) -> Path:
    """Operations one after the other, each by a process of its own, as our recorder writes them."""
    events = [
        {
            "index": 2 * n + done,
            "time": 2 * n + done,
            "process": n,
            "f": f,
            "key": None,
            "type": ("invoke", "ok")[done],
            "value": (asked, answer)[done],
            "node": None,
            "error": None,
            "position": None,
            "final": False,
        }
        for n, (f, asked, answer) in enumerate(operations)
        for done in (0, 1)
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.mark.parametrize(("model", "f", "asked", "good", "bad"), ANSWERS)
def test_an_answer_is_of_its_kind(
    tmp_path: Path, model: str, f: str, asked: Any, good: tuple[Any, ...], bad: tuple[Any, ...]
) -> None:
    for answer in good:
        found = judge_history(
            history(tmp_path / "h.jsonl", (f, asked, answer)), model, None, LIMITS
        )
        assert found.verdict.value in ("valid", "unknown"), answer
    for answer in bad:
        path = history(tmp_path / "h.jsonl", (f, asked, answer))
        with pytest.raises(HistoryError) as caught:
            judge_history(path, model, None, LIMITS)
        assert f"the {f} of process 0, event 0: " in str(caught.value), answer
        assert caught.value.line == 1


def test_one_odd_answer_among_many_is_found(tmp_path: Path) -> None:
    writes = [("write", n, n if n % 3 else None) for n in range(200)]
    path = history(tmp_path / "h.jsonl", *writes, ("write", 7, 8), *writes)
    with pytest.raises(HistoryError, match="it is asked 7 and answers 8") as caught:
        judge_history(path, "register", None, LIMITS)
    assert caught.value.line == 401


def test_what_failed_is_not_looked_at(tmp_path: Path) -> None:
    path = history(tmp_path / "h.jsonl", ("write", 1, "no"))
    path.write_text(path.read_text().replace('"ok"', '"fail"'))
    assert judge_history(path, "register", None, LIMITS).exit_code == 0
