"""Rules of each model on ``info`` operations that may be dropped, against the oracle.

Dropping must never change a verdict; and each rule, made a little too bold, must be told apart.
"""

import os
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
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

#: As in ``test_search_against_brute_force``.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "700"))
#: Mutants differ in rare histories; the first one that tells them apart ends the search.
MUTANT_HISTORIES = 60_000

Calls = Any
Rule = Callable[[Calls, Calls], frozenset[Call]]


class QueueOfTwo(BoundedFifoQueue):
    """A user's own queue."""

    capacity = 2


JUDGED: dict[str, Model] = {**MODELS, "bounded-fifo-queue": QueueOfTwo()}


def valid(history: Any, model: Model) -> tuple[bool, int]:
    """Whether the search finds an order, and how many open operations it did without."""
    problem = Problem(history, model)
    outcome = Search(problem, Unlimited()).run()
    return outcome.verdict is Verdict.VALID, problem.open_dropped


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_dropping_open_operations_never_changes_the_verdict(name: str) -> None:
    random = Random(f"droppable {name}")
    met = dropped = valid_ones = 0
    for _ in range(HISTORIES):
        history = random_history(random, name)
        found, without = valid(history, JUDGED[name])
        assert found == linearizable(history, name), history
        valid_ones += found
        met += sum(operation.type == "info" for operation in history)
        dropped += without
    assert 0.4 <= valid_ones / HISTORIES <= 0.6
    # A rule that never drops anything would be right as well, and of no use.
    assert met / 10 < dropped < met


