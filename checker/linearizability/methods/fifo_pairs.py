"""Search for an order of any FIFO queue: of pairs of an enqueue and the dequeue of its element.

The n-th element put in is the n-th taken out. So an order is a sequence of pairs in which the
enqueues are true to time, the dequeues too, and the n-th enqueue is before the n-th dequeue. The
elements between an enqueue and its dequeue need not be known, so a configuration is told by the
operations used, and those differ only in the ones open at one moment. A search of states would keep
every order of all that is in the queue.

- An operation is next only if none that is left returned before its invocation.
- The n-th dequeue stands after the invocation of each of the first n enqueues and dequeues; that
  moment must not be later than the return of any dequeue that is left.
- A dequeue that found nothing stands between two pairs, after the dequeues before it and ahead of
  the enqueues behind it; as soon as all that is left returns later, it has its place.
- Of two that may be next and are alike, the one that returns first is taken, unless it was invoked
  later and that matters: they can swap places.
- An enqueue without answer is used or not. So is a dequeue without answer, with any element of
  which enough are left; the one that was invoked first is used first, since they never return.

Elements that are never taken out stand behind all pairs. Where a process invoked at the very moment
of its last return, that order is not one of time; such histories are left to the search of states.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import (
    BEFORE_ALL,
    FINDS_NOTHING,
    NEVER,
    PUTS,
    TAKES,
    TELLS_NOTHING,
    ElementColumns,
    goes_on_at_once,
)
from splitbrain.checker.linearizability.part.outcome import Outcome
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget

#: Configurations between two polls of the budget.
POLL_INTERVAL = 256
#: Configurations of the first turn, and how many times fewer each two elements get of a turn.
FIRST_TURN: Final = 4_000
TURNS_OF_TWO: Final = 8
#: Elements up to which all pairs of them are looked at.
ELEMENTS_MAX: Final = 64


class _GaveUp(Exception):
    """End of the budget."""


class _Operation(NamedTuple):
    start: int
    end: int
    #: Number of the element; 0 for a dequeue that found nothing.
    element: int
    place: int


class _Queue(NamedTuple):
    """Operations by kind and invocation."""

    puts: list[_Operation]
    takes: list[_Operation]
    #: Dequeues that found nothing.
    nothing: list[_Operation]
    #: Dequeues without answer; whatever they took.
    opened: list[_Operation]

    def cut(self, until: int) -> "_Queue":
        """Return what was known at a moment."""
        begun = _Queue(*([o for o in kind if o.start <= until] for kind in self))
        waiting = [o for o in (*begun.takes, *begun.nothing) if o.end > until]
        return _Queue(
            [o._replace(end=o.end if o.end <= until else NEVER) for o in begun.puts],
            [o for o in begun.takes if o.end <= until],
            [o for o in begun.nothing if o.end <= until],
            sorted([*begun.opened, *waiting]),
        )

    def of(self, elements: Collection[int]) -> "_Queue":
        """Return the operations on some elements, and all that name none."""
        puts = [o for o in self.puts if o.element in elements]
        return self._replace(puts=puts, takes=[o for o in self.takes if o.element in elements])

    def places(self) -> tuple[int, ...]:
        """Return the places of all operations."""
        return tuple(sorted(o.place for kind in self for o in kind))


class _Used(NamedTuple):
    """Set of numbers of operations by invocation; it stays small, however many there are."""

    #: All before this one are in it, and this one is not.
    first: int = 0
    #: A bit for each from ``first`` on.
    later: int = 0

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return number < self.first or bool(self.later >> (number - self.first) & 1)

    def plus(self, number: int) -> "_Used":
        """Return the set with one more."""
        later = self.later | 1 << (number - self.first)
        # The lowest bit that is not set.
        whole = (~later & (later + 1)).bit_length() - 1
        return _Used(self.first + whole, later >> whole)


#: Used enqueues, used dequeues, placed answers of nothing, and the number of used dequeues without
#: answer.
_Configuration = tuple[_Used, _Used, _Used, int]


class _Window(NamedTuple):
    """Operations that may be next, and the earliest return of those left."""

    numbers: tuple[int, ...]
    limit: int


class _Search:
    """Search of one part, in turns. It polls the budget every ``POLL_INTERVAL`` configurations."""

    def __init__(self, queue: _Queue, budget: Budget) -> None:
        self._puts, self._takes, self._nothing, self._opened = queue
        self._budget = budget
        self._windows: tuple[dict[_Used, _Window], ...] = ({}, {}, {})
        #: By element: numbers of its puts by invocation, and of its takes by return.
        self._of_element: dict[int, tuple[list[int], list[int]]] = {}
        for kind, operations in enumerate((self._puts, self._takes)):
            for number, operation in enumerate(operations):
                self._of_element.setdefault(operation.element, ([], []))[kind].append(number)
        for _, takes in self._of_element.values():
            takes.sort(key=lambda number: self._takes[number].end)
        begin: _Configuration = (_Used(), _Used(), _Used(), 0)
        self._met: set[_Configuration] = {begin}
        #: Each with the latest invocation of the operations used; the next one is last.
        self._stack: list[tuple[_Configuration, int]] = [(begin, BEFORE_ALL)]
        self.configurations = 0

    def run(self, more: int | None = None) -> Verdict:
        """Go on until an order is found, none is left, or so many more configurations were met.

        Raises:
            _GaveUp: the budget ended.
        """
        takes, nothing = len(self._takes), len(self._nothing)
        last = None if more is None else self.configurations + more
        while self._stack:
            if self.configurations == last:
                return Verdict.UNKNOWN
            self.configurations += 1
            if self.configurations % POLL_INTERVAL == 0 and (reason := self._budget.exhausted()):
                raise _GaveUp(reason)
            here, now = self._stack.pop()
            if here[1].first == takes and here[2].first == nothing:
                return Verdict.VALID
            ways = [way for way in self._ways(here, now) if way[0] not in self._met]
            self._met.update(way[0] for way in ways)
            self._stack.extend(reversed(ways))
        return Verdict.INVALID

    def lacking(self) -> list[int]:
        """Return the elements that came out more often than they were put in."""
        return [
            element
            for element in self._of_element
            if not self._are_enough(element, _Used(), _Used())
        ]

    def _are_enough(self, element: int, used_puts: _Used, used_takes: _Used) -> bool:
        """Return whether each take of an element that is left has a put that may be before it."""
        puts, takes = self._of_element[element]
        left = (self._puts[number].start for number in puts if number not in used_puts)
        return all(
            next(left, NEVER) <= self._takes[number].end
            for number in takes
            if number not in used_takes
        )

    def _ways(self, here: _Configuration, now: int) -> Iterator[tuple[_Configuration, int]]:
        used_puts, used_takes, placed, opened = here
        puts = self._window(0, self._puts, used_puts)
        takes = self._window(1, self._takes, used_takes)
        nothing = self._window(2, self._nothing, placed)
        limit = min(takes.limit, nothing.limit)
        for number in nothing.numbers:
            moment = max(now, self._nothing[number].start)
            if moment <= min(limit, puts.limit):
                # Whatever is left returns later, so no other way is better.
                yield (used_puts, used_takes, placed.plus(number), opened), moment
                return
        first = [(n, self._puts[n]) for n in _different(self._puts, puts.numbers, now)]
        for number in _different(self._takes, takes.numbers, now):
            take = self._takes[number]
            for put_number, put in first:
                moment = max(now, put.start, take.start)
                if put.element == take.element and moment <= limit:
                    both = used_puts.plus(put_number), used_takes.plus(number)
                    yield (*both, placed, opened), moment
        if opened < len(self._opened):
            for put_number, put in first:
                moment = max(now, put.start, self._opened[opened].start)
                used = used_puts.plus(put_number)
                if moment <= limit and self._are_enough(put.element, used, used_takes):
                    yield (used, used_takes, placed, opened + 1), moment

    def _window(self, kind: int, operations: list[_Operation], used: _Used) -> _Window:
        known = self._windows[kind].get(used)
        if known is None:
            numbers: list[int] = []
            limit = NEVER
            number = used.first
            while number < len(operations) and operations[number].start <= limit:
                if number not in used:
                    numbers.append(number)
                    limit = min(limit, operations[number].end)
                number += 1
            numbers.sort(key=lambda number: operations[number].end)
            known = self._windows[kind][used] = _Window(tuple(numbers), limit)
        return known


def _different(operations: list[_Operation], numbers: tuple[int, ...], now: int) -> list[int]:
    """Return those of which none that is alike returns earlier and was invoked in time."""
    earliest: dict[int, int] = {}
    different: list[int] = []
    for number in numbers:
        operation = operations[number]
        start = max(now, operation.start)
        before = earliest.get(operation.element)
        if before is None or start < before:
            earliest[operation.element] = start
            different.append(number)
    return different


class PairVerdict(NamedTuple):
    """Outcome of a search; where there is no order also an explanation, if there was time."""

    outcome: Outcome
    #: Place of the operation with whose return the queue has no order any more.
    culprit: int | None = None
    #: Places of operations that have no order by themselves; the culprit is the last to return.
    places: tuple[int, ...] = ()


def search_pairs(
    columns: ElementColumns, budget: Budget, *, explained: bool = True
) -> PairVerdict | None:
    """Search for an order of a FIFO queue; None where its processes go on at once.

    Args:
        columns: operations of one part.
        budget: polled all the time.
        explained: whether to find out where an order ends.
    """
    if goes_on_at_once(columns):
        return None
    queue = _queue(columns)
    found = _Found(budget)
    try:
        narrow = found.without_order(queue)
    except _GaveUp as end:
        return PairVerdict(Outcome(Verdict.UNKNOWN, str(end), found.configurations))
    verdict = Verdict.VALID if narrow is None else Verdict.INVALID
    outcome = Outcome(verdict, configurations=found.configurations)
    if narrow is not None and explained:
        with suppress(_GaveUp):
            return PairVerdict(outcome, *_narrowed(narrow, budget))
    return PairVerdict(outcome)


def _queue(columns: ElementColumns) -> _Queue:
    queue = _Queue([], [], [], [])
    by_kind = {
        PUTS: queue.puts,
        TAKES: queue.takes,
        FINDS_NOTHING: queue.nothing,
        TELLS_NOTHING: queue.opened,
    }
    fields = columns.starts, columns.ends, columns.numbers, columns.kinds
    rows: list[list[int]] = np.stack(fields, axis=1).tolist()
    for place, (start, end, number, kind) in enumerate(rows):
        element = number + 1 if kind in (PUTS, TAKES) else 0
        by_kind[kind].append(_Operation(start, end, element, place))
    return _Queue(*map(sorted, queue))


class _Found:
    """Judge of queues, and the number of configurations that it met of the first one."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.configurations = 0

    def without_order(self, queue: _Queue) -> _Queue | None:
        """Return the queue if it has no order, or the part of it that shows that; else None.

        Leaving out all operations on an element keeps an order of the others. Where two elements
        alone have none, far fewer configurations show it, so both are tried in turns.

        Raises:
            _GaveUp: the budget ended.
        """
        search = _Search(queue, self._budget)
        lacking = search.lacking()
        if lacking:
            return queue.of(lacking[:1])
        turn = FIRST_TURN
        of_two: dict[tuple[int, int], _Search] | None = None
        while True:
            try:
                verdict = search.run(None if of_two == {} else turn)
            finally:
                self.configurations = search.configurations
            if verdict is not Verdict.UNKNOWN:
                return queue if verdict is Verdict.INVALID else None
            if of_two is None:
                of_two = self._of_two(queue)
            for two, among_two in list(of_two.items()):
                verdict = among_two.run(turn // TURNS_OF_TWO)
                if verdict is Verdict.INVALID:
                    return queue.of(two)
                if verdict is Verdict.VALID:
                    del of_two[two]
            turn *= 2

    def _of_two(self, queue: _Queue) -> dict[tuple[int, int], _Search]:
        elements = sorted({o.element for o in queue.puts} & {o.element for o in queue.takes})
        if not 2 < len(elements) <= ELEMENTS_MAX:
            return {}
        return {two: _Search(queue.of(two), self._budget) for two in combinations(elements, 2)}


def _narrowed(queue: _Queue, budget: Budget) -> tuple[int, tuple[int, ...]]:
    """Narrow a queue without order to what returned by the first moment that excludes one.

    Then leave out elements as long as there is none.

    Raises:
        _GaveUp: the budget ended.
    """

    def has_none(queue: _Queue) -> bool:
        return _Found(budget).without_order(queue) is not None

    returns = sorted({o.end for o in (*queue.takes, *queue.nothing)})
    moment = returns[bisect_left(returns, True, key=lambda end: has_none(queue.cut(end)))]
    queue = queue.cut(moment)
    culprit = next(o for o in (*queue.takes, *queue.nothing) if o.end == moment)
    others = sorted({o.element for o in (*queue.puts, *queue.takes)} - {culprit.element})
    size = 2 * len(others)
    while size := size // 2:
        for begin in range(0, len(others), size):
            fewer = others[:begin] + others[begin + size :]
            if len(fewer) < len(others) and has_none(queue.of([culprit.element, *fewer])):
                queue, others = queue.of([culprit.element, *fewer]), fewer
    return culprit.place, queue.places()
