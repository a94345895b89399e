"""The checker of groups against an oracle that tries all orders."""

import os
from collections import Counter
from random import Random

import pytest

from splitbrain.checker.groups.check import KINDS, check
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.groups.brute_force import kinds_of
from tests.unit.checker.groups.replaced_coordinators import replaced_history
from tests.unit.checker.groups.small_groups import right_history, spoiled

#: A large round: SPLITBRAIN_BRUTE_FORCE_HISTORIES=100000.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1000"))


def agree_with_brute_force(count: int, *, has_generations: bool) -> None:
    random = Random(f"groups {has_generations}")
    found: Counter[str] = Counter()
    wrong = 0
    for _ in range(count):
        history = right_history(random, has_generations=has_generations)
        assert check(history, Unlimited()).verdict is not Verdict.INVALID, history
        for _ in range(random.randint(1, 3)):
            history = spoiled(random, history)
        result = check(history, Unlimited())
        kinds = {violation["kind"] for violation in result.violations}
        assert kinds == kinds_of(history), (kinds, kinds_of(history), result.reason, history)
        wrong += result.verdict is Verdict.INVALID
        found.update(kinds)
    assert count / 3 < wrong < 9 * count / 10
    assert found.keys() == {*KINDS}


@pytest.mark.parametrize("has_generations", [False, True])
def test_a_verdict_is_what_the_definition_says(has_generations: bool) -> None:
    agree_with_brute_force(HISTORIES, has_generations=has_generations)


@pytest.mark.parametrize("has_generations", [False, True])
def test_a_coordinator_that_was_replaced_shows_nothing_but_stale_offsets(
    has_generations: bool,
) -> None:
    random = Random(f"replaced {has_generations}")
    stale = 0
    for _ in range(HISTORIES):
        history = replaced_history(random, has_generations=has_generations)
        result = check(history, Unlimited())
        kinds = {violation["kind"] for violation in result.violations}
        assert kinds <= {"stale-offset"}, (result.reason, history)
        stale += bool(kinds)
    assert stale > HISTORIES / 40


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("has_generations", [False, True])
def test_a_hundred_thousand_verdicts_are_what_the_definition_says(has_generations: bool) -> None:
    agree_with_brute_force(100_000, has_generations=has_generations)
