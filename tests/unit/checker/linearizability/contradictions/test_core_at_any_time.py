"""The core while the others may happen at any time: contradictory by itself, minimal, preferred."""

from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.contradictions import at_any_time as at_any_time_module
from splitbrain.checker.linearizability.contradictions.at_any_time import AnyTimeHistory
from splitbrain.checker.linearizability.contradictions.core import (
    AT_ANY_TIME_MAX,
    core_at_any_time,
    find_core,
)
from splitbrain.checker.models.registry import MODELS
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import contradictions, random_history

CONFIGURATIONS_MAX = 1_000_000
HISTORIES = 2_000


def orderable(history: list[PairedOperation], members: set[int], model: str) -> bool:
    """The definition, tried out: the others have no answer, and were open from the beginning."""
    first = min((o.start for o in history), default=0)
    freed = [
        msgspec.structs.replace(
            o, process=-1 - o.index, type="info", result=None, start=first, end=None
        )
        for place, o in enumerate(history)
        if place not in members
    ]
    return linearizable([*freed, *(history[place] for place in sorted(members))], model)


def agrees(history_type: type[AnyTimeHistory], model: str, histories: int) -> tuple[bool, int]:
    """Whether every answer was the definition's; how many contradictions there were."""
    random = Random(f"at any time {model}")
    refuted = 0
    for _ in range(histories):
        history = random_history(random, model, size_max=7)
        members = {place for place in range(len(history)) if random.random() < 0.7}
        asked = history_type(history, members, MODELS[model], Unlimited())
        expected = not orderable(history, members, model)
        if asked.contradict(members, CONFIGURATIONS_MAX) != expected:
            return False, refuted
        refuted += expected
    return True, refuted


@pytest.mark.parametrize("model", sorted(MODELS))
def test_what_contradicts_at_any_time_is_what_the_definition_says(model: str) -> None:
    right, refuted = agrees(AnyTimeHistory, model, HISTORIES)
    assert right
    assert refuted > HISTORIES / 40


MUTANTS = {
    "the others never happen": (
        "range(count)]\n        return",
        "range(0)]\n        return",
    ),
    "what repetition allows is allowed": (
        "if self._search(repeated, until) is Verdict.INVALID:\n                return True",
        "return self._search(repeated, until) is Verdict.INVALID",
    ),
    "the others happen once however many there are": (
        "min(count, needed)",
        "min(count, 1)",
    ),
    "members are freed as well": (
        "Problem([*freed, *kept], self._model), until)",
        "Problem([*freed], self._model), until)",
    ),
    "the others begin late": ("begin = min(", "begin = 3 + max("),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_questions_is_told_apart(mutant: str) -> None:
    module: Any = mutated(at_any_time_module, *MUTANTS[mutant])
    models = ("cas-register", "counter", "fifo-queue")
    assert not all(agrees(module.AnyTimeHistory, model, HISTORIES)[0] for model in models)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_core_is_invalid_by_itself_and_valid_without_any_member(model: str) -> None:
    random = Random(f"core at any time {model}")
    found = 0
    for before, last in contradictions(random, model, 150):
        core = core_at_any_time(before, last, MODELS[model], Unlimited(), ())
        if core is None:
            # A later return is always free, and its invocation can matter.
            assert any((o.end or 0, o.index) > (last.end or 0, last.index) for o in before)
            continue
        found += 1
        assert core.minimal
        assert last in core.operations
        members = {place for place, o in enumerate(before) if o in core.operations}
        assert not orderable(before, members, model)
        for member in members:
            assert orderable(before, members - {member}, model)
    assert found > 100


def test_where_equal_ones_were_left_out_nothing_is_said_but_by_repetition() -> None:
    count = at_any_time_module.EQUAL_FREED_MAX + 1
    adds = [operation("add", 1, start=4 * n, end=4 * n + 1) for n in range(count)]
    for answer, expected in ((count - 1, False), (count, None), (count + 1, None)):
        read = operation("read", None, answer, start=4 * count, end=4 * count + 1)
        asked = AnyTimeHistory([*adds, read], [count], MODELS["counter"], Unlimited())
        assert asked.contradict([count], CONFIGURATIONS_MAX) is expected


def test_where_values_repeat_the_others_keep_their_intervals() -> None:
    """Each of many writes of the value could stand before the stale read."""
    count = 3 * AT_ANY_TIME_MAX
    old = [operation("write", 1, start=4 * n, end=4 * n + 1) for n in range(count)]
    new = operation("write", 2, start=4 * count, end=4 * count + 1)
    stale = operation("read", None, 1, start=4 * count + 2, end=4 * count + 3)
    history = [*old, new, stale]
    core = find_core(history, stale, MODELS["register"], Unlimited())
    assert not core.at_any_time
    assert core.minimal
    assert core.operations == (new, stale)
    few = find_core(history[-4:], stale, MODELS["register"], Unlimited())
    assert few.at_any_time
    assert few.minimal
    assert few.operations == tuple(history[-4:])


def test_a_long_core_is_told_beside_the_short_one_that_needs_the_times_of_the_rest() -> None:
    count = 6
    old = [operation("write", 1, start=4 * n, end=4 * n + 1) for n in range(count)]
    new = operation("write", 2, start=4 * count, end=4 * count + 1)
    stale = operation("read", None, 1, start=4 * count + 2, end=4 * count + 3)
    (violation,) = check([*old, new, stale], "register", Unlimited()).violations
    assert violation["core_at_any_time"]
    assert violation["core_size"] == count + 2
    assert violation["core_while_open"] == [new.index, stale.index]
    assert violation["sentence"].endswith(
        f"It contradicts {count + 1} other operations, whatever the rest answered and whenever it "
        f"took effect. While the rest keeps its times, it contradicts write 2 (index {new.index}, "
        f"process {new.process}) alone."
    )
