"""Search for a small set of operations that cannot be ordered even if all others are relaxed.

To *relax* an operation is to forget its answer and more, in one of two ways. Both keep every valid
history valid, so operations that stay contradictory with everything else relaxed are a reason for
the verdict by themselves.

- *At any time*: its interval goes as well; it takes effect at any time, once or never
  (``at_any_time``). The stronger claim: nothing of the others matters.
- *While it was open*: its interval stays; it takes effect any number of times, or never
  (``relaxed``).

The first is preferred. But where values repeat, a relaxed write possible at any time could stand
before any read of its value, and the core would have to hold nearly all writes of it: where no core
of ``AT_ANY_TIME_MAX`` operations is found in that way, it is sought in the second.

The core is *minimal* when relaxing any one of its members as well was seen to make the rest
orderable. Looks near the operation that found no place first. Must never call a set contradictory
on the strength of a search that gave up, nor minimal where a question stayed open.

Sources: issue 7, item 6; decision 0005; Zeller's delta debugging (chunks, then single members);
Junker 2004, "QuickXplain" (preferences decide which minimal set is found).
"""

from collections.abc import Sequence
from itertools import chain

import msgspec

from splitbrain.checker.explanation import precedes
from splitbrain.checker.linearizability.contradictions.at_any_time import AnyTimeHistory
from splitbrain.checker.linearizability.contradictions.relaxed import RelaxedHistory
from splitbrain.checker.models.model import Model
from splitbrain.contracts.budget import Budget
from splitbrain.history.records import PairedOperation

#: Configurations for one question, and for all of them together, while the others were open.
TRY_CONFIGURATIONS_MAX = 10_000
ALL_CONFIGURATIONS_MAX = 200_000
#: The same where the others are possible at any time: each costs more.
TRY_AT_ANY_TIME_MAX = 2_000
ALL_AT_ANY_TIME_MAX = 20_000
#: Operations among which such a core is sought, and its greatest size: more than a picture can show
#: tell a reader nothing.
WINDOW_AT_ANY_TIME_MAX = 48
AT_ANY_TIME_MAX = 12


class Core(msgspec.Struct, frozen=True):
    """Operations that contradict each other by themselves."""

    operations: tuple[PairedOperation, ...]
    #: Whether relaxing any one member was seen to make the rest orderable.
    minimal: bool
    #: Whether the others may happen at any time; False: only while they were open.
    at_any_time: bool = False
    #: Fewer that contradict each other while the others keep their intervals, if any.
    fewer_while_open: tuple[PairedOperation, ...] = ()


#: Questions whether members contradict each other while others are relaxed.
Questions = AnyTimeHistory | RelaxedHistory


def find_core(
    operations: Sequence[PairedOperation],
    last: PairedOperation,
    model: Model,
    budget: Budget,
    sources: Sequence[PairedOperation] = (),
) -> Core:
    """Return the core to show, which contains the last operation: it could not be placed.

    ``sources`` could have led to its answer. The operations of the part, by start, have no order.
    """
    while_open = core_while_open(operations, last, model, budget)
    preferred = [*(while_open.operations if while_open.minimal else ()), *sources]
    at_any_time = core_at_any_time(operations, last, model, budget, preferred)
    if at_any_time is None:
        return while_open
    if not while_open.minimal or len(while_open.operations) >= len(at_any_time.operations):
        return at_any_time
    return msgspec.structs.replace(at_any_time, fewer_while_open=while_open.operations)


def core_while_open(
    operations: Sequence[PairedOperation], last: PairedOperation, model: Model, budget: Budget
) -> Core:
    """Return the core for others that may happen only while open; see ``find_core``."""
    questions = RelaxedHistory(operations, last, model, budget)
    place = _place(operations, last)
    others = by_nearness(operations, place)
    found = Minimizer(
        place, others, questions, TRY_CONFIGURATIONS_MAX, ALL_CONFIGURATIONS_MAX, all_do=True
    ).run()
    assert found is not None, "all of them contradict each other"
    kept, minimal = found
    return Core(tuple(operations[place] for place in sorted(kept)), minimal)


