"""A violation of a history's beginning is one of the whole, and is found before the end."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import is_for_good
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.run.beginning import Beginning
from splitbrain.harness.run.beginning_judge import BeginningJudge, Task
from splitbrain.history.pairing import events_of
from splitbrain.history.records import Event, PairedOperation
from tests.unit.checker.small_histories import random_history
from tests.unit.checker.transactions.small_transactions import random_transactions, transaction

SECOND = 1_000_000_000

History = Callable[[Random], list[PairedOperation]]


def random_calls(*calls: tuple[str, Callable[[Random], tuple[Any, Any]]]) -> History:
    """Calls of one key, each with what was asked and answered, by three processes.

    No value is written twice.
    """

    def history(random: Random) -> list[PairedOperation]:
        free = [0, 0, 0]
        made: list[PairedOperation] = []
        for _ in range(random.randint(2, 8)):
            process = random.randrange(3)
            start = free[process] + random.randint(1, 9)
            end = free[process] = start + random.randint(1, 9)
            f, answer = random.choice(calls)
            argument, result = answer(random)
            outcome: Any = random.choices(("ok", "fail"), (9, 1))[0]
            if f == "write" and any(each.argument == argument for each in made):
                continue
            result = result if outcome == "ok" else None
            made.append(PairedOperation(0, process, f, "k", argument, result, outcome, start, end))
        made.sort(key=lambda operation: operation.start)
        return [msgspec.structs.replace(each, index=n) for n, each in enumerate(made)]

    return history


def few(random: Random) -> int:
    return random.randint(0, 4)


HISTORIES: dict[str, History] = {
    "linearizability:cas-register": lambda random: random_history(random, "cas-register"),
    "linearizability:fifo-queue": lambda random: random_history(random, "fifo-queue"),
    "transactions:list-append": lambda random: random_transactions(random, "list-append"),
    "transactions:rw-register:snapshot-isolation": (
        lambda random: random_transactions(random, "rw-register")
    ),
    "unique-ids": random_calls(("generate", lambda random: (None, few(random)))),
    "counter-bounds": random_calls(
        ("add", lambda random: (1 + few(random), None)),
        ("read", lambda random: (None, few(random))),
    ),
    "sessions": random_calls(
        ("write", lambda random: (few(random), None)), ("read", lambda random: (None, few(random)))
    ),
    "fencing": random_calls(
        ("write", lambda random: ([few(random), few(random)], None)),
        ("acquire", lambda random: (None, few(random))),
    ),
    "bank:total=4": random_calls(
        ("read", lambda random: (None, {"a": few(random), "b": few(random)}))
    ),
}


def lots(random: Random, events: list[Event]) -> Iterator[list[Event]]:
    """Events in lots of one to three."""
    while events:
        size = random.randint(1, 3)
        yield events[:size]
        events = events[size:]


def judged(name: str, operations: list[PairedOperation]) -> Verdict:
    return checker_named(name)(Evidence(tuple(operations)), Unlimited()).verdict


def first_violation(name: str, lots_of_events: Iterator[list[Event]]) -> str | None:
    """Return the sentence on the first lot with which something is wrong."""
    judge = BeginningJudge(Task(Path("history.jsonl"), (name,), Evidence(()), 60.0, 4096))
    return next(filter(None, map(judge.violation, lots_of_events)), None)


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stretch", [1, SECOND // 4])
def test_what_is_wrong_in_a_beginning_is_wrong_in_the_whole(name: str, stretch: int) -> None:
    assert is_for_good(name)
    violations = 0
    for seed in range(150):
        random = Random(f"{name} {seed}")
        operations = [
            msgspec.structs.replace(
                each,
                start=each.start * stretch,
                end=None if each.end is None else each.end * stretch,
            )
            for each in HISTORIES[name](random)
        ]
        sentence = first_violation(name, lots(random, events_of(operations)))
        whole = judged(name, operations)
        if sentence is not None:
            violations += 1
            assert whole is Verdict.INVALID, (seed, sentence)
        elif stretch == 1 and not name.startswith("transactions"):
            # Nothing is at rest, so nothing is left to be found at the end; but nobody says before
            # it that a value was never written.
            assert whole is not Verdict.INVALID, seed
    assert violations > 5


def test_a_look_is_at_the_objects_touched_lately_and_all_that_ever_happened_to_them() -> None:
    beginning = Beginning()
    operations = [
        transaction(0, [["append", "old", 1], ["append", "hot", 1]], 0, 1),
        transaction(1, [["append", "old", 2]], 2, 3),
        transaction(2, [["r", "hot", [1]]], 9 * SECOND, 9 * SECOND + 1),
    ]
    for event in events_of(operations):
        beginning.take([event])
    assert [(each.index, each.argument, each.result) for each in beginning.lately] == [
        (0, [["append", "hot", 1]], [["append", "hot", 1]]),
        (4, [["r", "hot", None]], [["r", "hot", [1]]]),
    ]
    assert len(beginning.operations) == 3


@pytest.mark.parametrize("size", [1, 150, 20_000])
def test_an_object_is_at_rest_once_thousands_of_operations_were_about_others(size: int) -> None:
    beginning = Beginning()

    def takes(numbers: range) -> None:
        events = [
            msgspec.structs.replace(event, index=2 * numbers.start + event.index)
            for event in events_of(
                [
                    transaction(n, [["append", n % 9, n]], 2 * n, 2 * n + 1, process=0)
                    for n in numbers
                ]
            )
        ]
        for first in range(0, len(events), size):
            beginning.take(events[first : first + size])

    beginning.take(events_of([transaction(0, [["append", "old", 0]], 0, 1, process=0)]))
    takes(range(1, 3_000))
    assert beginning.lately[0].index == 0
    # Those that are new do not count, however many there are.
    takes(range(3_000, 9_000))
    assert (beginning.lately[0].index == 0) == (size > 12_000)
    takes(range(9_000, 9_002))
    assert beginning.lately[0].index != 0


@pytest.mark.parametrize("lots_count", [1, 2])
def test_values_that_python_takes_for_one_are_told_apart_in_whatever_lots(lots_count: int) -> None:
    name = "linearizability:cas-register"
    calls: list[tuple[str, Any, Any]] = [("write", 1, 1), ("read", None, True)]
    operations = [
        PairedOperation(place, 0, f, "k", asked, answer, "ok", 2 * place, 2 * place + 1)
        for place, (f, asked, answer) in enumerate(calls)
    ]
    events = events_of(operations)
    lots_of_events = [events] if lots_count == 1 else [events[:2], events[2:]]
    assert first_violation(name, iter(lots_of_events)) is not None
    ones = [msgspec.structs.replace(each, result=1) for each in operations]
    assert first_violation(name, iter([events_of(ones)])) is None


def test_an_operation_without_end_may_have_happened_or_not() -> None:
    beginning = Beginning()
    events = events_of([transaction(0, [["append", "x", 1]], 0, 5)])
    beginning.take(events[:1])
    assert [each.type for each in beginning.operations] == ["info"]
    beginning.take(events[1:])
    assert [each.type for each in beginning.operations] == ["ok"]
