"""The core of a violation: contradictory by itself, minimal, small, and not slow to find."""

import os
from itertools import product
from random import Random
from statistics import median
from typing import Any

import msgspec
import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.contradictions import relaxed as relaxed_module
from splitbrain.checker.linearizability.contradictions.core import core_while_open
from splitbrain.checker.linearizability.contradictions.relaxed import (
    CHECKPOINT_INTERVAL,
    RelaxedHistory,
)
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem, Transitions
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import contradictions, random_history

CONFIGURATIONS_MAX = 1_000_000
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "800"))
PURE = ("read", "get")


def orderable(history: list[PairedOperation], members: set[int], model: str) -> bool:
    """The definition, tried out: each relaxed one absent, once or twice while it was open."""
    kept = [o for place, o in enumerate(history) if place in members]
    relaxed = [o for place, o in enumerate(history) if place not in members and o.f not in PURE]
    times = (0, 1, 2) if MODELS[model].bounded_states else (0, 1)
    return any(
        linearizable([*kept, *copies(relaxed, counts)], model)
        for counts in product(times, repeat=len(relaxed))
    )


def copies(relaxed: list[PairedOperation], counts: tuple[int, ...]) -> list[PairedOperation]:
    return [
        msgspec.structs.replace(
            o,
            process=-1 - 2 * o.index - number,
            # It need not happen, but where it does, it does so before its return.
            type="info",
            result=None,
        )
        for o, count in zip(relaxed, counts, strict=True)
        for number in range(count)
    ]


def random_question(random: Random, model: str) -> tuple[list[PairedOperation], int, set[int]]:
    """A small history, the place of its last return, and some places, that one among them."""
    while True:
        history = random_history(random, model, size_max=7)
        returned = [place for place, o in enumerate(history) if o.type == "ok"]
        if returned:
            break
    last = max(returned, key=lambda place: (history[place].end, history[place].index))
    members = {place for place in range(len(history)) if random.random() < 0.6}
    # Three relaxed changes at most, so that all ways to repeat them can be tried.
    changes = [p for p, o in enumerate(history) if p not in members and o.f not in PURE]
    return history, last, {*members, last, *changes[3:]}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_what_contradicts_while_the_rest_is_relaxed_is_what_the_definition_says(model: str) -> None:
    random = Random(f"relaxed {model}")
    refuted = 0
    for number in range(HISTORIES):
        history, last, members = random_question(random, model)
        asked = RelaxedHistory(history, history[last], MODELS[model], Unlimited())
        found = asked.contradict(members, CONFIGURATIONS_MAX)
        expected = not orderable(history, members, model)
        assert found == expected, f"question {number}: {members} of {history}"
        refuted += expected
    assert refuted > HISTORIES / 20


class RelaxedNeverHappens(RelaxedHistory):
    def droppable(self, members: Any) -> frozenset[int]:
        return frozenset(self._relaxed)


class RelaxedIsOpenForEver(relaxed_module._Walk):
    def _return(self, place: int) -> None:
        if place in self._members:
            super()._return(place)


class MembersNeedNotHappen(relaxed_module._Walk):
    def _return(self, place: int) -> None:
        super()._return(place)
        self._configurations = self._configurations or {(0, 0)}


class LenientTransitions(Transitions):
    def after(self, state: int, call: int) -> int:
        following = super().after(state, call)
        return state if following < 0 else following


class AnswersAreIgnored(RelaxedHistory):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.transitions = LenientTransitions(self._model, self._calls)


class ProcessOrderForgottenInTies(RelaxedHistory):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._predecessor = {}