def core_at_any_time(
    operations: Sequence[PairedOperation],
    last: PairedOperation,
    model: Model,
    budget: Budget,
    preferred: Sequence[PairedOperation],
) -> Core | None:
    """Return a minimal core for others that may happen at any time; None if none is small enough.

    The preferred operations are looked at first, then the nearest. See ``find_core``.
    """
    place = _place(operations, last)
    first = {member.index for member in preferred}
    nearest = by_nearness(operations, place)
    # The sort is stable: each of the two stays in the order of nearness.
    others = sorted(nearest, key=lambda place: operations[place].index not in first)
    # An operation that returned later may owe its answer to one invoked later still.
    others = [place for place in others if _returned_by(operations[place], last)]
    others = others[:WINDOW_AT_ANY_TIME_MAX]
    questions = AnyTimeHistory(operations, [place, *others], model, budget)
    found = Minimizer(
        place,
        others,
        questions,
        TRY_AT_ANY_TIME_MAX,
        ALL_AT_ANY_TIME_MAX,
        all_do=False,
    ).run()
    if found is None:
        return None
    kept, minimal = found
    if len(kept) > AT_ANY_TIME_MAX or not minimal:
        return None
    return Core(tuple(operations[place] for place in sorted(kept)), minimal, at_any_time=True)


def by_nearness(operations: Sequence[PairedOperation], last: int) -> list[int]:
    """Return the places of all but the last one, those that returned latest first.

    Every second one is the nearest left of those that certainly came before the last: if it was
    open for long, what contradicts it may lie behind all that came and went meanwhile.
    """

    def nearness(place: int) -> tuple[int, int]:
        operation = operations[place]
        return operation.start if operation.end is None else operation.end, operation.index

    nearest = sorted((p for p in range(len(operations)) if p != last), key=nearness, reverse=True)
    before = [place for place in nearest if precedes(operations[place], operations[last])]
    # Each place once, at its first position.
    return list(dict.fromkeys([*chain.from_iterable(zip(nearest, before, strict=False)), *nearest]))


def _returned_by(operation: PairedOperation, last: PairedOperation) -> bool:
    if operation.end is None or last.end is None:
        return True
    return (operation.end, operation.index) < (last.end, last.index)


def _place(operations: Sequence[PairedOperation], wanted: PairedOperation) -> int:
    return next(
        place for place, operation in enumerate(operations) if operation.index == wanted.index
    )


class Minimizer(msgspec.Struct, frozen=True):
    """Shrinking of one contradictory set of operations."""

    #: Place of the operation that could not be placed; it stays in the core.
    last: int
    #: Places of the others that may be members, preferred ones first.
    others: Sequence[int]
    questions: Questions
    #: Configurations for one question, and for all of them together.
    try_max: int
    all_max: int
    #: Whether all of these places are known to contradict each other.
    all_do: bool

    def run(self) -> tuple[list[int], bool] | None:
        """Return a core and whether it is minimal; None if no set was seen to contradict."""
        window = self._window()
        if window is None:
            return None
        kept, minimal = self._shrink(window)
        if minimal:
            # The last one was never relaxed, so whether it is needed has to be asked.
            minimal = self._contradict(kept[1:]) is False
        return kept, minimal

    def _window(self) -> list[int] | None:
        """Return as few of the preferred places as still contradict, the last one first."""
        size = 0
        while size < len(self.others):
            window = [self.last, *self.others[:size]]
            if self._contradict(window):
                return window
            size = max(1, 2 * size)
        everything = [self.last, *self.others]
        return everything if self.all_do or self._contradict(everything) else None

    def _shrink(self, kept: list[int]) -> tuple[list[int], bool]:
        """Relax in ever smaller chunks; return the rest and whether it is minimal."""
        size = len(kept) // 2
        while size > 1:
            kept, _ = self._pass(kept, size)
            size = min(size // 2, len(kept) // 2)
        # A member needed among many is needed among fewer: one pass is enough.
        return self._pass(kept, 1)

    def _pass(self, kept: list[int], size: int) -> tuple[list[int], bool]:
        """Try to relax each chunk, furthest first; return whether every try was decided."""
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
        left = self.all_max - self.questions.configurations
        if left <= 0:
            return None
        return self.questions.contradict(members, min(self.try_max, left))
