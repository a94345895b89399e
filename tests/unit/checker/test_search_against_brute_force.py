"""The search and an oracle that tries every order must agree; each rule's mutant must not."""

import os
from random import Random
from typing import Any

import msgspec
import pytest

from checker.linearizability import check as check_module
from checker.linearizability import search as search_module
from checker.linearizability.check import check_part
from checker.linearizability.parts import Part, split
from checker.linearizability.problem import Problem
from checker.linearizability.search import Search, order_of
from checker.models.model import Model
from checker.models.registry import MODELS
from checker.verdict import Verdict
from contracts.budget import Unlimited
from history.records import PairedOperation
from tests.unit.checker.brute_force import AFTER, INITIAL, linearizable, precedes
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

#: Histories per model; docs/models-and-checkers.md has the command for 100,000 and more.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "8000"))
MUTANT_HISTORIES = 20_000


def verdict_of(
    operations: list[PairedOperation], model: Model, search: type[Search] = Search
) -> bool:
    outcome = search(Problem(operations, model), Unlimited()).run()
    assert outcome.verdict is not Verdict.UNKNOWN
    return outcome.verdict is Verdict.VALID


@pytest.mark.parametrize("model", sorted(MODELS))
def test_search_agrees_with_brute_force(model: str) -> None:
    random = Random(f"brute-force {model}")
    valid = 0
    for number in range(HISTORIES):
        operations = random_history(random, model)
        expected = linearizable(operations, model)
        found = verdict_of(operations, MODELS[model])
        assert found == expected, f"history {number}: {operations}"
        valid += expected
    assert 0.4 <= valid / HISTORIES <= 0.6, "the histories no longer test both verdicts"


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_order_found_is_legal_and_true_to_time(model: str) -> None:
    random = Random(f"order {model}")
    for _ in range(500):
        operations = random_history(random, model)
        outcome = Search(Problem(operations, MODELS[model]), Unlimited()).run()
        if outcome.verdict is not Verdict.VALID:
            continue
        order = [operations[place] for place in order_of(outcome.path)]
        assert len({operation.index for operation in order}) == len(order)
        assert {o.index for o in operations if o.type == "ok"} <= {o.index for o in order}
        states = {INITIAL[model]}
        for place, operation in enumerate(order):
            assert not any(precedes(later, operation) for later in order[place + 1 :])
            states = {after for state in states for after in AFTER[model](state, operation)}
            assert states


# --- mutants: each breaks one rule of the algorithm and must be told apart ------------------


class EverythingIsPure(Problem):
    """Rule 1 applied to writes as well."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.pure = [True] * len(self.calls)


class OpenOperationsForgotten(Problem):
    """Every info dropped."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.groups = []


class OpenOperationsMustHappen(Problem):
    """An info cas happens, at the latest at the end of the history."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        closed = [
            msgspec.structs.replace(
                operation, type="ok", end=10_000, result=[*operation.argument, True]
            )
            if operation.type == "info" and operation.f == "cas"
            else operation
            for operation in operations
        ]
        super().__init__(closed, model)


class OpenOperationsFromTheBeginning(Problem):
    """An info may take effect before it was invoked."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.groups = [group._replace(starts=(0,) * len(group.starts)) for group in self.groups]


class OpenOperationsOnce(Problem):
    """Of equal info operations only one can happen."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.groups = [
            group._replace(starts=group.starts[:1], places=group.places[:1])
            for group in self.groups
        ]


class TiesAreOrdered(Problem):
    """An operation that starts when another ends comes after it."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        ordered = [
            msgspec.structs.replace(
                operation,
                start=2 * operation.start + 1,
                end=None
                if operation.end is None
                else max(2 * operation.end, 2 * operation.start + 1),
            )
            for operation in operations
        ]
        super().__init__(ordered, model)


class ProcessOrderForgottenInTies(Problem):
    """Equal times are concurrent even within a process."""

    def _predecessors(self) -> dict[int, int]:
        return {}


class SlotsForgottenInMemo(Search):
    """The memo knows neither which operations are placed nor the state."""

    def _is_new(self, rank: int, mask: int, state: int, used: int) -> bool:
        return super()._is_new(rank, 0, 0, used)


class StateForgottenInMemo(Search):
    def _is_new(self, rank: int, mask: int, state: int, used: int) -> bool:
        return super()._is_new(rank, mask, 0, used)


