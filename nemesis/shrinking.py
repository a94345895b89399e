"""Makes a failing plan as small as it can be while it fails in the same way. Pure.

One search over one record, whoever is asked. Where the oracle is exact: all at once, if that will
do; else faults first, then operations, then when faults strike, then clients and nodes, then
weather and settings, all of it again until nothing changes. A smaller world draws other delays, so
a failure that is there in principle may hide in one seed: large removals are tried with a few other
seeds before many operations are tried one by one, and where nothing can go any more, small ones are
too. Where a plan is run k times of n, each question costs runs: faults and the load around them,
nodes, clients and durations; then the faults once more, and where one goes after all, the rest too.
Must never hand back a plan that was not seen to fail, but for the one that it was given. Source:
issue 5, item 8; issue 6, item 6; issue 19, item 3.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from splitbrain.contracts.budget import Budget
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.scenario import Scenario
from splitbrain.nemesis.exact_steps import (
    BOLD,
    BUGS,
    FAULTS,
    LENGTH_STEP,
    OPERATIONS,
    OPERATIONS_BY_CLIENT,
    ended,
    exact_steps,
    trimmed,
)
from splitbrain.nemesis.run_steps import FAULTS_WITH_THEIR_LOAD, RUN_STEPS
from splitbrain.nemesis.search import Happened, ListStep, Oracle, Search

#: Other seeds with which a removal is tried that fails in the scenario's own.
OTHER_SEEDS: Final = 8
#: Operations above which single ones are not tried with other seeds; there would be too many.
_SINGLES_MAX: Final = 40
#: Operations up to which delta debugging is cheaper than large removals with other seeds.
_FEW_OPERATIONS: Final = 10


class Smallest(msgspec.Struct, frozen=True):
    """Result of a search."""

    plan: Scenario
    #: Whether no fault can be taken away alone, and no operation either where single ones were
    #: asked about; False where nobody knows.
    is_minimal: bool


def shrink(
    start: Scenario, oracle: Oracle, budget: Budget, other_seeds: int = OTHER_SEEDS
) -> Smallest:
    """Return the smallest plan found that fails in the same way; ``start`` itself where none does.

    ``oracle``, if it is exact, has seen ``start`` fail or not; ``other_seeds``: with which a
    removal is tried that fails in the scenario's own.
    """
    if oracle.happened is None:
        return _by_runs(Search(start, oracle, budget))
    search = _ExactSearch(start, oracle, budget, other_seeds)
    is_minimal = search.descend()
    while search.leap(_removals):
        is_minimal = search.descend()
    search.end()
    return Smallest(search.best, is_minimal)


def _by_runs(search: Search) -> Smallest:
    """Return the faults, then all else; again only where another fault goes after that."""
    simplified: tuple[Fault, ...] | None = None
    while True:
        is_minimal = search.list(FAULTS_WITH_THEIR_LOAD)
        before = search.best
        if before.faults != simplified and not search.is_over:
            for step in RUN_STEPS:
                search.value(step)
        if search.best == before:
            return Smallest(before, is_minimal)
        simplified = search.best.faults


class _ExactSearch(Search):
    """The best scenario so far, made smaller by what its failing run showed of it."""

    def __init__(self, start: Scenario, oracle: Oracle, budget: Budget, other_seeds: int) -> None:
        super().__init__(start, oracle, budget)
        self._other_seeds = other_seeds

    @property
    def _happened(self) -> Happened:
        happened = self._oracle.happened
        assert happened is not None, "an exact oracle says what it saw"
        return happened

    def descend(self) -> bool:
        """Take away what can go in this seed; whether no fault and no operation can go alone."""
        while True:
            before = self.best
            is_minimal = self._coarsely()
            while len(self.best.load.kept or ()) > _FEW_OPERATIONS and self.leap(_large_removals):
                is_minimal = self._coarsely()
            # Else the run is not the same when its operations are spelt out: all of them stay.
            is_minimal &= self.best.load.kept is not None
            is_minimal &= self.list(OPERATIONS)
            for step in exact_steps(self.best):
                self.value(step)
            if self._happened.failed_us is None:
                self.value(LENGTH_STEP)
            if len(self.best.bugs) > 1:
                self.list(BUGS)
            if self.best == before or self.is_over:
                return is_minimal and self.best == before

    def _coarsely(self) -> bool:
        """Take away what can go in large pieces; whether no fault can go alone."""
        self._trim()
        self.value(BOLD)
        is_minimal = self.list(FAULTS)
        self.list(OPERATIONS_BY_CLIENT)
        return is_minimal

    def leap(self, removals: Callable[[Scenario], Iterable[Scenario]]) -> bool:
        """Find a removal that fails in another seed; False where there is none."""
        return any(
            self.takes(msgspec.structs.replace(candidate, seed=seed), "other seeds")
            for candidate in removals(self.best)
            for seed in range(1, self._other_seeds + 1)
            if not self.is_over
        )

    def end(self) -> None:
        """End the load with the failure; done last, since a smaller run may fail later."""
        self.takes(ended(self.best, self._happened), "length of the load")

    def _trim(self) -> None:
        """Drop what came after the failure, as long as that changes something."""
        # A run's evidence changes with each step, so that the candidates are made anew.
        while any(
            self.takes(candidate, "what came after")
            for candidate in trimmed(self.best, self._happened)
        ):
            pass


def _large_removals(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios without weather, without operations, or with half of them."""
    yield from BOLD.simpler(scenario)
    kept = len(OPERATIONS.items(scenario))
    if kept:
        yield from _without(scenario, OPERATIONS, (kept + 1) // 2)


def _removals(scenario: Scenario) -> Iterator[Scenario]:
    """Those, and scenarios without one fault, and without one operation."""
    yield from _large_removals(scenario)
    yield from _without(scenario, FAULTS, 1)
    if len(OPERATIONS.items(scenario)) <= _SINGLES_MAX:
        yield from _without(scenario, OPERATIONS, 1)


def _without(scenario: Scenario, step: ListStep, count: int) -> Iterable[Scenario]:
    items = step.items(scenario)
    for start in range(0, len(items), count):
        yield step.keeping(scenario, items[:start] + items[start + count :])
