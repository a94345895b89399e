"""The search for a smaller record of which something stays true: its steps, its best, its budget.

One search for both shrinkers, over plans and over simulated worlds; whether it is still true of a
candidate is asked of an oracle, which runs it, exactly or k times of n. A step only makes
candidates: a list offers its parts to delta debugging, a value its simpler neighbours. Pure; must
never hand back a record of which the oracle was not asked, but for the one that it was given.
Source: issue 19, item 3.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from contracts.budget import Budget
from nemesis.shrink import ddmin, simplest

_Record = TypeVar("_Record")

#: Why a search ended that somebody wanted to end.
INTERRUPTED: Final = "interrupted"


class ListStep(msgspec.Struct, Generic[_Record], frozen=True):
    """A list in a record of which parts may go."""

    name: str
    items: Callable[[_Record], tuple[Any, ...]]
    #: The record with these items alone.
    keeping: Callable[[_Record, tuple[Any, ...]], _Record]


class ValueStep(msgspec.Struct, Generic[_Record], frozen=True):
    """Something in a record that may be simpler."""

    name: str
    #: Records that are simpler in this, the boldest first; comes to an end on its own candidates.
    simpler: Callable[[_Record], Iterable[_Record]]


class Search(Generic[_Record]):
    """The smallest record so far.

    Args:
        start: of which it is true.
        oracle: whether it is still true of a candidate of the step with this name; False too where
            nobody knows because the budget ended.
        budget: polled before each question.
    """

    def __init__(
        self, start: _Record, oracle: Callable[[_Record, str], bool], budget: Budget
    ) -> None:
        self.best = start
        self._oracle = oracle
        self._budget = budget

    @property
    def is_over(self) -> bool:
        """Whether the budget has ended."""
        return self._budget.exhausted() is not None

    def takes(self, candidate: _Record, step: str) -> bool:
        """Ask about a candidate; where it is still true of it, it is the best so far."""
        if self.is_over or not self._oracle(candidate, step):
            return False
        self.best = candidate
        return True

    def list(self, step: ListStep[_Record]) -> bool:
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

    def value(self, step: ValueStep[_Record]) -> None:
        """Make a value as simple as it can be."""
        simplest(
            self.best, step.simpler, lambda record: self.takes(record, step.name), self._budget
        )


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
