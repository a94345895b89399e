"""Sets, queues, counters, texts, locks and topics show the anomaly that their operations prove."""

from typing import Any

import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def failed(f: str, argument: Any, start: int, end: int) -> PairedOperation:
    return operation(f, argument, start=start, end=end, outcome="fail", error="not-leader")


def named(model: str, *operations: PairedOperation) -> str:
    """Name of the violation; "valid" where there is none."""
    result = check(list(operations), model, Unlimited())
    return result.violations[0]["anomaly"] if result.violations else result.verdict.value


def ask(f: str, argument: Any, result: Any, start: int, end: int | None) -> PairedOperation:
    return operation(f, argument, result, start=start, end=end)


OTHERS: dict[str, tuple[str, str, list[PairedOperation]]] = {
    "a get without an append that others show": (
        "kv",
        "stale read",
        [ask("put", "x", None, 0, 1), ask("append", "y", None, 2, 3), ask("get", None, "x", 4, 5)],
    ),
    "an append twice": (
        "kv",
        "duplicate",
        [ask("append", "xy", None, 0, 1), ask("get", None, "xyxy", 2, 3)],
    ),
    "appends the other way round": (
        "kv",
        "reorder",
        [
            ask("append", "x", None, 0, 1),
            ask("append", "y", None, 2, 3),
            ask("get", None, "yx", 4, 5),
        ],
    ),
    "two texts of which neither goes on from the other": (
        "kv",
        "fork",
        [
            ask("append", "x", None, 0, 9),
            ask("append", "y", None, 1, 8),
            ask("get", None, "xy", 2, 7),
            ask("get", None, "yx", 3, 6),
        ],
    ),
    "an append that failed": (
        "kv",
        "dirty read",
        [
            ask("append", "x", None, 0, 1),
            failed("append", "y", 2, 3),
            ask("get", None, "xy", 4, 5),
        ],
    ),
    "an element missing": (
        "set",
        "stale read",
        [ask("add", 1, None, 0, 1), ask("add", 2, None, 2, 3), ask("read", None, [1], 4, 5)],
    ),
    "a removed element": (
        "set",
        "stale read",
        [ask("add", 1, None, 0, 1), ask("remove", 1, None, 2, 3), ask("contains", 1, True, 4, 5)],
    ),
    "an element that nobody added": (
        "set",
        "phantom value",
        [ask("add", 1, None, 0, 1), ask("read", None, [1, 7], 4, 5)],
    ),
    "two reads each with an element that the other lacks": (
        "set",
        "fork",
        [
            ask("add", 1, None, 0, 9),
            ask("add", 2, None, 1, 8),
            ask("read", None, [1], 2, 7),
            ask("read", None, [2], 3, 6),
        ],
    ),
    "two transactions each of which read what the other replaced": (
        "multi-register",
        "lost update",
        [
            ask("txn", [["r", "x", None], ["w", "x", 1]], [["r", "x", None], ["w", "x", 1]], 0, 4),
            ask("txn", [["r", "x", None], ["w", "x", 2]], [["r", "x", None], ["w", "x", 2]], 1, 5),
        ],
    ),
    "an element given out twice": (
        "fifo-queue",
        "duplicate",
        [
            ask("enqueue", 1, 1, 0, 1),
            ask("dequeue", None, 1, 2, 3),
            ask("dequeue", None, 1, 4, 5),
        ],
    ),
    "the second element first": (
        "fifo-queue",
        "reorder",
        [
            ask("enqueue", 1, 1, 0, 1),
            ask("enqueue", 2, 2, 2, 3),
            ask("dequeue", None, 2, 4, 5),
            ask("dequeue", None, 1, 6, 7),
        ],
    ),
    "nothing left of an element": (
        "unordered-queue",
        "lost write",
        [ask("enqueue", 1, 1, 0, 1), ask("dequeue", None, None, 2, 3)],
    ),
    "an element that comes after nothing": (
        "unordered-queue",
        "stale read",
        [
            ask("enqueue", 1, 1, 0, 1),
            ask("dequeue", None, None, 2, 3),
            ask("dequeue", None, 1, 4, 5),
        ],
    ),
    "one sum for two additions": (
        "counter",
        "lost update",
        [ask("add-and-get", 5, 5, 0, 3), ask("add-and-get", 5, 5, 1, 4)],
    ),
    "a sum that others have passed": (
        "counter",
        "stale read",
        [ask("add", 5, None, 0, 1), ask("read", None, 5, 2, 3), ask("read", None, 0, 4, 5)],
    ),
    "more than was added": (
        "counter",
        "phantom value",
        [ask("add", 5, None, 0, 1), ask("read", None, 10, 2, 3)],
    ),
    "a lock for two": (
        "mutex",
        "double grant of a lock",
        [ask("acquire", "a", True, 0, 1), ask("acquire", "b", True, 2, 3)],
    ),
    "a free lock that is refused": ("mutex", "wrong refusal", [ask("acquire", "a", False, 0, 1)]),
    "an old token": (
        "fenced-register",
        "stale token accepted",
        [ask("write", [2, 7], True, 0, 1), ask("write", [1, 8], True, 2, 3)],
    ),
    "a topic created twice": (
        "topics",
        "double success",
        [ask("create", 3, [3, True], 0, 1), ask("create", 5, [5, True], 2, 3)],
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_object_shows_the_anomaly(case: str) -> None:
    model, name, operations = OTHERS[case]
    assert named(model, *operations) == name


def test_an_open_dequeue_may_have_taken_what_is_missing() -> None:
    put, empty = ask("enqueue", 1, 1, 0, 1), ask("dequeue", None, None, 4, 5)
    assert named("unordered-queue", put, ask("dequeue", None, None, 2, None), empty) == "valid"