class RankForgottenInMemo(Search):
    def _is_new(self, rank: int, mask: int, state: int, used: int) -> bool:
        return super()._is_new(0, mask, state, used)


class UsedForgottenInMemo(Search):
    """Rule 4 with every use of info alike."""

    def _is_new(self, rank: int, mask: int, state: int, used: int) -> bool:
        return super()._is_new(rank, mask, state, 0)


class OnlyFirstToReturn(Search):
    """Operations are tried in the order of their return alone."""

    def _settle(self, rank: int, mask: int, state: int, path: Any) -> Any:
        rank, mask, path, branches, tried = super()._settle(rank, mask, state, path)
        return rank, mask, path, branches[:1], tried


class NoOpenOperationBesideCompleted(Search):
    """An info is used only where no completed operation can come next."""

    def _add_open(
        self, branches: Any, tried: Any, rank: int, mask: int, state: int, used: int
    ) -> None:
        if not branches:
            super()._add_open(branches, tried, rank, mask, state, used)


PROBLEM_MUTANTS = [
    EverythingIsPure,
    OpenOperationsForgotten,
    OpenOperationsMustHappen,
    OpenOperationsFromTheBeginning,
    OpenOperationsOnce,
    TiesAreOrdered,
    ProcessOrderForgottenInTies,
]
SEARCH_MUTANTS = [
    SlotsForgottenInMemo,
    StateForgottenInMemo,
    RankForgottenInMemo,
    UsedForgottenInMemo,
    OnlyFirstToReturn,
    NoOpenOperationBesideCompleted,
]


def told_apart(problem: type[Problem], search: type[Search]) -> bool:
    random = Random("mutants")
    for _ in range(MUTANT_HISTORIES):
        operations = random_history(random, "cas-register")
        outcome = search(problem(operations, MODELS["cas-register"]), Unlimited()).run()
        if (outcome.verdict is Verdict.VALID) != linearizable(operations, "cas-register"):
            return True
    return False


@pytest.mark.parametrize("mutant", PROBLEM_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_of_the_compilation_is_told_apart(mutant: type[Problem]) -> None:
    assert told_apart(mutant, Search)


@pytest.mark.parametrize("mutant", SEARCH_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_of_the_search_is_told_apart(mutant: type[Search]) -> None:
    assert told_apart(Problem, mutant)


# --- the search in which open operations may take effect any number of times ------------------


@pytest.mark.parametrize(
    "model", sorted(name for name, model in MODELS.items() if model.bounded_states)
)
def test_what_has_no_order_with_repeatable_open_operations_has_none(model: str) -> None:
    random = Random(f"repeatable {model}")
    refuted = invalid = 0
    for _ in range(HISTORIES // 4):
        operations = random_history(random, model)
        problem = Problem(operations, MODELS[model], unlimited=range(len(operations)))
        outcome = Search(problem, Unlimited()).run()
        expected = linearizable(operations, model)
        invalid += not expected
        if outcome.verdict is Verdict.INVALID:
            refuted += 1
            assert not expected, operations
    # It is of use only if it refutes most of what can be refuted.
    assert refuted > 0.9 * invalid


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_portfolio_agrees_with_brute_force(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "POLL_INTERVAL", 1)
    monkeypatch.setattr(check_module, "FIRST_TRY_CONFIGURATIONS_MAX", 0)
    random = Random(f"portfolio {model}")
    deciders: set[str] = set()
    for _ in range(HISTORIES // 20):
        operations = random_history(random, model)
        (part,) = split(operations, MODELS[model]) or [Part(None, ())]
        result = check_part(part, model, Unlimited())
        assert (result.verdict is Verdict.VALID) == linearizable(operations, model), operations
        deciders.add(result.algorithm)
    assert check_module.EXACT in deciders
    assert (check_module.REPEATED in deciders) == MODELS[model].bounded_states


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


class EqualOnesAlwaysSwap(Problem):
    """Rule 2 without its exception."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.candidates = [
            tuple(candidate._replace(precedes_at_tie=False) for candidate in candidates)
            for candidates in self.candidates
        ]


def test_equal_writes_whose_processes_went_on_at_once_are_both_tried() -> None:
    model = MODELS["cas-register"]
    assert linearizable(tied(), "cas-register")
    assert verdict_of(tied(), model)
    assert Search(EqualOnesAlwaysSwap(tied(), model), Unlimited()).run().verdict is Verdict.INVALID
