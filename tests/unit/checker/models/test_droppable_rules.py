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
#: From the true rule, open calls and known calls.
Rule = Callable[[Any, Calls, Calls], frozenset[Call]]


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
    """The model with another rule, which gets the true one besides the calls."""
    true = JUDGED[name].droppable

    class Mutant(type(JUDGED[name])):  # type: ignore[misc]
        def droppable(self, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
            return rule(true, open_calls, known_calls)

    return Mutant()


def told_apart(name: str, model: Model) -> bool:
    random = Random(f"mutants {name}")
    for _ in range(MUTANT_HISTORIES):
        history = random_history(random, name)
        if valid(history, model)[0] != linearizable(history, name):
            return True
    return False


def everything(_: Any, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
    return frozenset(open_calls)


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_dropping_everything_open_is_told_apart(name: str) -> None:
    assert told_apart(name, with_rule(name, everything))


def blind_to(unseen: Callable[[Call], bool]) -> Rule:
    """The true rule, which does not see some of the answers."""
    return lambda true, open_calls, known_calls: true(
        open_calls, [call for call in known_calls if not unseen(call)]
    )


def also(dropped: Callable[[Call], bool]) -> Rule:
    """The true rule, and some calls besides."""
    return lambda true, open_calls, known_calls: (
        true(open_calls, known_calls) | {call for call in open_calls if dropped(call)}
    )


def asks(f: str) -> Callable[[Call], bool]:
    return lambda call: call.f == f


def granted(f: str) -> Callable[[Call], bool]:
    return lambda call: call.f == f and not is_refused(call)


def is_refused(call: Call) -> bool:
    return call.result is False or (isinstance(call.result, tuple) and call.result[-1] is False)


def counter_from(highest: int) -> Rule:
    """Counting up, drops from ``highest`` above the true bound on."""

    def rule(_: Any, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
        answers = [call.result for call in known_calls if call.f != "add"]
        return frozenset(
            call
            for call in open_calls
            if call.f == "read" or not answers or call.argument >= max(answers) + highest
        )

    return rule


def first_write_only(_: Any, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
    """Asks what was read of the first register that a transaction writes, and not of the rest."""
    read = {(n, v) for call in known_calls for f, n, v in call.result if f == "r"}
    return frozenset(
        call
        for call in open_calls
        if read.isdisjoint([(n, v) for f, n, v in call.argument if f == "w"][:1])
    )


def whole_answers_only(_: Any, open_calls: Calls, known_calls: Calls) -> frozenset[Call]:
    """Asks whether an answer is the text, not whether it holds it."""
    answers = {call.result for call in known_calls if call.f == "get"}
    return frozenset(call for call in open_calls if call.argument not in answers)


RULES: dict[str, dict[str, Rule]] = {
    "register": {"reads unseen": blind_to(asks("read"))},
    "cas-register": {
        "reads unseen": blind_to(asks("read")),
        "refusals unseen": blind_to(is_refused),
        "successes unseen": blind_to(granted("cas")),
        "also open cas": also(asks("cas")),
    },
    "multi-register": {"first write only": first_write_only},
    "kv": {"whole answers only": whole_answers_only},
    "counter": {
        "the bound itself": counter_from(0),
        "not both ways": counter_from(1),
        "answered adds unseen": blind_to(asks("add-and-get")),
    },
    "set": {
        "membership unseen": blind_to(asks("contains")),
        "absence unseen": blind_to(lambda c: c.f == "contains" and not c.result),
        "reads unseen": blind_to(asks("read")),
        "also open removes": also(asks("remove")),
    },
    "fifo-queue": {
        "emptiness unseen": blind_to(lambda c: c.result is None),
        "also open dequeues": also(asks("dequeue")),
    },
    "bounded-fifo-queue": {
        "fullness unseen": blind_to(is_refused),
        "acceptance unseen": blind_to(granted("enqueue")),
    },
    "unordered-queue": {"emptiness unseen": blind_to(lambda c: c.result is None)},
    "stack": {"also open pops": also(asks("pop"))},
    "priority-queue": {"also open takes": also(asks("delete-min"))},
    "mutex": {
        "refusals unseen": blind_to(is_refused),
        "acquires unseen": blind_to(granted("acquire")),
        "releases unseen": blind_to(granted("release")),
        "also open releases": also(asks("release")),
    },
    "fenced-register": {
        "refusals unseen": blind_to(is_refused),
        "reads unseen": blind_to(asks("read")),
    },
    "topics": {
        "refusals unseen": blind_to(lambda c: c.f == "create" and is_refused(c)),
        "deletes unseen": blind_to(asks("delete")),
        "descriptions unseen": blind_to(asks("describe")),
        "creates unseen": blind_to(granted("create")),
        "also open deletes": also(asks("delete")),
    },
}


@pytest.mark.parametrize(
    ("name", "mutation"), [(name, mutation) for name in RULES for mutation in RULES[name]]
)
def test_a_rule_made_too_bold_is_told_apart(name: str, mutation: str) -> None:
    model = with_rule(name, RULES[name][mutation])
    assert told_apart(name, model), f"{name} with {mutation} was never wrong"


def test_every_model_has_a_mutant_of_its_rule() -> None:
    assert set(RULES) == set(JUDGED)


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
    assert valid(history, with_rule(name, everything))[0] is False
