"""Takes things away as long as something stays true of what is left: delta debugging.

``ddmin`` tries parts and what is left without them, ever finer, and ends where nothing can be taken
away alone (1-minimal); ``simplest`` does the same for one value with ever simpler candidates. Pure:
whether it is still true of a candidate, and when to give up, is asked of the caller, and no
candidate is asked about twice. Must never rely on the answers being monotonic, and must never hand
back something of which they were not asked, but for what it was given.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2),
2002, section 3.3.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from splitbrain.contracts.budget import Budget

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")

#: Of some candidates, the position of the first of which it is still true; None: of none, or the
#: budget ended.
FirstFailing = Callable[[Sequence[tuple[_Item, ...]]], int | None]


class Shrunk(msgspec.Struct, Generic[_Item], frozen=True):
    """What is left of a list."""

    items: tuple[_Item, ...]
    #: Candidates that were asked about.
    tries: int
    #: Whether nothing can be taken away alone; False where the budget ended before that was known.
    is_minimal: bool


def ddmin(
    items: Sequence[_Item], first_failing: FirstFailing[_Item], budget: Budget
) -> Shrunk[_Item]:
    """A part of the items of which it is still true, 1-minimal if the budget allows.

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
    """The value after every simplification that keeps it true, until none does.

    Args:
        value: of which it is true.
        simpler: candidates, the boldest first; none where nothing is simpler. Must come to an end
            when it is asked about its own candidates again and again.
        fails: whether it is still true of one.
        budget: polled before each question.
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
                tuple(one for one in left if one not in part) for part in map(frozenset, parts)
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
        """The first candidate of which it is true, among those not asked about before."""
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
    """The items as so many parts, in order, their lengths at most one apart; none is empty.

    Args:
        items: at least ``parts_count`` of them.
        parts_count: at least 1.
    """
    bounds = [len(items) * place // parts_count for place in range(parts_count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(bounds)]
