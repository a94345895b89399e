"""Facts that a model of a few lines leaves out are derived, and a search on them is right."""

from random import Random
from typing import Any

import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem, Transitions, properties
from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.small_histories import random_history


class Bare(KeyedModel):
    """Another model's steps and nothing else."""

    def __init__(self, name: str) -> None:
        self._steps = MODELS[name]
        self.name, self.functions = name, self._steps.functions
        self.initial = self._steps.initial
        self.answerless_functions = self._steps.answerless_functions
        # An answer's meaning to the model belongs to its steps.
        self.answer_of = self._steps.answer_of

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        return self._steps.step(state, call)


#: Those whose parts are keys; the others' calls carry keys, which is another matter.
KEYED = sorted(name for name, model in MODELS.items() if isinstance(model, KeyedModel))


@pytest.mark.parametrize("name", KEYED)
def test_a_search_on_what_was_found_out_agrees_with_brute_force(name: str) -> None:
    random = Random(f"bare {name}")
    for _ in range(1000):
        operations = random_history(random, name)
        outcome = Search(Problem(operations, Bare(name)), Unlimited()).run()
        expected = Verdict.VALID if linearizable(operations, name) else Verdict.INVALID
        assert outcome.verdict is expected, operations


def test_a_bare_register_is_found_out_to_be_one() -> None:
    operations = generate(HistoryOptions(400, 5))
    register, bare = MODELS["cas-register"], Bare("cas-register")
    told, found = Problem(operations, register), Problem(operations, bare)
    for ours, theirs in ((found.overwrite, told.overwrite), (found.pure, told.pure)):
        assert [ours[call] for call in found.call_by_place] == [
            theirs[call] for call in told.call_by_place
        ]


def test_it_is_searched_as_fast_as_the_built_in_one() -> None:
    operations = generate(HistoryOptions(400, 8, violation=True))
    told = Search(Problem(operations, MODELS["cas-register"]), Unlimited()).run()
    found = Search(Problem(operations, Bare("cas-register")), Unlimited()).run()
    assert found.configurations == told.configurations


def test_where_there_are_too_many_states_the_model_has_the_word() -> None:
    operations = generate(HistoryOptions(400, 5, values=0))
    problem = Problem(operations, Bare("cas-register"))
    assert not any(problem.pure)
    assert not any(problem.overwrite)


def test_an_overwrite_has_to_be_possible_in_every_state() -> None:
    class Once(KeyedModel):
        """Set from nothing only."""

        def step(self, state: Any, call: Call) -> tuple[bool, Any]:
            return state is None, call.argument

    calls = [Call("set", 1, None, known=True)]
    model = Once()
    assert properties(model, calls, Transitions(model, calls)) == ([False], [False])
