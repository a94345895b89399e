"""Queues and stacks of distinct elements judged without a search, in n log n.

Where every element is put in once, a history has an order exactly if none of these is in it:

- An element comes out twice, or came out before it was put in, or was never put in.
- A take found nothing while some element was there for sure at each moment between its invocation
  and its return. An element is there for sure from the return of its put to the invocation of its
  take; where two such times overlap, there is never a moment without any in between.
- *First in, first out*: of two elements the one that was put in first for sure came out last for
  sure, or never.
- *Least first*: an element came out while lesser ones were there for sure at each moment at which
  it can have come out.
- *Last in, first out*: of elements whose sure times overlap to one stretch none can have been below
  all others. The one below them was put in before any of them was there for sure, and taken out
  after all had to be there; it may be left out then, for wherever the others were, it was below
  them. So may be an element in whose sure time no other one's begins or ends. The rest of the
  stretch is judged the same way: a pass for each depth at which sure times cross.

A put without answer counts if its element came out (it returns never), else it is taken to never
have happened. A take without answer can only have taken an element that nobody saw again: where
there is an order without all of those, there is one; what needs an element that never came out is
left to the search where there are such takes. Where a process invoked at the very moment of its
last return, that order is not one of time: such histories are left to it, too.

Sources: Bouajjani, Emmi, Enea and Hamza 2015, "On reducing linearizability to state reachability",
for the queue; Lee and Mathur 2024, "Efficient decrease-and-conquer linearizability monitoring", for
leaving out one element after the other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.models.model import Order

_NONE: Final = -1


class ElementVerdict(NamedTuple):
    """Verdict on a queue or a stack."""

    valid: bool
    #: Places of operations that contradict each other, whatever the others do.
    places: tuple[int, ...] = ()


class _Elements(NamedTuple):
    """Elements of a queue or a stack: places and times of what put each in and took it out."""

    put: Integers
    #: ``_NONE`` where nobody is known to have taken it; then its times are ``NEVER``.
    taken: Integers
    put_start: Integers
    put_end: Integers
    take_start: Integers
    take_end: Integers
    #: Rank by value; 0 where it does not matter.
    rank: Integers

    def among(self, chosen: NDArray[np.bool_] | Integers) -> "_Elements":
        """Return some of the elements."""
        return _Elements(*(column[chosen] for column in self))

    def places(self, number: int) -> list[int]:
        """Return the places of an element's operations."""
        return [place for place in (int(self.put[number]), int(self.taken[number])) if place >= 0]


def judge_elements(columns: ElementColumns, order: Order) -> ElementVerdict | None:
    """Return whether the operations have an order; None where the method does not tell.

    Args:
        columns: operations of one part.
        order: in which elements are given out.
    """
    if goes_on_at_once(columns):
        return None
    kinds, numbers, names = columns.kinds, columns.numbers, columns.names
    count = len(names)
    puts, takes = np.flatnonzero(kinds == PUTS), np.flatnonzero(kinds == TAKES)
    if (np.bincount(numbers[puts], minlength=count) > 1).any():
        return None
    put = np.full(count, _NONE, dtype=np.int64)
    put[numbers[puts]] = puts
    taken = np.full(count, _NONE, dtype=np.int64)
    # The first of several.
    taken[numbers[takes[::-1]]] = takes[::-1]
    twice = takes[taken[numbers[takes]] != takes]
    if len(twice):
        number = numbers[twice[0]]
        found = (int(put[number]), int(taken[number]), int(twice[0]))
        return ElementVerdict(False, tuple(place for place in found if place >= 0))
    rank = np.zeros(count, dtype=np.int64)
    if order == "least":
        rank[sorted(range(count), key=names.__getitem__)] = np.arange(count)
    elements = _Elements(
        put,
        taken,
        *(_at(columns.starts, put), _at(columns.ends, put)),
        *(_at(columns.starts, taken), _at(columns.ends, taken)),
        rank,
    )
    # Before they were put in, or without that.
    early = np.flatnonzero(elements.take_end < elements.put_start)
    if len(early):
        return ElementVerdict(False, tuple(elements.places(int(early[0]))))
    nothing = np.flatnonzero(kinds == FINDS_NOTHING)
    if not (kinds == TELLS_NOTHING).any():
        places = _contradiction(columns, elements, nothing, order)
        return ElementVerdict(not places, places)
    seen = elements.among(elements.taken != _NONE)
    certain = _contradiction(columns, seen, nothing, order)
    if certain:
        return ElementVerdict(False, certain)
    if _contradiction(columns, elements, nothing, order):
        return None
    return ElementVerdict(True)


def _at(times: Integers, places: Integers) -> Integers:
    found = np.full(len(places), NEVER, dtype=np.int64)
    found[places != _NONE] = times[places[places != _NONE]]
    return found


def _contradiction(
    columns: ElementColumns, elements: _Elements, nothing: Integers, order: Order
) -> tuple[int, ...]:
    """Return the places of the first contradiction between elements; none where there is none."""
    there = elements.among(np.argsort(elements.put_end, kind="stable"))
    return _ORDERS[order](there) or _nothing_found(columns, there, nothing)


