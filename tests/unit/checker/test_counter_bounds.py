"""Bounds of counters against their definition taken literally; ``outcome_cases`` has the rest."""

from random import Random

import pytest

from splitbrain.checker import counter_bounds
from splitbrain.checker.counter_bounds import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.small_histories import random_history


def literal(operations: list[PairedOperation]) -> int:
    """How many answers lie outside."""
    outside = 0
    adds = [o for o in operations if o.f != "read"]
    for answer in operations:
        if answer.f == "add" or answer.type != "ok":
            continue
        low = high = 0
        for added in adds:
            sure = added is answer or (added.end is not None and added.end < answer.start)
            if sure:
                low, high = low + added.argument, high + added.argument
            elif added.start <= (answer.end or 0):
                low, high = low + min(0, added.argument), high + max(0, added.argument)
        outside += not low <= answer.result <= high
    return outside


def differ(rounds: int) -> bool:
    random = Random("counter-bounds")
    for _ in range(rounds):
        history = random_history(random, "counter")
        figures = check(history, Unlimited()).figures
        if figures["too-low"] + figures["too-high"] != literal(history):
            return True
    return False


def test_the_sweep_agrees_with_the_definition_taken_literally() -> None:
    assert not differ(3000)


@pytest.mark.parametrize(("name", "other"), [("before", "until"), ("until", "before")])
def test_a_mutant_of_the_sums_disagrees(
    name: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_bounds._Sums, name, getattr(counter_bounds._Sums, other))
    assert differ(3000)
