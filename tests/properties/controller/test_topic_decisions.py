"""Decisions about topics and configs: answer and records agree, whatever is asked."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.metadata.errors import ContradictionError
from tests.properties.controller.topic_stories import MUTANTS, Decide, decide, problems_of


@given(st.integers(0, 2**32))
def test_answers_and_records_agree(seed: int) -> None:
    assert list(problems_of(random.Random(seed))) == []


def test_stories_come_to_topics_and_to_refusals() -> None:
    codes: set[int] = set()

    def noting(*asked: object) -> object:
        decision = decide(*asked)  # pyright: ignore[reportArgumentType]
        for items in (
            getattr(decision.answer, name, ()) for name in ("topics", "responses", "results")
        ):
            codes.update(int(each.error_code) for each in items)
        return decision

    for seed in range(100):
        list(problems_of(random.Random(seed), decided=noting))  # pyright: ignore[reportArgumentType]
    assert codes >= {0, 3, 17, 36, 37, 38, 39, 40, 42, 100}


@pytest.mark.parametrize(("mutant", "problem"), MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_decision_is_noticed(mutant: Decide, problem: str) -> None:
    for seed in range(200):
        try:
            if any(problem in each for each in problems_of(random.Random(seed), decided=mutant)):
                return
        except ContradictionError:
            continue
    pytest.fail("no story notices the mutant")