@pytest.mark.parametrize(
    "mutant",
    [
        RelaxedNeverHappens,
        RelaxedIsOpenForEver,
        MembersNeedNotHappen,
        AnswersAreIgnored,
        ProcessOrderForgottenInTies,
    ],
)
def test_a_mutant_of_the_walk_is_told_apart(mutant: type, monkeypatch: pytest.MonkeyPatch) -> None:
    if issubclass(mutant, RelaxedHistory):
        monkeypatch.setitem(globals(), "RelaxedHistory", mutant)
    else:
        monkeypatch.setattr(relaxed_module, "_Walk", mutant)
    with pytest.raises(AssertionError):
        test_what_contradicts_while_the_rest_is_relaxed_is_what_the_definition_says("cas-register")


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_core_is_invalid_by_itself_and_valid_without_any_member(model: str) -> None:
    random = Random(f"core {model}")
    tried = 0
    for before, last in contradictions(random, model, 150):
        core = core_while_open(before, last, MODELS[model], Unlimited())
        assert core.minimal
        # A later return need not have happened by then.
        by_then = [
            msgspec.structs.replace(o, type="info", end=None)
            if o.end is None or (o.end, o.index) > (last.end or 0, last.index)
            else o
            for o in before
        ]
        members = {place for place, o in enumerate(before) if o in core.operations}
        changes = [p for p, o in enumerate(before) if p not in members and o.f not in PURE]
        if len(changes) > 4 or any(
            o.type == "ok" and by_then[place].type == "info" for place, o in enumerate(before)
        ):
            continue
        tried += 1
        assert last in core.operations
        assert not orderable(by_then, members, model)
        for member in members:
            assert orderable(by_then, members - {member}, model)
    assert tried > 30


def test_a_core_near_the_end_of_a_long_history_is_the_same_as_without_the_beginning() -> None:
    noise = [
        operation("write", n % 3, start=10 * n - 9000, end=10 * n - 8995, process=1)
        for n in range(8 * CHECKPOINT_INTERVAL)
    ]
    stale = [
        operation("write", 1, start=0, end=2),
        operation("write", 2, start=3, end=5),
        operation("read", None, 1, start=6, end=8),
    ]
    history = [*noise, *stale]
    asked = RelaxedHistory(history, history[-1], MODELS["register"], Unlimited())
    count = len(history)
    assert asked.contradict([count - 1, count - 2], CONFIGURATIONS_MAX) is True
    before = asked.configurations
    assert asked.contradict([count - 1, count - 2], CONFIGURATIONS_MAX) is True
    assert asked.configurations - before < 200
    assert asked.contradict([count - 1], CONFIGURATIONS_MAX) is False
    core = core_while_open(history, history[-1], MODELS["register"], Unlimited())
    assert [member.index for member in core.operations] == [3, 6]


def test_a_walk_that_gave_up_says_neither() -> None:
    history = generate(HistoryOptions(200, 10))
    last = max(history, key=lambda o: o.end or 0)
    asked = RelaxedHistory(history, last, MODELS["cas-register"], Unlimited())
    assert asked.contradict(range(len(history)), 50) is None


# --- quality: values repeat, so most reads could come from many writes --------------------------


def with_stale_read(seed: int) -> tuple[list[PairedOperation], PairedOperation]:
    """200 operations of 10 clients on 5 values, one read changed so that no order is left."""
    history = generate(HistoryOptions(200, 10, seed=seed))
    random = Random(seed)
    while True:
        place = random.randrange(50, 200)
        read = history[place]
        if read.f != "read":
            continue
        stale = msgspec.structs.replace(read, result=random.randrange(5))
        spoiled = [*history[:place], stale, *history[place + 1 :]]
        outcome = Search(Problem(spoiled, MODELS["cas-register"]), Unlimited()).run()
        if outcome.verdict is Verdict.INVALID:
            return spoiled, stale


def test_the_core_of_a_stale_read_names_it_and_is_small() -> None:
    sizes: list[int] = []
    for seed in range(20):
        history, stale = with_stale_read(seed)
        (violation,) = check(history, "cas-register", Unlimited()).violations
        assert violation["core_minimal"]
        assert stale.index in [member["index"] for member in violation["core"]]
        sizes.append(violation["core_size"])
    assert median(sizes) <= 12, sizes
    assert max(sizes) <= 40, sizes
