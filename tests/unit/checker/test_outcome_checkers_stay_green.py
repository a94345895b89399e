"""A history that can be put in one order is never a violation to a checker of outcomes."""

from random import Random

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import Ending
from tests.unit.checker.small_histories import random_history

HISTORIES = 4000
#: Checkers of each model's histories, besides the model itself.
PAIRS = [
    ("counter", "counter-bounds"),
    ("fifo-queue", "queue-totals"),
    ("bounded-fifo-queue", "queue-totals"),
    ("unordered-queue", "queue-totals"),
    ("fenced-register", "fencing"),
    ("register", "sessions"),
    ("cas-register", "sessions"),
    ("set", "sessions"),
    ("set", "set-full"),
]


def judged_by_all(history: list[PairedOperation]) -> list[PairedOperation]:
    """Sets that only grow: some checkers judge no others."""
    return [o for o in history if o.f not in ("remove", "contains")]


def without_open_ones(history: list[PairedOperation]) -> list[PairedOperation]:
    return [o for o in judged_by_all(history) if o.type == "ok"]


@pytest.mark.parametrize(("model", "checker"), PAIRS)
def test_an_orderable_history_is_never_invalid(model: str, checker: str) -> None:
    random = Random(f"{model} {checker}")
    judge = checker_named(checker)
    invalid = valid = 0
    for _ in range(HISTORIES):
        history = judged_by_all(random_history(random, model))
        verdict = judge(Evidence(operations=tuple(history)), Unlimited()).verdict
        if linearizable(history, model):
            assert verdict is not Verdict.INVALID, history
            valid += verdict is Verdict.VALID
        else:
            invalid += verdict is Verdict.INVALID
    # Of use only if it says something, and if it finds some of what is wrong.
    assert valid > HISTORIES / 100
    assert invalid > HISTORIES / 100


@pytest.mark.parametrize(("model", "checker"), PAIRS)
def test_an_ended_budget_is_unknown_with_its_reason(model: str, checker: str) -> None:
    random = Random(f"ended {model} {checker}")
    histories = [without_open_ones(random_history(random, model)) for _ in range(50)]
    longest = max(histories, key=len)
    result = checker_named(checker)(Evidence(operations=tuple(longest)), Ending())
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "Not finished: time budget of 1 s used up."