def _overtaking(elements: _Elements) -> tuple[int, ...]:
    """Find two elements, by return of their puts, of which the second came out first."""
    latest = np.maximum.accumulate(elements.take_start)
    # Elements that were put in before, for sure.
    before = np.searchsorted(elements.put_end, elements.put_start, side="left")
    came_out = (elements.taken != _NONE) & (before > 0)
    limits = np.where(came_out, latest[before - 1] if len(latest) else BEFORE_ALL, BEFORE_ALL)
    late = np.flatnonzero(came_out & (limits > elements.take_end))
    if not len(late):
        return ()
    second = int(late[elements.take_end[late].argmin()])
    first = int(elements.take_start[: before[second]].argmax())
    return (*elements.places(first), *elements.places(second))


def _lesser_there(elements: _Elements) -> tuple[int, ...]:
    """Find an element that came out while lesser ones were there all the time."""
    # Stretches in which some lesser element is there for sure, without their ends; none overlap.
    begins: list[int] = []
    ends: list[int] = []
    by_rank: list[int] = np.argsort(elements.rank).tolist()
    for number in by_rank:
        begin, end = int(elements.put_end[number]), int(elements.take_start[number])
        if elements.taken[number] != _NONE:
            earliest = max(int(elements.put_start[number]), end)
            last = bisect_left(begins, earliest) - 1
            until = int(elements.take_end[number])
            if last >= 0 and ends[last] > until:
                lesser = elements.rank < elements.rank[number]
                chain = _chain(elements, np.flatnonzero(lesser), earliest, until)
                return (*elements.places(number), *chain)
        if begin < end:
            # All that it overlaps become one with it.
            low, high = bisect_right(ends, begin), bisect_left(begins, end)
            if low < high:
                begin, end = min(begin, begins[low]), max(end, ends[high - 1])
            begins[low:high], ends[low:high] = [begin], [end]
    return ()


def _none_below(elements: _Elements) -> tuple[int, ...]:
    """Find elements of a stack of which none can have been below the others."""
    begins: list[int] = elements.put_end.tolist()
    ends: list[int] = elements.take_start.tolist()
    pushed: list[int] = elements.put_start.tolist()
    popped: list[int] = elements.take_end.tolist()
    sure = np.flatnonzero(elements.put_end < elements.take_start).tolist()
    # At one moment ends come before begins: those do not overlap.
    bounds = [(begins[n], 1, n) for n in sure] + [(ends[n], 0, ~n) for n in sure]
    # Sequences of bounds to be judged apart: the number of an element, or ``~`` of it at its end.
    waiting = [[bound for _, _, bound in sorted(bounds)]]
    while waiting:
        for stretch in _stretches(_uncrossed(waiting.pop())):
            low, high = 0, len(stretch) - 1
            while low < high and stretch[low] == ~stretch[high]:
                low, high = low + 1, high - 1
            if low > high:
                continue
            if low:
                waiting.append(stretch[low : high + 1])
                continue
            begin, end = begins[stretch[0]], ends[~stretch[-1]]
            below = {n for n in stretch if n >= 0 and pushed[n] <= begin and popped[n] >= end}
            if not below:
                members = np.array([n for n in stretch if n >= 0], dtype=np.int64)
                return tuple(_chain(elements, members, begin + 1, end - 1))
            waiting.append([n for n in stretch if (n if n >= 0 else ~n) not in below])
    return ()


def _uncrossed(bounds: list[int]) -> list[int]:
    """Leave out elements between whose begin and end there is nothing left."""
    kept: list[int] = []
    for bound in bounds:
        if kept and kept[-1] == ~bound:
            kept.pop()
        else:
            kept.append(bound)
    return kept


def _stretches(bounds: list[int]) -> Iterator[list[int]]:
    """Yield the bounds between two moments at which nothing is there for sure."""
    begin = depth = 0
    for place, bound in enumerate(bounds, start=1):
        depth += 1 if bound >= 0 else -1
        if depth == 0:
            yield bounds[begin:place]
            begin = place


def _chain(elements: _Elements, members: Integers, begin: int, end: int) -> list[int]:
    """Return the places of few elements of which one is there at each moment, both included."""
    chain: list[int] = []
    reached = begin
    for _ in members:
        if reached > end:
            break
        there = members[elements.put_end[members] < reached]
        longest = int(there[elements.take_start[there].argmax()])
        chain += elements.places(longest)
        reached = int(elements.take_start[longest])
    return chain


def _nothing_found(columns: ElementColumns, there: _Elements, nothing: Integers) -> tuple[int, ...]:
    """Find a dequeue that found nothing while something was there all the time."""
    if not len(there.put) or not len(nothing):
        return ()
    latest = np.maximum.accumulate(there.take_start)
    # A stretch without a gap ends where the next element comes after all before it may have gone.
    ends = np.append(there.put_end[1:] >= latest[:-1], True)
    end_of = latest[ends][np.cumsum(ends) - ends]
    before = np.searchsorted(there.put_end, columns.starts[nothing], side="left")
    limits = np.where(before > 0, end_of[before - 1], BEFORE_ALL)
    wrong = np.flatnonzero(limits > columns.ends[nothing])
    if not len(wrong):
        return ()
    place = int(nothing[wrong[0]])
    begin, end = int(columns.starts[place]), int(columns.ends[place])
    return (place, *_chain(there, np.arange(len(there.put)), begin, end))


_ORDERS: Final = {"first": _overtaking, "last": _none_below, "least": _lesser_there}
