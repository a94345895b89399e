"""Each model, with one thing wrong in its semantics, is told apart by the oracle."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Call, Model
from splitbrain.checker.models.queues import BoundedFifoQueue
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.small_histories import random_history

HISTORIES_MAX = 20_000


class QueueOfTwo(BoundedFifoQueue):
    capacity = 2


KINDS: dict[str, type[Model]] = {
    **{name: type(model) for name, model in MODELS.items()},
    "bounded-fifo-queue": QueueOfTwo,
}

Step = Callable[[Any, Any, Call], tuple[bool, Any]]


def with_step(name: str, change: Step) -> Model:
    """The model, with the outcome of its step changed: ``change(outcome, state, call)``."""
    kind = KINDS[name]

    class Wrong(kind):  # type: ignore[misc, valid-type]
        def step(self, state: Any, call: Call) -> tuple[bool, Any]:
            return change(super().step(state, call), state, call)

    return Wrong()


def told_apart(name: str, model: Model) -> bool:
    random = Random(f"wrong {name}")
    for _ in range(HISTORIES_MAX):
        history = random_history(random, name)
        outcome = Search(Problem(history, model), Unlimited()).run()
        if (outcome.verdict is Verdict.VALID) != linearizable(history, name):
            return True
    return False


def keeps_the_first(outcome: Any, state: Any, call: Call) -> Any:
    return outcome if call.f == "read" or state is None else (outcome[0], state)


def refuses_nothing(outcome: Any, state: Any, call: Call) -> Any:
    refusal = call.result is False or (isinstance(call.result, tuple) and call.result[-1] is False)
    return (True, state) if refusal else outcome


def forgets_what_is_open(outcome: Any, state: Any, call: Call) -> Any:
    return outcome if call.known else (outcome[0], state)


def anything_goes(kind: str) -> Step:
    return lambda outcome, state, call: (True, outcome[1]) if call.f == kind else outcome


def takes_the_newest(outcome: Any, state: Any, call: Call) -> Any:
    if call.f != "dequeue" or not state:
        return outcome
    return not call.known or call.result == state[-1], state[:-1]


def gives_out_another(outcome: Any, state: Any, call: Call) -> Any:
    if call.f not in ("pop", "delete-min") or not state:
        return outcome
    return not call.known or call.result == state[-1], state[:-1]


def adds_once_more(outcome: Any, state: Any, call: Call) -> Any:
    return outcome if call.f == "read" or call.argument < 2 else (outcome[0], outcome[1] + 1)


def removes_nothing(outcome: Any, state: Any, call: Call) -> Any:
    return (True, state) if call.f == "remove" else outcome


def anybody_releases(outcome: Any, state: Any, call: Call) -> Any:
    if call.f != "release" or not call.known:
        return outcome
    return (bool(state) == (call.result is not False)), () if state else state


def accepts_lower_tokens(outcome: Any, state: Any, call: Call) -> Any:
    if call.f == "read" or call.result is False:
        return outcome
    return True, call.argument


def puts_are_appends(outcome: Any, state: Any, call: Call) -> Any:
    return (True, state + call.argument) if call.f == "put" else outcome


def finds_emptiness_anywhere(outcome: Any, state: Any, call: Call) -> Any:
    nothing = call.f in ("dequeue", "pop", "delete-min") and call.known and call.result is None
    return (True, state) if nothing else outcome


def writes_only_the_first(outcome: Any, state: Any, call: Call) -> Any:
    written = [name for f, name, _ in call.argument if f == "w"][:1]
    kept = [(name, value) for name, value in outcome[1] if name in written]
    return outcome[0], frozenset([*kept, *(pair for pair in state if pair[0] not in written)])


def creates_again(outcome: Any, state: Any, call: Call) -> Any:
    return (True, call.argument) if call.f == "create" and call.result is not False else outcome


WRONG: list[tuple[str, Step]] = [
    ("register", keeps_the_first),
    ("register", anything_goes("read")),
    ("cas-register", forgets_what_is_open),
    ("cas-register", refuses_nothing),
    ("multi-register", writes_only_the_first),
    ("multi-register", anything_goes("txn")),
    ("kv", puts_are_appends),
    ("counter", adds_once_more),
    ("set", removes_nothing),
    ("set", anything_goes("contains")),
    ("fifo-queue", takes_the_newest),
    ("fifo-queue", finds_emptiness_anywhere),
    ("bounded-fifo-queue", refuses_nothing),
    ("unordered-queue", finds_emptiness_anywhere),
    ("unordered-queue", forgets_what_is_open),
    ("stack", gives_out_another),
    ("stack", finds_emptiness_anywhere),
    ("priority-queue", gives_out_another),
    ("priority-queue", finds_emptiness_anywhere),
    ("mutex", anybody_releases),
    ("mutex", forgets_what_is_open),
    ("fenced-register", accepts_lower_tokens),
    ("fenced-register", refuses_nothing),
    ("topics", creates_again),
    ("topics", refuses_nothing),
    ("topics", forgets_what_is_open),
    ("topics", anything_goes("describe")),
]


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_a_model_with_one_thing_wrong_is_told_apart(name: str, change: Step) -> None:
    assert told_apart(name, with_step(name, change))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_model_itself_is_not(name: str) -> None:
    random = Random(f"right {name}")
    model = KINDS[name]()
    for _ in range(500):
        history = random_history(random, name)
        outcome = Search(Problem(history, model), Unlimited()).run()
        assert (outcome.verdict is Verdict.VALID) == linearizable(history, name)


def test_every_model_was_made_wrong_in_some_way() -> None:
    assert {name for name, _ in WRONG} == set(KINDS)
