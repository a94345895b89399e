"""The search for a smaller plan that still fails: its steps, its best, its budget.

Whether a candidate still fails is asked of an oracle, which runs it, exactly or k times of n. A
step only makes candidates: a list offers its parts to delta debugging (``ddmin``: ever finer, until
nothing can be taken away alone), a value its simpler neighbours (``simplest``). No candidate is
asked about twice. Pure; must never rely on the answers being monotonic, and never hand back a plan
of which the oracle was not asked, but for the one that it was given. Sources: issue 19, item 3;
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002,
section 3.3.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from splitbrain.contracts.budget import Budget
from splitbrain.contracts.scenario import Scenario

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")

#: Of some candidates, the position of the first of which it is still true; None: of none, or the
#: budget ended.
FirstFailing = Callable[[Sequence[tuple[_Item, ...]]], int | None]


class Shrunk(msgspec.Struct, Generic[_Item], frozen=True):
    """Rest of a list."""

    items: tuple[_Item, ...]
    #: Candidates that were asked about.
    tries: int
    #: Whether nothing can be taken away alone; False where the budget ended before that was known.
    is_minimal: bool


def ddmin(
    items: Sequence[_Item], first_failing: FirstFailing[_Item], budget: Budget
) -> Shrunk[_Item]:
    """Return a part of the items of which it is still true, 1-minimal if the budget allows.

    Args:
        items: of which it is true; their order is kept.
        first_failing: asked about some candidates at a time, so that they may be tried side by
            side; which of them is taken depends on their order alone.
        budget: polled before each question.
    """
    return _Minimising(tuple(items), first_failing, budget).run()


def simplest(
    value: _Value,
    simpler: Callable[[_Value], Iterable[_Value]],
    fails: Callable[[_Value], bool],
    budget: Budget,
) -> _Value:
    """Return the value after every simplification that keeps it true, until none does.

    ``simpler`` gives candidates, the boldest first, none where nothing is simpler; asked about its
    own candidates again and again it must come to an end. ``budget`` is polled before each
    question.
    """
    while True:
        for candidate in simpler(value):
            if budget.exhausted() is not None:
                return value
            if fails(candidate):
                value = candidate
                break
        else:
            return value


class _Minimising(Generic[_Item]):
    """One use of ``ddmin``; works on positions, since items need not be hashable."""

    def __init__(
        self, items: tuple[_Item, ...], first_failing: FirstFailing[_Item], budget: Budget
    ) -> None:
        self._items = items
        self._first_failing = first_failing
        self._budget = budget
        #: Candidates of which it was not true.
        self._refuted: set[tuple[int, ...]] = set()
        self._tries = 0
        self._is_over = False

    def run(self) -> Shrunk[_Item]:
        """Search until nothing can be taken away alone, or the budget ends."""
        left: tuple[int, ...] = tuple(range(len(self._items)))
        # The paper supposes that it is not true of nothing at all; often it is.
        if left and self._first([()]) is not None:
            left = ()
        parts_count = 2
        while left and not self._is_over:
            parts = split(left, min(parts_count, len(left)))
            without = [
                tuple(fault for fault in left if fault not in part)
                for part in map(frozenset, parts)
            ]
            found = self._first(parts) if len(parts) > 1 else None
            if found is not None:
                left, parts_count = parts[found], 2
                continue
            # Of two parts each is what is left without the other.
            found = self._first(without) if len(parts) != 2 else None
            if found is not None:
                left, parts_count = without[found], max(len(parts) - 1, 2)
            elif len(parts) == len(left):
                break
            else:
                parts_count = 2 * len(parts)
        return Shrunk(
            items=tuple(self._items[position] for position in left),
            tries=self._tries,
            is_minimal=not self._is_over,
        )

    def _first(self, candidates: Sequence[tuple[int, ...]]) -> int | None:
        """Return the first candidate of which it is true, among those not asked about before."""
        asked = [
            place for place, candidate in enumerate(candidates) if candidate not in self._refuted
        ]
        if not asked or self._is_over:
            return None
        if self._budget.exhausted() is not None:
            self._is_over = True
            return None
        found = self._first_failing(
            [tuple(self._items[position] for position in candidates[place]) for place in asked]
        )
        if found is None and self._budget.exhausted() is not None:
            # Nobody knows how many of them were tried.
            self._is_over = True
            return None
        refuted = asked if found is None else asked[:found]
        self._refuted.update(candidates[place] for place in refuted)
        self._tries += len(refuted) + (found is not None)
        return None if found is None else asked[found]


def split(items: tuple[_Item, ...], parts_count: int) -> list[tuple[_Item, ...]]:
    """Return the items as so many parts, in order, their lengths at most one apart; none is empty.

    Args:
        items: at least ``parts_count`` of them.
        parts_count: at least 1.
    """
    bounds = [len(items) * place // parts_count for place in range(parts_count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(bounds)]


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


class Repetition(msgspec.Struct, frozen=True):
    """Number of tries of one plan, and of the failures with the wanted verdict that it needs."""

    tries: int
    at_least: int

    def settled(self, failed: int, tried: int) -> bool | None:
        """Return True when enough of those tried failed, False when enough no longer can.

        None: go on.
        """
        if failed >= self.at_least:
            return True
        if failed + self.tries - tried < self.at_least:
            return False
        return None


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

    @property
    def words(self) -> str:
        """Return how much of it is used: ``12 of at most 60 runs, 3,480 s left at most``."""
        left_s = max(0.0, self._seconds - self.elapsed_s)
        tries = f"{self.tries:,} of at most {self._tries_max:,} {self._called}"
        return f"{tries}, {left_s:,.0f} s left at most"

    def exhausted(self) -> str | None:
        """Return the reason to stop now, or None to go on."""
        if self._is_stopped():
            return INTERRUPTED
        if self.broken is not None:
            return "the harness failed"
        if self.tries >= self._tries_max:
            if self._tries_max == 1:
                return f"1 {self._called.removesuffix('s')} was made"
            return f"{self._tries_max:,} {self._called} were made"
        if self.elapsed_s > self._seconds:
            return f"{self._seconds:g} s are over"
        return None
