"""The search for a smaller plan that still fails: its steps, its best, its budget.

Whether a candidate still fails is asked of an oracle, which runs it, exactly or k times of n. A
step only makes candidates: a list offers its parts to delta debugging, a value its simpler
neighbours. Pure; must never hand back a plan of which the oracle was not asked, but for the one
that it was given. Source: issue 19, item 3.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from splitbrain.contracts.budget import Budget
from splitbrain.contracts.scenario import Scenario
from splitbrain.nemesis.shrink import ddmin, simplest

#: Why a search ended that somebody wanted to end.
INTERRUPTED: Final = "interrupted"
#: A worker slot and the number of one of its operations.
Pair = tuple[int, int]


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence of a failing run of a scenario, for whoever wants to make it smaller."""

    #: Faults that struck before it failed, by their index.
    struck: frozenset[int]
    #: Operations that clients began while faults could strike, in the order of their begin.
    performed: tuple[Pair, ...]
    #: When it failed, where that was before everything healed.
    failed_us: int | None = None


class Oracle(Protocol):
    """Says whether a smaller plan still fails; asks whatever it asks at most once."""

    @property
    def happened(self) -> Happened | None:
        """Evidence of the plan that failed last; None: another run of it may differ."""
        ...

    def fails(self, candidate: Scenario, step: str, /) -> bool:
        """Whether it fails as wanted; False too where the budget ended before that was known.

        Args:
            candidate: the smaller plan.
            step: what was made smaller.
        """
        ...


class ListStep(msgspec.Struct, frozen=True):
    """A list in a plan of which parts may go."""

    name: str
    items: Callable[[Scenario], tuple[Any, ...]]
    #: The plan with these items alone.
    keeping: Callable[[Scenario, tuple[Any, ...]], Scenario]


class ValueStep(msgspec.Struct, frozen=True):
    """Something in a plan that may be simpler."""

    name: str
    #: Plans that are simpler in this, the boldest first; comes to an end on its own candidates.
    simpler: Callable[[Scenario], Iterable[Scenario]]


class Search:
    """The smallest plan so far.

    Args:
        start: fails.
        oracle: asked about candidates.
        budget: polled before each question.
    """

    def __init__(self, start: Scenario, oracle: Oracle, budget: Budget) -> None:
        self.best = start
        self._oracle = oracle
        self._budget = budget

    @property
    def is_over(self) -> bool:
        """Whether the budget has ended."""
        return self._budget.exhausted() is not None

    def takes(self, candidate: Scenario, step: str) -> bool:
        """Ask about a candidate; where it still fails, it is the best so far."""
        if self.is_over or not self._oracle.fails(candidate, step):
            return False
        self.best = candidate
        return True

    def list(self, step: ListStep) -> bool:
        """Leave out what can go of a list; whether nothing of it can go alone."""
        start = self.best

        def first_failing(candidates: Sequence[tuple[Any, ...]]) -> int | None:
            for place, items in enumerate(candidates):
                if self.takes(step.keeping(start, items), step.name):
                    return place
                if self.is_over:
                    return None
            return None

        return ddmin(step.items(start), first_failing, self._budget).is_minimal

    def value(self, step: ValueStep) -> None:
        """Make a value as simple as it can be."""
        simplest(self.best, step.simpler, lambda plan: self.takes(plan, step.name), self._budget)


class SearchBudget:
    """So many tries, so many seconds, until somebody wants it to end or it cannot go on.

    Args:
        tries_max: runs of candidates.
        seconds: of wall time; a try that has begun comes to its end.
        clock: seconds, monotonic.
        is_stopped: whether somebody wants it to end.
        called: how tries are called, in the plural.
    """

    def __init__(
        self,
        tries_max: int,
        seconds: float,
        clock: Callable[[], float],
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        called: str = "runs",
    ) -> None:
        self._tries_max, self._seconds, self._called = tries_max, seconds, called
        self._clock, self._is_stopped = clock, is_stopped
        self._began = clock()
        #: Tries so far.
        self.tries = 0
        #: Why it cannot go on.
        self.broken: Exception | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._began

    def exhausted(self) -> str | None:
        """The reason to stop now, or None to go on."""
        if self._is_stopped():
            return INTERRUPTED
        if self.broken is not None:
            return "the harness failed"
        if self.tries >= self._tries_max:
            return f"{self._tries_max:,} {self._called} were made"
        if self.elapsed_s > self._seconds:
            return f"{self._seconds:g} s are over"
        return None
