"""Positions prove validity, never the opposite, and never what brute force denies."""

from random import Random
from typing import Any

import msgspec
import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods import guided
from splitbrain.checker.linearizability.part.outcome import GUIDED
from splitbrain.checker.models.model import call_of
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import AFTER, linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

JUDGED = sorted(set(MODELS) & set(AFTER))


def with_positions(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """Positions as a system with a log might give them, mostly right, some missing or wrong."""
    positioned: list[PairedOperation] = []
    wrong = random.choice((0.0, 0.0, 0.3))
    for o in operations:
        end = o.start + 8 if o.end is None else o.end
        offset = round(1000 * random.uniform(o.start, end))
        if random.random() < wrong:
            offset = random.randint(0, 9000)
        known = o.type == "ok" or random.random() < 0.5
        positioned.append(msgspec.structs.replace(o, position=(1, offset) if known else None))
    return positioned


def proofs(judge: Any, model: str, histories: int) -> tuple[int, int]:
    """How many histories were proved, and how many of those wrongly."""
    random = Random(f"guided {model}")
    proved = wrong = 0
    for _ in range(histories):
        operations = with_positions(random, random_history(random, model))
        order = judge(operations, MODELS[model])
        if order is None:
            continue
        proved += 1
        wrong += not linearizable(operations, model)
    return proved, wrong


@pytest.mark.parametrize("model", JUDGED)
def test_what_positions_prove_is_valid(model: str) -> None:
    proved, wrong = proofs(guided.order_by_positions, model, 4000)
    assert wrong == 0
    # Small histories full of ties are hard for it; it has to prove some all the same.
    assert proved > 150


MUTANTS = {
    "answers need not fit": ("if not legal or (", "if ("),
    "time does not matter": (
        "returned_at(operation) <= latest_start",
        "returned_at(operation) < -1",
    ),
    "not everyone has a place": ("or not completed <= set(order)", ""),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_proof_that_is_none_is_told_apart(mutant: str) -> None:
    module = mutated(guided, *MUTANTS[mutant])
    random = Random("orders")
    model = MODELS["cas-register"]
    wrong = 0
    for _ in range(3000):
        operations = random_history(random, model.name, 5)
        order = random.sample(range(len(operations)), random.randint(0, len(operations)))
        calls = [call_of(o, model) for o in operations]
        proof = module.is_proof(operations, calls, model, order)
        assert not guided.is_proof(operations, calls, model, order) or proof
        wrong += proof and not linearizable(operations, model.name)
    assert wrong


def test_a_wide_history_with_a_log_needs_no_search() -> None:
    writes = [
        op("write", n % 5, start=10 * n, end=10 * n + 900, process=n % 100, index=n)
        for n in range(2000)
    ]
    history = [msgspec.structs.replace(o, position=(1, place)) for place, o in enumerate(writes)]
    for n in range(0, 2000, 7):
        start = 10 * n + 1
        history.append(
            op("read", None, n % 5, start=start, end=start + 5, process=1000 + n, index=5000 + n)
        )
    result = check(history, "register", Unlimited())
    assert result.verdict is Verdict.VALID
    assert result.figures["algorithms"] == [GUIDED]


def test_wrong_positions_leave_the_verdict_to_the_search() -> None:
    random = Random("wrong positions")
    for violation in (False, True):
        operations = [
            msgspec.structs.replace(o, position=(1, random.randint(0, 99)))
            for o in generate(HistoryOptions(100, 4, violation=violation))
        ]
        result = check(operations, "cas-register", Unlimited())
        assert result.verdict is (Verdict.INVALID if violation else Verdict.VALID)
        assert GUIDED not in result.figures["algorithms"]
