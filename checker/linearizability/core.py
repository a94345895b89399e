"""Finds a small set of operations that cannot be ordered even if all others are relaxed.

To *relax* an operation is to forget its answer and to let it take effect any number of times, or
never, while it was open; ``checker.linearizability.relaxed`` says it exactly. That keeps every
valid history valid, so operations that stay contradictory with everything else relaxed are a
reason for the verdict by themselves: what the others answered, in which order they came and
whether they came at all does not matter, only when they were open. The core is *minimal* when
relaxing any one of its members as well was seen to make the rest orderable.

Intervals stay because values repeat: were a relaxed write possible at any time, it could stand
before any read of its value, and the core would have to hold all writes of that value.

Looks near the operation that found no place first. Must never call a set contradictory on the
strength of a walk that gave up, nor minimal where a question stayed open.

Sources: issue 7, item 6; Zeller's delta debugging (chunks, then single members); Junker 2004,
"QuickXplain" (what is preferred decides which minimal set is found).
"""

from collections.abc import Sequence

import msgspec

from checker.linearizability.relaxed import RelaxedHistory
from checker.models.model import Model
from contracts.budget import Budget
from history.records import PairedOperation

#: Configurations for one question, and for all of them together.
TRY_CONFIGURATIONS_MAX = 10_000
ALL_CONFIGURATIONS_MAX = 200_000


class Core(msgspec.Struct, frozen=True):
    """Operations that contradict each other by themselves."""

    operations: tuple[PairedOperation, ...]
    #: Whether relaxing any one member was seen to make the rest orderable.
    minimal: bool


class Minimizer:
    """Shrinks one contradictory set of operations.

    Args:
        operations: operations of one part, by start, that have no order.
        last: the operation that could not be placed; it stays in the core.
        model: what they are judged by.
        budget: no further question is asked once it is exhausted.
    """

    def __init__(
        self,
        operations: Sequence[PairedOperation],
        last: PairedOperation,
        model: Model,
        budget: Budget,
    ) -> None:
        self._operations = operations
        self._history = RelaxedHistory(operations, last, model, budget)
        self._last = next(
            place for place, operation in enumerate(operations) if operation.index == last.index
        )

    def run(self) -> Core:
        """The core; all operations where every walk gave up."""
        kept, minimal = self._shrink(self._window())
        if minimal:
            # The last one is kept whatever comes, so that it is needed has to be asked.
            minimal = self._contradict(kept[1:]) is False
        members = [self._operations[place] for place in sorted(kept)]
        return Core(tuple(members), minimal)

    def _window(self) -> list[int]:
        """The places nearest to the last one, as few of them as still contradict, nearest first."""
        others = sorted(
            (place for place in range(len(self._operations)) if place != self._last),
            key=self._nearness,
            reverse=True,
        )
        size = 0
        while size < len(others):
            if self._contradict([self._last, *others[:size]]):
                return [self._last, *others[:size]]
            size = max(1, 2 * size)
        return [self._last, *others]

    def _nearness(self, place: int) -> tuple[int, int]:
        operation = self._operations[place]
        return operation.start if operation.end is None else operation.end, operation.index

    def _shrink(self, kept: list[int]) -> tuple[list[int], bool]:
        """Relax what can be, in ever smaller chunks; whether the result is minimal."""
        size = len(kept) // 2
        while size > 1:
            kept, _ = self._pass(kept, size)
            size = min(size // 2, len(kept) // 2)
        # Who is needed among many is needed among fewer: one pass asks enough.
        return self._pass(kept, 1)

    def _pass(self, kept: list[int], size: int) -> tuple[list[int], bool]:
        """Try to relax each chunk, the ones furthest away first; whether every try was decided."""
        decided = True
        position = len(kept)
        while position > 1:
            start = max(1, position - size)
            fewer = kept[:start] + kept[position:]
            contradict = self._contradict(fewer)
            if contradict:
                kept = fewer
            elif contradict is None:
                decided = False
            position = start
        return kept, decided

    def _contradict(self, members: Sequence[int]) -> bool | None:
        """Whether these contradict each other; None if that was not decided."""
        left = ALL_CONFIGURATIONS_MAX - self._history.configurations
        if left <= 0:
            return None
        return self._history.contradict(members, min(TRY_CONFIGURATIONS_MAX, left))
