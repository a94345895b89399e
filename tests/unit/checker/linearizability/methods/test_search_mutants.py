"""Each mutant breaks one rule of the search or of its compilation and must be told apart."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.methods.search import Configuration, Search
from splitbrain.checker.linearizability.part import problem as problem_module
from splitbrain.checker.linearizability.part.open_groups import OpenGroup
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Call, Model
from splitbrain.checker.models.register import CasRegister
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

MUTANT_HISTORIES = 4000
Maker = Callable[[list[PairedOperation], Model], Problem]


def verdict_of(operations: list[PairedOperation], model: Model) -> bool:
    return Search(Problem(operations, model), Unlimited()).run().verdict is Verdict.VALID


# --- of the problem ---------------------------------------------------------------------------


class PureCasRegister(CasRegister):
    def is_pure(self, call: Call) -> bool:
        return True


class OverwritingCasRegister(CasRegister):
    overwriting_functions = frozenset({"write", "cas"})


def regrouped(change: Callable[[OpenGroup], OpenGroup | None]) -> Maker:
    def made(operations: list[PairedOperation], model: Model) -> Problem:
        problem = Problem(operations, model)
        problem.groups = [new for group in problem.groups if (new := change(group)) is not None]
        return problem

    return made


def replayed(change: Callable[[PairedOperation], PairedOperation]) -> Maker:
    return lambda operations, model: Problem([*map(change, operations)], model)


def closed(o: PairedOperation) -> PairedOperation:
    if o.type != "info" or o.f != "cas":
        return o
    return msgspec.structs.replace(o, type="ok", end=10_000, result=[*o.argument, True])


def apart(o: PairedOperation) -> PairedOperation:
    start = 2 * o.start + 1
    return msgspec.structs.replace(
        o, start=start, end=None if o.end is None else max(2 * o.end, start)
    )


def without_ties(operations: list[PairedOperation], model: Model) -> Problem:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(problem_module, "predecessors_of", lambda _: {})
        return Problem(operations, model)


def always_swapping(operations: list[PairedOperation], model: Model) -> Problem:
    """Rules 2 to 4 without their exception for ties."""
    problem = Problem(operations, model)
    for rows in (problem.candidates, problem.fresh):
        rows[:] = [tuple(c._replace(precedes_at_tie=False) for c in row) for row in rows]
    return problem


PROBLEM_MUTANTS: dict[str, Maker] = {
    "rule 1 for writes as well": lambda operations, _: Problem(operations, PureCasRegister()),
    "rule 3 for cas as well": lambda operations, _: Problem(operations, OverwritingCasRegister()),
    "every info is dropped": regrouped(lambda _: None),
    "an info cas happens, at the end at the latest": replayed(closed),
    "an info may take effect before it was invoked": regrouped(
        lambda group: group._replace(starts=(0,) * len(group.starts))
    ),
    "of equal info only one can happen": regrouped(
        lambda group: group._replace(starts=group.starts[:1], places=group.places[:1])
    ),
    "what starts when another ends comes after it": replayed(apart),
    "equal times are concurrent even within a process": without_ties,
}

# --- of the search ----------------------------------------------------------------------------


def remembering(**instead: Callable[[int], int]) -> type[Search]:
    """Return a search whose memo takes something else for these parts of a configuration."""

    def is_new(self: Search, *parts: Any) -> bool:
        names = ("rank", "state", "done", "available", "bound", "used")
        configuration: dict[str, Any] = dict(zip(names, parts, strict=True))
        for name, change in instead.items():
            configuration[name] = change(configuration[name])
        return Search._is_new(self, **configuration)

    return type("Forgets", (Search,), {"_is_new": is_new})


def nothing(_: int) -> int:
    return 0


class OnlyFirstToReturn(Search):
    def _completed(self, here: Configuration) -> list[Configuration]:
        return super()._completed(here)[:1]


class NoOpenOperationBesideCompleted(Search):
    def _open(self, here: Configuration) -> list[Configuration]:
        return [] if self._tried else super()._open(here)


class NoLastChance(Search):
    def _settle(
        self, rank: int, state: int, done: int, available: int, bound: bool
    ) -> tuple[int, int, int]:
        settled = super()._settle(rank, state, done, available, bound)
        while settled[0] < self._count and not bound:
            rank, done, available = settled
            bit = self._problem.bits[rank]
            if not done & bit:
                break
            settled = super()._settle(rank, state, done, available & ~bit, bound)
        return settled


class EveryoneStoodUnseen(Search):
    def _overwritten(self, rank: int, done: int) -> int:
        return done | sum(candidate.bit for candidate in self._problem.candidates[rank])


class OverwritesWaitForNobody(Search):
    def _overwritten(self, rank: int, done: int) -> int:
        waiting = self._problem.waiting_overwrites[rank]
        return super()._overwritten(rank, done) | sum(candidate.bit for candidate in waiting)


class DoneIsGone(Search):
    def _settle(
        self, rank: int, state: int, done: int, available: int, bound: bool
    ) -> tuple[int, int, int]:
        rank, done, available = super()._settle(rank, state, done, available, bound)
        return rank, done, available & ~done


class BoundIsForgotten(Search):
    def _completed(self, here: Configuration) -> list[Configuration]:
        ways = super()._completed(here)
        gone = ~self._problem.bits[here[0]]
        return [(*way[:3], way[3] & gone, False, *way[5:]) if way[4] else way for way in ways]


class RefusalsWantNothing(Search):
    def _needed_by(self, call: int) -> int:
        needed = super()._needed_by(call)
        return 1000 if needed < 0 else needed


class NothingWithoutAnswerIsWanted(Search):
    def _needed(self, here: Configuration) -> Iterator[OpenGroup]:
        wanted = self._wanted(here)
        moves = self._problem.transitions.moves or []
        return (group for group in super()._needed(here) if moves[group.call].leaves in wanted)


class OwedToAnswersThatNeededIt(Search):
    def _is_owed(self, rank: int, state: int, done: int) -> bool:
        return True


class NoCasNeedsWhatIsOwed(Search):
    def _completed(self, here: Configuration) -> list[Configuration]:
        ways = super()._completed(here)
        return [] if here[7] else ways


class NothingWithoutAnswerNeedsWhatIsOwed(Search):
    def _open(self, here: Configuration) -> list[Configuration]:
        return [] if here[7] else super()._open(here)


class Dive(Search):
    def __init__(self, problem: Problem, budget: Budget) -> None:
        super().__init__(problem, budget, dive=True)


SEARCH_MUTANTS: dict[str, type[Search]] = {
    "refusals want nothing": RefusalsWantNothing,
    "nothing without answer is wanted": NothingWithoutAnswerIsWanted,
    "owed to answers that needed it": OwedToAnswersThatNeededIt,
    "no cas needs what is owed": NoCasNeedsWhatIsOwed,
    "nothing without answer needs what is owed": NothingWithoutAnswerNeedsWhatIsOwed,
    "a search is a dive": Dive,
    "after its last chance an operation need not be used": BoundIsForgotten,
    "the memo knows neither what is done nor the state": remembering(state=nothing, done=nothing),
    **{
        f"the memo forgets {name}": remembering(**{name: nothing})
        for name in ("rank", "state", "done", "available", "used")
    },
    "rule 6 the wrong way round": remembering(available=lambda bits: ~bits & 0xFFFF),
    "operations are tried in the order of their return alone": OnlyFirstToReturn,
    "an info is used only where no completed one can come": NoOpenOperationBesideCompleted,
    "what is done is not used at its return any more": NoLastChance,
    "rule 3 for all that is open, not for overwrites alone": EveryoneStoodUnseen,
    "rule 3 without the order of processes in ties": OverwritesWaitForNobody,
    "rule 2 without staying available": DoneIsGone,
}


def told_apart(problem: Maker, search: type[Search]) -> bool:
    """Whether a mutant gives another verdict than the search that agrees with brute force."""
    random = Random("mutants")
    model = MODELS["cas-register"]
    for number in range(MUTANT_HISTORIES):
        operations = random_history(random, model.name, (9, 16, 24)[number % 3])
        outcome = search(problem(operations, model), Unlimited()).run()
        if (outcome.verdict is Verdict.VALID) != verdict_of(operations, model):
            return True
    return False


@pytest.mark.parametrize("mutant", PROBLEM_MUTANTS)
def test_a_mutant_of_the_compilation_is_told_apart(mutant: str) -> None:
    assert told_apart(PROBLEM_MUTANTS[mutant], Search)


@pytest.mark.parametrize("mutant", SEARCH_MUTANTS)
def test_a_mutant_of_the_search_is_told_apart(mutant: str) -> None:
    assert told_apart(Problem, SEARCH_MUTANTS[mutant])


# --- equal operations that return together are not always interchangeable ----------------------


def tied() -> list[PairedOperation]:
    """Two equal writes return at the moment at which their processes go on; valid."""
    return [
        op("cas", [1, 0], [1, 0, False], start=0, end=1, process=1, index=0),
        op("write", 1, start=1, end=4, process=2, index=2),
        op("write", 2, start=1, end=4, process=0, index=4),
        op("write", 2, start=2, end=4, process=1, index=6),
        op("cas", [1, 1], [1, 1, False], start=4, end=7, process=0, index=8),
        op("read", None, 1, start=4, end=5, process=1, index=10),
        op("cas", [1, 0], [1, 0, False], start=5, end=7, process=2, index=12),
    ]


def test_equal_writes_whose_processes_went_on_at_once_are_both_tried() -> None:
    model = MODELS["cas-register"]
    assert linearizable(tied(), "cas-register")
    assert verdict_of(tied(), model)


def test_what_a_process_did_before_cannot_change_the_state_after_what_it_did_next() -> None:
    history = [
        op("write", 1, start=0, end=5, process=0, index=0),
        op("write", 1, start=0, end=4, process=1, index=1),
        op("write", 2, start=0, end=5, process=2, index=2),
        op("read", None, 2, start=5, end=6, process=0, index=3),
        op("read", None, 1, start=7, end=8, process=1, index=4),
    ]
    model = MODELS["cas-register"]
    assert not linearizable(history, model.name)
    assert not verdict_of(history, model)
    assert Search(always_swapping(history, model), Unlimited()).run().verdict is Verdict.VALID
