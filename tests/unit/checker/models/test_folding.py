"""States that no answer tells apart are one state of a search, and only those."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from bench.histories import HistoryOptions, generate, with_stale_read
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.register import KeyValue
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import Ending
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

UNSEEN = "(text that no get answered)"


@pytest.mark.parametrize("mix", ["append", "text"])
@pytest.mark.parametrize("info", [0.0, 0.1])
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_appends_of_many_clients_are_decided(
    mix: Any, info: float, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "COMPILED", compiled)
    options = HistoryOptions(850, 50, values=0, keys=5, mix=mix, info=info)
    history = generate(options)
    assert check(history, "kv", Ending(400)).verdict is Verdict.VALID
    result = check(with_stale_read(Random(0), history), "kv", Unlimited())
    assert result.verdict is Verdict.INVALID
    assert result.figures["parts-unknown"] == 0
    assert len(result.violations) == 1


def test_all_texts_that_no_answer_begins_with_are_one_state() -> None:
    history = [op("append", f"{n};", start=n, end=100 + n) for n in range(30)]
    history.append(op("get", None, "7;3;", start=50, end=60))
    problem = Problem(sorted(history, key=lambda o: o.start), MODELS["kv"])
    assert Search(problem, Unlimited()).run().verdict is Verdict.VALID
    assert set(problem.transitions.states) <= {"", "7;", "7;3;", UNSEEN}


def test_the_one_state_is_no_answer() -> None:
    # A client that appends this very text, and gets it, still sees what was appended behind it.
    history = [
        op("append", UNSEEN, start=0, end=1),
        op("get", None, UNSEEN, start=2, end=3),
        op("append", "a", start=4, end=5),
        op("get", None, UNSEEN, start=6, end=7),
    ]
    assert check(history[:3], "kv", Unlimited()).verdict is Verdict.VALID
    assert check(history, "kv", Unlimited()).verdict is Verdict.INVALID
    other = [op("append", "b", start=0, end=1), op("get", None, UNSEEN, start=2, end=3)]
    assert check(other, "kv", Unlimited()).verdict is Verdict.INVALID


def too_bold(number: int) -> Callable[[Any], Any]:
    """A folding of another kind of text into one state."""
    return [
        lambda _: UNSEEN,
        lambda text: text[:1],
        lambda text: text[-1:],
        lambda text: "".join(sorted(text)),
    ][number]


@pytest.mark.parametrize("number", range(4))
def test_a_folding_of_texts_that_answers_tell_apart_is_seen(number: int) -> None:
    class Mutant(KeyValue):
        def folding(self, calls: Any) -> Callable[[Any], Any]:
            return too_bold(number)

    random = Random("too bold")
    for _ in range(3000):
        history = random_history(random, "kv")
        found = Search(Problem(history, Mutant()), Unlimited()).run().verdict
        if (found is Verdict.VALID) != linearizable(history, "kv"):
            return
    raise AssertionError("no history tells it apart")
