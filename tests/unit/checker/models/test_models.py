"""Models beyond their steps, which the oracle judges: parts, sentences, wrong shapes."""

from typing import Any

import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.part.parts import split
from splitbrain.checker.models import registry
from splitbrain.checker.models.model import Call, Model, NondeterministicModel, call_of
from splitbrain.checker.models.queues import BoundedFifoQueue
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.errors import UsageError
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def judged(model: str, *operations: PairedOperation) -> CheckResult:
    return check(operations, model, Unlimited())


class TwoLocks(Model):
    """Nobody may hold both of two locks: its keys affect each other."""

    name = "two-locks"
    functions = frozenset({"take"})
    initial = frozenset[Any]()

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        return not state, state | {call.key}


def test_a_model_that_declares_no_partition_is_judged_as_one_part() -> None:
    takes = [operation("take", None, True, start=n, end=n, key=key) for n, key in enumerate("ab")]
    (part,) = split(takes, TwoLocks())
    assert (part.key, len(part.operations)) == (None, 2)
    assert [call_of(take, TwoLocks()).key for take in takes] == ["a", "b"]
    assert TwoLocks().describe(call_of(takes[0], TwoLocks())) == "take -> True (key a)"


def test_a_violation_across_keys_is_found_where_they_are_not_judged_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.MODELS, "two-locks", TwoLocks())
    takes = [operation("take", None, True, start=n, end=n, key=key) for n, key in enumerate("ab")]
    assert judged("two-locks", *takes).verdict is Verdict.INVALID
    assert judged("two-locks", takes[0]).verdict is Verdict.VALID


@pytest.mark.parametrize("name", sorted(MODELS))
def test_keys_of_built_in_models_are_judged_apart(name: str) -> None:
    model = MODELS[name]
    f = next(
        f
        for f in ("read", "get", "dequeue", "pop", "delete-min", "acquire", "txn", "describe")
        if f in model.functions
    )
    argument: Any = [] if f == "txn" else None
    both = [operation(f, argument, start=n, end=None, key=key) for n, key in enumerate("ab")]
    assert sorted(part.key or "" for part in split(both, model)) == ["a", "b"]
    assert {call_of(one, model).key for one in both} == {None}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_name_of_a_model_is_its_own(name: str) -> None:
    assert MODELS[name].name == name
    assert MODELS[name].functions


class Dice(NondeterministicModel):
    """A dice that shows some number after each throw."""

    name = "dice"
    functions = frozenset({"throw", "look"})
    initial = frozenset({0})

    def steps(self, state: Any, call: Call) -> list[int]:
        if call.f == "throw":
            return [1, 2, 3, 4, 5, 6]
        return [state] if not call.known or call.result == state else []


def test_an_answer_rules_out_states_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MODELS, "dice", Dice())
    throw = operation("throw", start=0, end=1, process=1)
    looks = [operation("look", None, n, start=2 + 2 * n, end=3 + 2 * n, process=1) for n in (4, 5)]
    assert judged("dice", throw, looks[0]).verdict is Verdict.VALID
    assert judged("dice", throw, *looks).verdict is Verdict.INVALID
    assert judged("dice", looks[0]).verdict is Verdict.INVALID


class QueueOfOne(BoundedFifoQueue):
    capacity = 1


def test_a_refusal_is_not_an_element_that_looks_like_one() -> None:
    """0 equals False, and an answered enqueue may repeat its element."""
    first = operation("enqueue", 0, 0, start=0, end=1)
    second = operation("enqueue", 0, False, start=2, end=3)
    calls = [call_of(one, QueueOfOne()) for one in (first, second)]
    assert calls[0] != calls[1]
    assert [QueueOfOne().is_pure(call) for call in calls] == [False, True]


