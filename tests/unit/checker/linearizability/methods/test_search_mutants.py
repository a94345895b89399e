"""Each mutant breaks one rule of the search or of its compilation and must be told apart."""

from random import Random

import msgspec
import pytest

from splitbrain.checker.linearizability.methods.search import Configuration, Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Call, Model
from splitbrain.checker.models.register import CasRegister
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

MUTANT_HISTORIES = 4000


def verdict_of(operations: list[PairedOperation], model: Model) -> bool:
    return Search(Problem(operations, model), Unlimited()).run().verdict is Verdict.VALID


class PureCasRegister(CasRegister):
    def is_pure(self, call: Call) -> bool:
        return True


class EverythingIsPure(Problem):
    """Rule 1 applied to writes as well."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, PureCasRegister())


class OverwritingCasRegister(CasRegister):
    overwriting_functions = frozenset({"write", "cas"})


class EverythingOverwrites(Problem):
    """Rule 3 applied to compare-and-set as well."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, OverwritingCasRegister())


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


class MemoForgets(Search):
    """The memo knows neither which operations are done nor the state."""

    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, 0, 0, available, bound, used)


class DoneForgottenInMemo(Search):
    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, state, 0, available, bound, used)


class AvailableForgottenInMemo(Search):
    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, state, done, 0, bound, used)


class StateForgottenInMemo(Search):
    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, 0, done, available, bound, used)


class RankForgottenInMemo(Search):
    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(0, state, done, available, bound, used)


class UsedForgottenInMemo(Search):
    """Rule 6 with every use of info alike."""

    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, state, done, available, bound, 0)


class MoreUsedIsBetter(Search):
    """Rule 6 the wrong way round."""

    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        return super()._is_new(rank, state, done, ~available & 0xFFFF, bound, used)


class OnlyFirstToReturn(Search):
    """Operations are tried in the order of their return alone."""

    def _completed(self, here: Configuration) -> list[Configuration]:
        return super()._completed(here)[:1]


class NoOpenOperationBesideCompleted(Search):
    """An info is used only where no completed operation can come next."""

    def _open(self, here: Configuration) -> list[Configuration]:
        return [] if self._tried else super()._open(here)


class NoLastChance(Search):
    """An operation that is done is not used at its return any more."""

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
    """Rule 3 for all that is open, not for overwrites alone."""

    def _overwritten(self, rank: int, done: int) -> int:
        return done | sum(candidate.bit for candidate in self._problem.candidates[rank])


class OverwritesWaitForNobody(Search):
    """Rule 3 without the order of processes in ties."""

    def _overwritten(self, rank: int, done: int) -> int:
        waiting = self._problem.waiting_overwrites[rank]
        return super()._overwritten(rank, done) | sum(candidate.bit for candidate in waiting)


class DoneIsGone(Search):
    """Rule 2 without staying available."""

    def _settle(
        self, rank: int, state: int, done: int, available: int, bound: bool
    ) -> tuple[int, int, int]:
        rank, done, available = super()._settle(rank, state, done, available, bound)
        return rank, done, available & ~done


class BoundIsForgotten(Search):
    """After the last chance was taken up, the operation need not be used."""

    def _completed(self, here: Configuration) -> list[Configuration]:
        ways = super()._completed(here)
        gone = ~self._problem.bits[here[0]]
        return [(*way[:3], way[3] & gone, False, *way[5:]) if way[4] else way for way in ways]


class EqualOnesAlwaysSwap(Problem):
    """Rules 2 to 4 without their exception for ties."""

    def __init__(self, operations: list[PairedOperation], model: Model) -> None:
        super().__init__(operations, model)
        self.candidates = [
            tuple(candidate._replace(precedes_at_tie=False) for candidate in candidates)
            for candidates in self.candidates
        ]
        self.fresh = [
            tuple(candidate._replace(precedes_at_tie=False) for candidate in candidates)
            for candidates in self.fresh
        ]


PROBLEM_MUTANTS = [
    EverythingIsPure,
    EverythingOverwrites,
    OpenOperationsForgotten,
    OpenOperationsMustHappen,
    OpenOperationsFromTheBeginning,
    OpenOperationsOnce,
    TiesAreOrdered,
    ProcessOrderForgottenInTies,
]
SEARCH_MUTANTS = [
    BoundIsForgotten,
    MemoForgets,
    DoneForgottenInMemo,
    AvailableForgottenInMemo,
    StateForgottenInMemo,
    RankForgottenInMemo,
    UsedForgottenInMemo,
    MoreUsedIsBetter,
    OnlyFirstToReturn,
    NoOpenOperationBesideCompleted,
    NoLastChance,
    EveryoneStoodUnseen,
    OverwritesWaitForNobody,
    DoneIsGone,
]


def told_apart(problem: type[Problem], search: type[Search]) -> bool:
    """Whether a mutant gives another verdict than the search that agrees with brute force."""
    random = Random("mutants")
    model = MODELS["cas-register"]
    for number in range(MUTANT_HISTORIES):
        operations = random_history(random, model.name, (9, 16, 24)[number % 3])
        outcome = search(problem(operations, model), Unlimited()).run()
        if (outcome.verdict is Verdict.VALID) != verdict_of(operations, model):
            return True
    return False


@pytest.mark.parametrize("mutant", PROBLEM_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_of_the_compilation_is_told_apart(mutant: type[Problem]) -> None:
    assert told_apart(mutant, Search)


@pytest.mark.parametrize("mutant", SEARCH_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_of_the_search_is_told_apart(mutant: type[Search]) -> None:
    assert told_apart(Problem, mutant)


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
    assert Search(EqualOnesAlwaysSwap(history, model), Unlimited()).run().verdict is Verdict.VALID
