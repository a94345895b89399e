"""The checker of logs against an oracle that looks for a course of events."""

import os
from random import Random

import pytest

from splitbrain.checker.logs.check import check
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.logs.brute_force import is_explained
from tests.unit.checker.logs.small_logs import right_history, spoiled

#: A large round: SPLITBRAIN_BRUTE_FORCE_HISTORIES=100000.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1000"))


def agree_with_brute_force(count: int, *, transactions: bool) -> None:
    random = Random(f"logs {transactions}")
    wrong = 0
    for _ in range(count):
        history = right_history(random, transactions=transactions)
        assert check(history, Unlimited()).verdict is not Verdict.INVALID
        for _ in range(random.randint(1, 2)):
            history = spoiled(random, history)
        result = check(history, Unlimited())
        assert (result.verdict is Verdict.INVALID) == (not is_explained(history)), (
            result.reason,
            history,
        )
        wrong += result.verdict is Verdict.INVALID
    assert count / 4 < wrong < 3 * count / 4


@pytest.mark.parametrize("transactions", [False, True])
def test_a_verdict_is_what_the_definition_says(transactions: bool) -> None:
    agree_with_brute_force(HISTORIES, transactions=transactions)


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("transactions", [False, True])
def test_a_hundred_thousand_verdicts_are_what_the_definition_says(transactions: bool) -> None:
    agree_with_brute_force(100_000, transactions=transactions)