WRONG_SHAPES: list[tuple[str, PairedOperation, str]] = [
    ("cas-register", operation("cas", 1, start=0), "[expected, new]"),
    ("kv", operation("put", 1, start=0, end=1), "values are text, and put has 1"),
    ("kv", operation("get", None, 1, start=0, end=1), "values are text, and get has 1"),
    ("counter", operation("add", "1", start=0), "argument of add is a number, and not '1'"),
    ("counter", operation("read", None, "1", start=0, end=1), "answer of read is a number"),
    ("set", operation("read", None, 1, start=0, end=1), "a list of elements, and not 1"),
    ("fifo-queue", operation("enqueue", None, start=0), "null cannot be an element"),
    ("fifo-queue", operation("enqueue", 1, False, start=0, end=1), "fifo-queue is never full"),
    ("unordered-queue", operation("enqueue", 1, False, start=0, end=1), "is never full"),
    ("stack", operation("push", None, start=0), "null cannot be an element"),
    ("stack", operation("push", 1, False, start=0, end=1), "stack is never full"),
    ("priority-queue", operation("insert", "a", start=0), "whole numbers, and not 'a'"),
    ("priority-queue", operation("insert", True, start=0), "whole numbers, and not True"),
    ("priority-queue", operation("delete-min", None, 1.5, start=0, end=1), "null, and not 1.5"),
    ("fenced-register", operation("write", 1, start=0), "[token, value]"),
    ("fenced-register", operation("write", ["a", 1], start=0), "the token is a number"),
    ("multi-register", operation("txn", 1, start=0), "a list, and not 1"),
    ("multi-register", operation("txn", [["x", 1]], start=0), "the parts of a txn"),
    (
        "multi-register",
        operation("txn", [["r", "x", None]], None, start=0, end=1),
        "with the values read in their places",
    ),
    (
        "multi-register",
        operation("txn", [["w", "x", 1]], [["w", "x", 2]], start=0, end=1),
        "with the values read in their places",
    ),
    ("topics", operation("create", None, start=0), "is a number of partitions"),
    ("topics", operation("create", 2, True, start=0, end=1), "is [number, created]"),
]


@pytest.mark.parametrize(("model", "wrong", "sentence"), WRONG_SHAPES)
def test_an_operation_that_makes_no_sense_to_the_model_is_refused_by_name(
    model: str, wrong: PairedOperation, sentence: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        judged(model, wrong)
    assert f"the model {model!r} cannot judge {wrong.f} of index 0: " in str(refusal.value)
    assert sentence in str(refusal.value)


DESCRIBED: list[tuple[str, PairedOperation, str]] = [
    ("mutex", operation("acquire", "c1", False, start=0, end=1), "acquire by c1 (refused)"),
    ("mutex", operation("release", None, True, start=0, end=1), "release (done)"),
    (
        "fenced-register",
        operation("write", [3, 7], [3, 7, True], start=0, end=1),
        "write 7 with token 3 (accepted)",
    ),
    ("fenced-register", operation("read", None, 7, start=0, end=1), "read -> 7"),
    ("fifo-queue", operation("dequeue", None, None, start=0, end=1), "dequeue -> nothing"),
    ("counter", operation("add-and-get", 2, 5, start=0, end=1), "add-and-get 2 -> 5"),
    (
        "topics",
        operation("create", 3, [3, False], start=0, end=1),
        "create with 3 partitions (refused)",
    ),
    ("topics", operation("delete", None, True, start=0, end=1), "delete (done)"),
    ("topics", operation("describe", None, None, start=0, end=1), "describe -> nothing"),
]


@pytest.mark.parametrize(("model", "one", "words"), DESCRIBED)
def test_a_call_is_told_in_a_few_words(model: str, one: PairedOperation, words: str) -> None:
    assert MODELS[model].describe(call_of(one, MODELS[model])) == words


def fenced(token: int, value: int, accepted: bool, start: int) -> PairedOperation:
    return operation("write", [token, value], [token, value, accepted], start=start, end=start + 1)


def test_a_write_accepted_with_a_lower_token_than_an_earlier_one_is_a_violation() -> None:
    assert judged("fenced-register", fenced(2, 0, True, 0), fenced(1, 1, True, 2)).verdict == (
        Verdict.INVALID
    )
    assert judged("fenced-register", fenced(2, 0, True, 0), fenced(1, 1, False, 2)).verdict == (
        Verdict.VALID
    )


def test_two_clients_that_believe_to_hold_the_lock_are_no_violation_of_the_fence() -> None:
    alternating = [fenced(1, 0, True, 0), fenced(2, 1, True, 2), fenced(1, 2, False, 4)]
    assert judged("fenced-register", *alternating).verdict is Verdict.VALID
