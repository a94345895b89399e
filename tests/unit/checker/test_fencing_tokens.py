"""Fencing against its definition taken literally; ``outcome_cases`` has the rest."""

from random import Random

import msgspec
import pytest

from splitbrain.checker import fencing_tokens
from splitbrain.checker.fencing_tokens import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import random_history


def literal(operations: list[PairedOperation]) -> int:
    accepted = [o for o in operations if o.f == "write" and o.type == "ok" and o.result[2]]
    return sum(
        any((e.end or 0) < late.start and e.argument[0] > late.argument[0] for e in accepted)
        for late in accepted
    )


def test_a_token_that_only_the_client_knew_is_that_of_the_answer() -> None:
    history = random_history(Random(7), "fenced-register")

    def unknown(o: PairedOperation) -> PairedOperation:
        argument = [None, o.argument[1]] if o.f == "write" else o.argument
        return msgspec.structs.replace(o, argument=argument)

    late = operation("write", [None, 2], [1, 2, True], start=5, end=6)
    early = operation("write", [None, 1], [2, 1, True], start=1, end=2)
    assert check([early, late], Unlimited()).verdict == "invalid"
    assert check([late], Unlimited()).verdict == "valid"
    same = [check(each, Unlimited()) for each in (history, [*map(unknown, history)])]
    assert same[0].verdict == same[1].verdict


def differ() -> bool:
    random = Random("fencing")
    for _ in range(3000):
        history = random_history(random, "fenced-register")
        if check(history, Unlimited()).figures["lower-token-accepted"] != literal(history):
            return True
    return False


def test_the_sweep_agrees_with_the_definition_taken_literally() -> None:
    assert not differ()


def test_a_mutant_that_orders_ties_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing_tokens, "end_of", lambda o: o.end - 1)
    assert differ()


def test_a_mutant_that_takes_refusals_for_acceptance_disagrees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fencing_tokens, "granted", lambda _: True)
    assert differ()