def with_rule(name: str, rule: Rule) -> Model:
    """The model with another rule, which may ask the true one as ``super`` would."""
    kind = type(JUDGED[name])

    class Mutant(kind):  # type: ignore[misc, valid-type]
        def droppable(self, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
            return rule(open_calls, known_calls)

    return Mutant()


def told_apart(name: str, model: Model) -> bool:
    random = Random(f"mutants {name}")
    for _ in range(MUTANT_HISTORIES):
        history = random_history(random, name)
        if valid(history, model)[0] != linearizable(history, name):
            return True
    return False


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_dropping_everything_open_is_told_apart(name: str) -> None:
    assert told_apart(name, with_rule(name, lambda open_calls, _: frozenset(open_calls)))


def blind_to(name: str, unseen: Callable[[Call], bool]) -> Model:
    """The true rule, which does not see some of the answers."""
    true = JUDGED[name].droppable
    return with_rule(
        name,
        lambda open_calls, known_calls: true(
            open_calls, [call for call in known_calls if not unseen(call)]
        ),
    )


def also(name: str, dropped: Callable[[Call], bool]) -> Model:
    """The true rule, and some calls besides."""
    true = JUDGED[name].droppable
    return with_rule(
        name,
        lambda open_calls, known_calls: (
            true(open_calls, known_calls) | {call for call in open_calls if dropped(call)}
        ),
    )


def is_refused(call: Call) -> bool:
    return call.result is False or (isinstance(call.result, tuple) and call.result[-1] is False)


def counter_from(highest: int) -> Rule:
    """Counting up, drops from ``highest`` above the true bound on."""

    def rule(open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
        answers = [call.result for call in known_calls if call.f != "add"]
        return frozenset(
            call
            for call in open_calls
            if call.f == "read" or not answers or call.argument >= max(answers) + highest
        )

    return rule


def first_write_only(open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
    """Asks what was read of the first register that a transaction writes, and not of the rest."""
    read = {(n, v) for call in known_calls for f, n, v in call.result if f == "r"}
    return frozenset(
        call
        for call in open_calls
        if read.isdisjoint([(n, v) for f, n, v in call.argument if f == "w"][:1])
    )


def whole_answers_only(open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
    """Asks whether an answer is the text, not whether it holds it."""
    answers = {call.result for call in known_calls if call.f == "get"}
    return frozenset(call for call in open_calls if call.argument not in answers)


RULES: list[tuple[str, str, Model]] = [
    ("register", "reads unseen", blind_to("register", lambda c: c.f == "read")),
    ("cas-register", "reads unseen", blind_to("cas-register", lambda c: c.f == "read")),
    ("cas-register", "refusals unseen", blind_to("cas-register", is_refused)),
    (
        "cas-register",
        "successes unseen",
        blind_to("cas-register", lambda c: c.f == "cas" and not is_refused(c)),
    ),
    ("cas-register", "also open cas", also("cas-register", lambda c: c.f == "cas")),
    ("multi-register", "first write only", with_rule("multi-register", first_write_only)),
    ("kv", "whole answers only", with_rule("kv", whole_answers_only)),
    ("counter", "the bound itself", with_rule("counter", counter_from(0))),
    ("counter", "not both ways", with_rule("counter", counter_from(1))),
    ("counter", "answered adds unseen", blind_to("counter", lambda c: c.f == "add-and-get")),
    ("set", "membership unseen", blind_to("set", lambda c: c.f == "contains")),
    ("set", "absence unseen", blind_to("set", lambda c: c.f == "contains" and not c.result)),
    ("set", "reads unseen", blind_to("set", lambda c: c.f == "read")),
    ("set", "also open removes", also("set", lambda c: c.f == "remove")),
    ("fifo-queue", "emptiness unseen", blind_to("fifo-queue", lambda c: c.result is None)),
    ("fifo-queue", "also open dequeues", also("fifo-queue", lambda c: c.f == "dequeue")),
    ("bounded-fifo-queue", "fullness unseen", blind_to("bounded-fifo-queue", is_refused)),
    (
        "bounded-fifo-queue",
        "acceptance unseen",
        blind_to("bounded-fifo-queue", lambda c: c.f == "enqueue" and not is_refused(c)),
    ),
    (
        "unordered-queue",
        "emptiness unseen",
        blind_to("unordered-queue", lambda c: c.result is None),
    ),
    ("mutex", "refusals unseen", blind_to("mutex", is_refused)),
    (
        "mutex",
        "acquires unseen",
        blind_to("mutex", lambda c: c.f == "acquire" and not is_refused(c)),
    ),
    (
        "mutex",
        "releases unseen",
        blind_to("mutex", lambda c: c.f == "release" and not is_refused(c)),
    ),
    ("mutex", "also open releases", also("mutex", lambda c: c.f == "release")),
    ("fenced-register", "refusals unseen", blind_to("fenced-register", is_refused)),
    ("fenced-register", "reads unseen", blind_to("fenced-register", lambda c: c.f == "read")),
    ("topics", "refusals unseen", blind_to("topics", lambda c: c.f == "create" and is_refused(c))),
    ("topics", "deletes unseen", blind_to("topics", lambda c: c.f == "delete")),
    ("topics", "descriptions unseen", blind_to("topics", lambda c: c.f == "describe")),
    (
        "topics",
        "creates unseen",
        blind_to("topics", lambda c: c.f == "create" and not is_refused(c)),
    ),
    ("topics", "also open deletes", also("topics", lambda c: c.f == "delete")),
]


@pytest.mark.parametrize(("name", "mutation", "model"), RULES)
def test_a_rule_made_too_bold_is_told_apart(name: str, mutation: str, model: Model) -> None:
    assert told_apart(name, model), f"{name} with {mutation} was never wrong"


def test_every_model_has_a_mutant_of_its_rule() -> None:
    assert {name for name, _, _ in RULES} == set(JUDGED)


# --- what a rule must keep, one history each --------------------------------------------------

KEPT = {
    "a refused cas may be due to an open write": (
        "cas-register",
        op("write", 1, start=0, end=1),
        op("write", 2, start=2),
        op("cas", [1, 3], [1, 3, False], start=4, end=5),
    ),
    "an open cas passes on what it expects": (
        "cas-register",
        op("write", 1, start=0),
        op("cas", [1, 2], start=2),
        op("read", None, 2, start=4, end=5),
    ),
    "an open put empties what a get finds empty": (
        "kv",
        op("put", "a", start=0, end=1),
        op("put", "", start=2),
        op("get", None, "", start=4, end=5),
    ),
    "an open removal may be why an element is absent": (
        "set",
        op("add", 1, start=0, end=1),
        op("remove", 1, start=2),
        op("read", None, [], start=4, end=5),
    ),
}


@pytest.mark.parametrize("story", KEPT)
def test_what_explains_an_answer_is_kept(story: str) -> None:
    name, *history = KEPT[story]
    assert valid(history, JUDGED[name]) == (True, 0)
    assert valid(history, with_rule(name, lambda open_calls, _: frozenset(open_calls)))[0] is False
