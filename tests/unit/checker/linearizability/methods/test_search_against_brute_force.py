"""The search and an oracle that tries every order must agree; each rule's mutant must not."""

import os
from random import Random

import pytest

from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.methods import search as search_module
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.outcome import (
    DIVE,
    ELEMENTS,
    EXACT,
    PAIRS,
    PRECONDITIONS,
    REACHABLE,
    REPEATED,
    SWEEP,
    ZONES,
    order_of,
)
from splitbrain.checker.linearizability.part.parts import Part, split
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.linearizability.portfolio import Decision, Portfolio
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import assert_legal, linearizable
from tests.unit.checker.small_histories import random_history

#: Histories per model; docs/models-and-checkers.md has the command for 100,000 and more.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "300"))


@pytest.mark.parametrize("model", sorted(MODELS))
def test_search_agrees_with_brute_force(model: str) -> None:
    random = Random(f"brute-force {model}")
    valid = 0
    for number in range(HISTORIES):
        operations = random_history(random, model)
        expected = linearizable(operations, model)
        found = Search(Problem(operations, MODELS[model]), Unlimited()).run().verdict
        assert found is (Verdict.VALID if expected else Verdict.INVALID), f"{number}: {operations}"
        valid += expected
    assert 0.4 <= valid / HISTORIES <= 0.6, "the histories no longer test both verdicts"


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_order_found_is_legal_and_true_to_time(model: str) -> None:
    random = Random(f"order {model}")
    for _ in range(max(150, HISTORIES // 10)):
        operations = random_history(random, model)
        problem = Problem(operations, MODELS[model])
        outcome = Search(problem, Unlimited()).run()
        if outcome.verdict is not Verdict.VALID:
            continue
        assert outcome.decisions is not None
        order = [operations[place] for place in order_of(problem, outcome.decisions)]
        assert len({operation.index for operation in order}) == len(order)
        assert_legal(order, operations, model)


# --- the search in which open operations may take effect any number of times ------------------


@pytest.mark.parametrize(
    "model", sorted(name for name, model in MODELS.items() if model.bounded_states)
)
def test_what_has_no_order_with_repeatable_open_operations_has_none(model: str) -> None:
    random = Random(f"repeatable {model}")
    refuted = invalid = 0
    for _ in range(max(125, HISTORIES // 4)):
        operations = random_history(random, model)
        problem = Problem(operations, MODELS[model], unlimited=range(len(operations)))
        outcome = Search(problem, Unlimited()).run()
        expected = linearizable(operations, model)
        invalid += not expected
        if outcome.verdict is Verdict.INVALID:
            refuted += 1
            assert not expected, operations
    # It is of use only if it refutes most of what can be refuted.
    assert refuted > 0.9 * invalid


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_portfolio_agrees_with_brute_force(
    model: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "POLL_INTERVAL", 1)
    monkeypatch.setattr(portfolio, "FIRST_TRY_CONFIGURATIONS_MAX", 0)
    monkeypatch.setattr(portfolio, "FIRST_TRY_PER_OPERATION", 0)
    # A dive would leave little to the steps after it.
    monkeypatch.setattr(portfolio, "DIVE_TIMES", 0)
    monkeypatch.setattr(portfolio, "COMPILED", compiled)
    random = Random(f"portfolio {model}")
    deciders: set[str] = set()
    for _ in range(max(300, HISTORIES // 20)):
        operations = random_history(random, model)
        (part,) = split(operations, MODELS[model]) or [Part(None, ())]
        result = check_part(part, model, Unlimited())
        assert (result.verdict is Verdict.VALID) == linearizable(operations, model), operations
        deciders.add(result.algorithm)
    assert (PAIRS if model == "fifo-queue" else EXACT) in deciders
    bounded = MODELS[model].bounded_states
    others = {EXACT, SWEEP, ZONES, ELEMENTS, PAIRS}
    assert deciders >= {REPEATED, REACHABLE} if bounded else deciders <= others
    assert (SWEEP in deciders) == compiled
    assert deciders <= set(PRECONDITIONS)


# --- dives ------------------------------------------------------------------------------------


def dived(history: list[PairedOperation], model: str) -> Decision | None:
    (part,) = split(history, MODELS[model]) or [Part(None, ())]
    return portfolio.by_dive(Portfolio(ObjectSource(part, MODELS[model]), Unlimited()))


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_dive_finds_most_orders_and_refutes_nothing(
    model: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "COMPILED", compiled)
    random = Random(f"dive {model}")
    found = missed = 0
    for _ in range(max(300, HISTORIES // 20)):
        operations = random_history(random, model)
        decision = dived(operations, model)
        if decision is None:
            missed += linearizable(operations, model)
            continue
        assert (decision.algorithm, decision.outcome.verdict) == (DIVE, Verdict.VALID)
        assert decision.outcome.decisions is not None
        places = order_of(Problem(operations, MODELS[model]), decision.outcome.decisions)
        assert_legal([operations[place] for place in places], operations, model)
        found += 1
    # Without operations whose answer is missing nothing is left to a dive.
    assert found > 10


def test_a_dive_that_refutes_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "COMPILED", False)
    random = Random("a dive that refutes")
    for _ in range(4000):
        operations = random_history(random, "cas-register", 16)
        outcome = Search(Problem(operations, MODELS["cas-register"]), Unlimited(), dive=True).run()
        if outcome.verdict is Verdict.INVALID and linearizable(operations, "cas-register"):
            assert dived(operations, "cas-register") is None
            return
    raise AssertionError("no history tells it apart")
