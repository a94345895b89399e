"""What a model drops of the operations without answer changes no verdict of brute force."""

import os
from collections.abc import Callable, Collection
from random import Random

import pytest

from checker.models.model import Call, Model, call_of
from checker.models.registry import MODELS
from history.records import PairedOperation
from tests.unit.checker.brute_force import AFTER, linearizable
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "3000"))
#: Those that brute force knows.
JUDGED = sorted(set(MODELS) & set(AFTER))

Rule = Callable[[Collection[Call], Collection[Call]], frozenset[Call]]


def without_dropped(
    operations: list[PairedOperation], model: Model, rule: Rule
) -> list[PairedOperation]:
    """The history without what the rule drops."""
    open_calls = {call_of(o, model) for o in operations if o.type == "info"}
    known = {call_of(o, model) for o in operations if o.type == "ok"}
    dropped = rule(open_calls, known)
    return [o for o in operations if o.type != "info" or call_of(o, model) not in dropped]


def agrees(model: str, rule: Rule, histories: int) -> tuple[bool, int, int]:
    """Whether no verdict changed; how many open operations there were, and how many dropped."""
    random = Random(f"droppable {model}")
    open_count = dropped_count = 0
    for _ in range(histories):
        operations = random_history(random, model, 8)
        left = without_dropped(operations, MODELS[model], rule)
        open_count += sum(o.type == "info" for o in operations)
        dropped_count += len(operations) - len(left)
        if len(left) == len(operations):
            continue
        if linearizable(left, model) != linearizable(operations, model):
            return False, open_count, dropped_count
    return True, open_count, dropped_count


@pytest.mark.parametrize("model", JUDGED)
def test_dropping_changes_no_verdict(model: str) -> None:
    right, open_count, dropped_count = agrees(model, MODELS[model].droppable, HISTORIES)
    assert right
    # A rule that drops next to nothing is not worth its risk.
    assert dropped_count > 0.2 * open_count


@pytest.mark.parametrize("model", JUDGED)
def test_dropping_everything_is_told_apart(model: str) -> None:
    def everything(open_calls: Collection[Call], known: Collection[Call]) -> frozenset[Call]:
        return frozenset(open_calls)

    assert not agrees(model, everything, HISTORIES)[0]


# --- each rule of a model left out one by one ---------------------------------------------------


def test_a_refused_cas_may_be_due_to_an_open_write() -> None:
    history = [
        op("write", 1, start=0, end=1),
        op("write", 2, start=2),
        op("cas", [1, 3], [1, 3, False], start=4, end=5),
    ]
    register = MODELS["cas-register"]
    assert linearizable(history, "cas-register")
    assert without_dropped(history, register, register.droppable) == history

    def refusals_forgotten(
        open_calls: Collection[Call], known: Collection[Call]
    ) -> frozenset[Call]:
        told = [c for c in known if not (c.f == "cas" and c.result[2] is False)]
        return register.droppable(open_calls, told)

    assert not linearizable(without_dropped(history, register, refusals_forgotten), register.name)
    assert not agrees("cas-register", refusals_forgotten, HISTORIES)[0]


def test_an_open_cas_passes_on_what_it_expects() -> None:
    history = [
        op("write", 1, start=0),
        op("cas", [1, 2], start=2),
        op("read", None, 2, start=4, end=5),
    ]
    register = MODELS["cas-register"]
    assert linearizable(history, "cas-register")
    assert without_dropped(history, register, register.droppable) == history

    def only_what_is_read(open_calls: Collection[Call], known: Collection[Call]) -> frozenset[Call]:
        writes = {c for c in open_calls if c.f == "write"}
        return register.droppable(writes, known) | frozenset(
            c for c in register.droppable(open_calls, known) if c.f == "cas"
        )

    assert not linearizable(without_dropped(history, register, only_what_is_read), register.name)
    assert not agrees("cas-register", only_what_is_read, HISTORIES)[0]


def test_an_open_put_empties_what_a_get_finds_empty() -> None:
    history = [
        op("put", "a", start=0, end=1),
        op("put", "", start=2),
        op("get", None, "", start=4, end=5),
    ]
    store = MODELS["kv"]
    assert linearizable(history, "kv")
    assert without_dropped(history, store, store.droppable) == history


def test_an_open_removal_may_be_why_an_element_is_absent() -> None:
    history = [
        op("add", 1, start=0, end=1),
        op("remove", 1, start=2),
        op("read", None, [], start=4, end=5),
    ]
    elements = MODELS["set"]
    assert linearizable(history, "set")
    assert without_dropped(history, elements, elements.droppable) == history
