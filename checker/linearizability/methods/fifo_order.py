"""A FIFO queue of distinct elements judged without a search, in n log n.

Where every element is put in once, a history has an order exactly if none of these is in it:

- An element comes out twice, or came out before it was put in, or was never put in.
- Of two elements the one that was put in first for sure came out last for sure, or never.
- A dequeue found nothing while some element was in the queue for sure at each moment between its
  invocation and its return. An element is there for sure from the return of its enqueue to the
  invocation of its dequeue; where two such times overlap, the queue is never empty in between.

An enqueue without answer counts if its element came out (it returns never), else it is taken to
never have happened. A dequeue without answer can only have taken an element that nobody saw again:
where there is an order without all of those, there is one; what needs an element that never came
out is left to the search where there are such dequeues. Where a process invoked at the very moment
of its last return, that order is not one of time: such histories are left to it, too.

Source: Bouajjani, Emmi, Enea and Hamza 2015, "On reducing linearizability to state reachability".
"""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.linearizability.kernel.columns import (
    BEFORE_ALL,
    NEVER,
    PartColumns,
    goes_on_at_once,
)
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.models.model import Call

#: Kinds of calls.
_PUTS, _TAKES, _FINDS_NOTHING, _TELLS_NOTHING = range(4)
_NONE: Final = -1


class FifoVerdict(NamedTuple):
    """Verdict on a queue."""

    valid: bool
    #: Places of operations that contradict each other, whatever the others do.
    places: tuple[int, ...] = ()


class _Elements(NamedTuple):
    """Elements of a queue: places and times of what put each in and took it out."""

    put: Integers
    #: ``_NONE`` where nobody is known to have taken it; then its times are ``NEVER``.
    taken: Integers
    put_start: Integers
    put_end: Integers
    take_start: Integers
    take_end: Integers

    def among(self, chosen: NDArray[np.bool_] | Integers) -> "_Elements":
        """Return some of the elements."""
        return _Elements(*(column[chosen] for column in self))

    def places(self, number: int) -> list[int]:
        """Return the places of an element's operations."""
        return [place for place in (int(self.put[number]), int(self.taken[number])) if place >= 0]


def judge_fifo(
    columns: PartColumns, calls: Sequence[Call], functions: tuple[str, str]
) -> FifoVerdict | None:
    """Return whether the operations have an order; None where the method does not tell.

    Args:
        columns: operations of one part.
        calls: by the numbers in ``columns``.
        functions: kinds that put an element in and take one out.
    """
    numbered = _numbered(columns, calls, functions)
    if numbered is None or goes_on_at_once(columns):
        return None
    kinds, numbers, count = numbered
    puts, takes = np.flatnonzero(kinds == _PUTS), np.flatnonzero(kinds == _TAKES)
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
        return FifoVerdict(False, tuple(place for place in found if place >= 0))
    elements = _Elements(
        put,
        taken,
        *(_at(columns.starts, put), _at(columns.ends, put)),
        *(_at(columns.starts, taken), _at(columns.ends, taken)),
    )
    # Before they were put in, or without that.
    early = np.flatnonzero(elements.take_end < elements.put_start)
    if len(early):
        return FifoVerdict(False, tuple(elements.places(int(early[0]))))
    nothing = np.flatnonzero(kinds == _FINDS_NOTHING)
    if not (kinds == _TELLS_NOTHING).any():
        places = _contradiction(columns, elements, nothing)
        return FifoVerdict(not places, places)
    certain = _contradiction(columns, elements.among(elements.taken != _NONE), nothing)
    if certain:
        return FifoVerdict(False, certain)
    return None if _contradiction(columns, elements, nothing) else FifoVerdict(True)


def _numbered(
    columns: PartColumns, calls: Sequence[Call], functions: tuple[str, str]
) -> tuple[Integers, Integers, int] | None:
    """Return kind and element of each operation, and the number of elements; None for others."""
    put, take = functions
    used, places = np.unique(columns.calls, return_inverse=True)
    kinds = np.empty(len(used), dtype=np.int64)
    numbers = np.full(len(used), _NONE, dtype=np.int64)
    elements: dict[Hashable, int] = {}
    used_numbers: list[int] = used.tolist()
    for place, number in enumerate(used_numbers):
        call = calls[number]
        if call.f not in functions or put == take:
            return None
        if call.f == put:
            kinds[place], element = _PUTS, call.argument
        elif not call.known:
            kinds[place] = _TELLS_NOTHING
            continue
        elif call.result is None:
            kinds[place] = _FINDS_NOTHING
            continue
        else:
            kinds[place], element = _TAKES, call.result
        numbers[place] = elements.setdefault(element, len(elements))
    return kinds[places], numbers[places], len(elements)


def _at(times: Integers, places: Integers) -> Integers:
    found = np.full(len(places), NEVER, dtype=np.int64)
    found[places != _NONE] = times[places[places != _NONE]]
    return found


def _contradiction(columns: PartColumns, elements: _Elements, nothing: Integers) -> tuple[int, ...]:
    """Return the places of the first contradiction between elements; none where there is none."""
    there = elements.among(np.argsort(elements.put_end, kind="stable"))
    return _overtaking(there, elements) or _nothing_found(columns, there, nothing)


def _overtaking(there: _Elements, elements: _Elements) -> tuple[int, ...]:
    """Find two elements of which the second came out first."""
    latest = np.maximum.accumulate(there.take_start)
    # Elements that were put in before, for sure.
    before = np.searchsorted(there.put_end, elements.put_start, side="left")
    came_out = (elements.taken != _NONE) & (before > 0)
    limits = np.where(came_out, latest[before - 1] if len(latest) else BEFORE_ALL, BEFORE_ALL)
    late = np.flatnonzero(came_out & (limits > elements.take_end))
    if not len(late):
        return ()
    second = int(late[elements.take_end[late].argmin()])
    first = int(there.take_start[: before[second]].argmax())
    return (*there.places(first), *elements.places(second))


def _nothing_found(columns: PartColumns, there: _Elements, nothing: Integers) -> tuple[int, ...]:
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
    place, limit = int(nothing[wrong[0]]), int(limits[wrong[0]])
    found, reached = [place], int(columns.starts[place])
    # Each element takes the chain further, up to the return.
    for _ in there.put:
        if reached >= min(limit, int(columns.ends[place]) + 1):
            break
        longest = int(there.take_start[: np.searchsorted(there.put_end, reached)].argmax())
        found += there.places(longest)
        reached = int(there.take_start[longest])
    return tuple(found)
