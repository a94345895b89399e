"""The search of pairs decides what brute force decides; each mutant of it does not."""

import itertools
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods import fifo_pairs
from splitbrain.checker.linearizability.part.outcome import PAIRS, PRECONDITIONS
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import Ending
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history, unique_elements, with_pauses

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1500"))
QUEUE = MODELS["fifo-queue"]


def searched(
    operations: list[PairedOperation],
    search: Any = fifo_pairs.search_pairs,
    budget: Budget | None = None,
) -> fifo_pairs.PairVerdict | None:
    elements = ObjectSource(Part(None, tuple(operations)), QUEUE).elements
    return search(elements, budget or Unlimited())


def drawn(seed: str, count: int) -> Iterator[list[PairedOperation]]:
    """Of few values, so that most are put in more than once, and of nearly unique ones."""
    random = Random(seed)
    for number in range(count):
        if number % 2:
            yield unique_elements(random, 11, twice=0.3)
        else:
            yield with_pauses(random_history(random, "fifo-queue", 11))


def test_pairs_agree_with_brute_force() -> None:
    valid = applied = 0
    for operations in drawn("pairs", 2 * HISTORIES):
        verdict = searched(operations)
        if verdict is None:
            continue
        applied += 1
        expected = linearizable(operations, "fifo-queue")
        valid += expected
        assert verdict.outcome.verdict is (Verdict.VALID if expected else Verdict.INVALID), (
            operations
        )
    assert applied > HISTORIES
    assert 0.3 <= valid / applied <= 0.7, "the histories no longer test both verdicts"


def test_a_violation_is_narrowed_to_operations_without_an_order() -> None:
    left_out = 0
    for operations in drawn("narrowed", HISTORIES):
        verdict = searched(operations)
        if verdict is None or verdict.outcome.verdict is Verdict.VALID:
            continue
        assert verdict.culprit in verdict.places
        members = [operations[place] for place in verdict.places]
        assert not linearizable(members, "fifo-queue"), (verdict, operations)
        # Before the culprit returned they had one.
        assert verdict.culprit is not None
        end = operations[verdict.culprit].end or 0
        earlier = [
            o
            if o.end is not None and o.end < end
            else msgspec.structs.replace(o, type="info", result=None, end=None)
            for o in members
            if o.start < end
        ]
        assert linearizable(earlier, "fifo-queue"), (verdict, operations)
        left_out += len(members) < len([o for o in operations if o.start <= end])
    assert left_out > HISTORIES / 10


def test_a_process_that_goes_on_at_once_is_left_to_the_search_of_states() -> None:
    at_once = [
        op("enqueue", 1, start=0, end=2, process=0),
        op("enqueue", 1, start=2, end=3, process=0),
    ]
    assert searched(at_once) is None


# --- large histories ---------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "info"), [(5, 0.0), (5, 0.1), (0, 0.1), (50, 0.05)])
def test_long_and_wide_histories_are_decided(values: int, info: float) -> None:
    for seed in range(3):
        options = HistoryOptions(1000, 10, values=values, mix="queue", info=info, seed=seed)
        history = generate(options)
        result = check(history, "fifo-queue", Ending(200))
        assert result.verdict is Verdict.VALID
        assert result.figures["algorithms"] == [PAIRS]
        assert result.figures["preconditions"] == [f"{PAIRS}: {PRECONDITIONS[PAIRS]}"]


def long_and_wrong() -> list[PairedOperation]:
    """A long history in which one element comes out once more than it was put in."""
    history = generate(HistoryOptions(400, 5, values=5, mix="queue"))
    takes = [n for n, o in enumerate(history) if o.f == "dequeue" and o.result is not None]
    history[takes[150]] = msgspec.structs.replace(
        history[takes[150]], result=(history[takes[150]].result + 1) % 5
    )
    return history


def test_a_violation_names_the_dequeue_that_has_no_place() -> None:
    result = check(long_and_wrong(), "fifo-queue", Unlimited())
    assert result.verdict is Verdict.INVALID
    (violation,) = result.violations
    assert violation["operation"]["f"] == "dequeue"
    assert "no order of what came before allows this answer" in violation["sentence"]
    assert "Operations on other elements were left out" in violation["core_meaning"]
    assert violation["core_size"] < 200


def test_a_violation_stands_when_the_budget_ends_before_it_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fifo_pairs, "POLL_INTERVAL", 10)
    for limit in ("FIRST_TRY_CONFIGURATIONS_MAX", "FIRST_TRY_PER_OPERATION"):
        monkeypatch.setattr(portfolio, limit, 0)
    configurations = check(long_and_wrong(), "fifo-queue", Unlimited()).figures["configurations"]
    # Asked once before the first try, and once after it.
    result = check(long_and_wrong(), "fifo-queue", Ending(configurations // 10 + 3))
    assert result.verdict is Verdict.INVALID
    (violation,) = result.violations
    assert "There was no time left to tell more" in violation["sentence"]


def test_it_stops_when_the_budget_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fifo_pairs, "POLL_INTERVAL", 1)
    found = searched(long_and_wrong(), budget=Ending(3))
    assert found is not None
    assert found.outcome.verdict is Verdict.UNKNOWN
    assert "time budget" in (found.outcome.reason or "")


#: Texts of the source and their replacements. When a pair is too late for other dequeues is not
#: among them: what may be next, and what came out too often, leaves no small history for it.
MUTANTS = {
    "what returned before may follow": (
        "while number < len(operations) and operations[number].start <= limit:",
        "while number < len(operations):",
    ),
    "what touches may not follow": (
        "operations[number].start <= limit:",
        "operations[number].start < limit:",
    ),
    "dequeues without answer are no pairs": (
        "if opened < len(self._opened):",
        "if opened > len(self._opened):",
    ),
    "dequeues without answer take at any time": (
        "max(now, put.start, self._opened[opened].start)",
        "max(now, put.start)",
    ),
    "an element is put in before its dequeue begins": (
        "<= self._takes[number].end",
        "<= self._takes[number].start",
    ),
    "nothing is found whatever is there": ("if moment <= min(limit, puts.limit):", "if True:"),
    "nothing may be found too late": (
        "if moment <= min(limit, puts.limit):",
        "if moment <= puts.limit:",
    ),
    "an element is another's": ("if put.element == take.element and", "if"),
    "the first alone is tried, whenever it was invoked": (
        "if before is None or start < before:",
        "if before is None:",
    ),
    "what found nothing need not have a place": (
        "here[1].first == takes and here[2].first == nothing",
        "here[1].first == takes",
    ),
    "process order in ties forgotten": ("if goes_on_at_once(columns):", "if False:"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str) -> None:
    module = mutated(fifo_pairs, *MUTANTS[mutant])
    random = Random("at once")
    at_once = (random_history(random, "fifo-queue", 9) for _ in range(2000))
    for operations in itertools.chain(drawn("mutants of pairs", 20_000), at_once):
        verdict = searched(operations, module.search_pairs)
        if verdict is None:
            continue
        found = verdict.outcome.verdict is Verdict.VALID
        if found != linearizable(operations, "fifo-queue"):
            return
    raise AssertionError(f"no history tells it apart: {mutant}")
