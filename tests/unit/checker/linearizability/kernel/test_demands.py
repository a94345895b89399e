"""Demands that a model declares are those of all its steps, and refute what nobody supplies."""

from random import Random
from typing import Any

import numpy as np
import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.kernel import demands
from splitbrain.checker.linearizability.kernel.kernel_layout import NO_PRODUCT
from splitbrain.checker.linearizability.methods import realized
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.outcome import PASS
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.models.model import ANY, Call, Moves
from splitbrain.checker.models.register import CasRegister
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

REGISTERS = ("register", "cas-register")


def source_of(history: list[PairedOperation], model: Any) -> ObjectSource:
    return ObjectSource(Part(None, tuple(o for o in history if o.type != "fail")), model)


@pytest.mark.parametrize("name", REGISTERS)
def test_declared_moves_are_those_of_all_steps(name: str) -> None:
    random = Random(f"moves {name}")
    alone = 0
    for _ in range(300):
        source = source_of(random_history(random, name), MODELS[name])
        declared = demands.declared_steps(source.transitions)
        stepped = demands.all_steps(source.transitions, len(source.calls))
        assert declared is not None
        assert stepped is not None
        assert declared.states == stepped.states
        for call, moves in enumerate(map(source.model.moves, source.calls)):
            assert moves is not None
            # All steps know more: that of few states one alone refuses, or that none leads on.
            if moves.needs is not ANY:
                assert declared.allowed_by[call] == stepped.allowed_by[call]
                alone += 1
            assert stepped.product[call] in (declared.product[call], NO_PRODUCT)
            # An answered call has no effect but in the state that it needs (rule 8).
            assert not source.calls[call].known or moves.acts in (ANY, moves.needs)
        table = np.empty_like(stepped.table)
        demands.fill_table(table, source.transitions)
        assert (table == stepped.table).all()
    assert alone > 100


def test_a_value_that_nobody_set_by_then_is_refuted_by_its_demand() -> None:
    history = [
        op("write", 1, start=0, end=1),
        op("read", None, 2, start=2, end=3),
        op("cas", [1, 2], [1, 2, True], start=4, end=5),
    ]
    source = source_of(history, MODELS["cas-register"])
    steps = demands.declared_steps(source.transitions)
    assert steps is not None
    assert demands.unsupplied(steps, source.columns) == 1
    # As it begins while the read is open, the cas may have come first.
    source = source_of(
        [history[0], op("read", None, 2, start=2, end=4), history[2]], MODELS["cas-register"]
    )
    steps = demands.declared_steps(source.transitions)
    assert steps is not None
    assert demands.unsupplied(steps, source.columns) is None


@pytest.mark.parametrize("name", REGISTERS)
def test_what_is_refuted_so_has_no_order(name: str) -> None:
    random = Random(f"unsupplied {name}")
    refuted = 0
    for _ in range(2000):
        history = random_history(random, name)
        source = source_of(history, MODELS[name])
        steps = demands.declared_steps(source.transitions)
        assert steps is not None
        if demands.unsupplied(steps, source.columns) is not None:
            refuted += 1
            assert not linearizable(history, name), history
    assert refuted > 100


def refused_need(model: CasRegister, call: Call) -> Moves | None:
    moves = CasRegister.moves(model, call)
    assert moves is not None
    return moves if moves.bars is ANY else Moves(needs=moves.bars)


def writes_leave_nothing(model: CasRegister, call: Call) -> Moves | None:
    return Moves() if call.f == "write" else CasRegister.moves(model, call)


def open_cas_needs(model: CasRegister, call: Call) -> Moves | None:
    moves = CasRegister.moves(model, call)
    assert moves is not None
    return moves._replace(needs=call.argument[0]) if call.f == "cas" else moves


@pytest.mark.parametrize("wrong", [refused_need, writes_leave_nothing, open_cas_needs])
def test_moves_that_are_wrong_are_told_apart(wrong: Any) -> None:
    class Mutant(CasRegister):
        def moves(self, call: Call) -> Moves | None:
            return wrong(self, call)

    random = Random("wrong moves")
    for _ in range(20_000):
        history = random_history(random, "cas-register")
        source = source_of(history, Mutant())
        steps = demands.declared_steps(source.transitions)
        assert steps is not None
        found = demands.unsupplied(steps, source.columns)
        if found is not None and linearizable(history, "cas-register"):
            return
    raise AssertionError("no history tells it apart")


# --- orders found while open operations could be repeated ----------------------------------------


def found_repeated(history: list[PairedOperation]) -> tuple[Problem, Any]:
    problem = Problem(history, MODELS["cas-register"], unlimited=range(len(history)))
    return problem, Search(problem, Unlimited()).run()


def test_an_order_that_repeats_nothing_is_a_proof_and_no_other() -> None:
    random = Random("realized")
    proved = repeated = 0
    for _ in range(3000):
        history = [o for o in random_history(random, "cas-register") if o.type != "fail"]
        problem, outcome = found_repeated(history)
        if outcome.verdict is not Verdict.VALID:
            continue
        assert outcome.decisions is not None
        if realized.is_realized(problem, outcome.decisions, MODELS["cas-register"]):
            assert linearizable(history, "cas-register"), history
            proved += any(
                place != PASS and history[place].type == "info" for place in outcome.decisions
            )
        else:
            repeated += not linearizable(history, "cas-register")
    assert proved > 30
    assert repeated > 5


def test_an_open_write_used_twice_proves_nothing() -> None:
    history = [
        op("write", 1, start=0, end=None),
        op("read", None, 1, start=1, end=2),
        op("write", 2, start=3, end=4),
        op("read", None, 1, start=5, end=6),
    ]
    problem, outcome = found_repeated(history)
    assert outcome.verdict is Verdict.VALID
    assert not realized.is_realized(problem, outcome.decisions, MODELS["cas-register"])
    assert check(history, "cas-register", Unlimited()).verdict is Verdict.INVALID
    again = [*history[:3], op("write", 1, start=4, end=None, index=9, process=9), history[3]]
    problem, outcome = found_repeated(again)
    assert realized.is_realized(problem, outcome.decisions, MODELS["cas-register"])
