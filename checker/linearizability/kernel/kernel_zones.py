"""Zones that contradict nobody, recognized in one pass over the operations, compiled.

Only confirms an order; anything else (a contradiction, a value written twice, values in an order
that would take long) is left to ``linearizability.methods.zones``, which names it. Needs numba.
"""

from typing import Final

from splitbrain.checker.linearizability.kernel.columns import NEVER
from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import FlagCells, IntegerCells

#: Steps for each operation, beyond which values are too far from the order of time.
_STEPS_PER_OPERATION: Final = 16


@part_of_compiled
def _gather(
    starts: IntegerCells,
    ends: IntegerCells,
    processes: IntegerCells,
    is_write: FlagCells,
    values: IntegerCells,
    last_end: IntegerCells,
    first_return: IntegerCells,
    last_start: IntegerCells,
    written: FlagCells,
) -> bool:
    """Fill first return and last invocation of every value; False if the case is not simple.

    The initial value, -1, is the last entry and counts as written.
    """
    now = starts[0]
    for place in range(len(starts)):
        start, end = starts[place], ends[place]
        process, value = processes[place], values[place]
        if start < now or last_end[process] == start:
            return False
        now = start
        last_end[process] = end
        if is_write[place]:
            # Written twice, or read by an operation that returned before.
            if written[value] or first_return[value] < start:
                return False
            written[value] = True
        elif end == NEVER:
            continue
        first_return[value] = min(first_return[value], end)
        last_start[value] = start
    return True


@part_of_compiled
def _forward_by_begin(
    first_return: IntegerCells,
    last_start: IntegerCells,
    written: FlagCells,
    begins: IntegerCells,
    ends: IntegerCells,
    never: int,
) -> int:
    """Put the forward zones in order; return their number, or -1 if that takes too long."""
    steps = _STEPS_PER_OPERATION * len(written)
    count = 0
    for at in range(len(written)):
        # The initial value comes first: it was written before everything.
        value = len(written) - 1 if at == 0 else at - 1
        begin, end = first_return[value], last_start[value]
        if end == never:
            continue
        if not written[value]:
            return -1
        if begin >= end:
            continue
        place = count
        while place > 0 and begins[place - 1] > begin:
            begins[place], ends[place] = begins[place - 1], ends[place - 1]
            place -= 1
            steps -= 1
        if steps < 0:
            return -1
        begins[place], ends[place] = begin, end
        count += 1
    return count


@part_of_compiled
def _lies_within(
    first_return: IntegerCells,
    last_start: IntegerCells,
    begins: IntegerCells,
    ends: IntegerCells,
    count: int,
    never: int,
) -> bool:
    """Return whether a value lies strictly within a forward zone, or that takes too long."""
    steps = _STEPS_PER_OPERATION * len(first_return)
    around = 0
    for value in range(len(first_return)):
        begin, end = first_return[value], last_start[value]
        if end == never or begin < end:
            continue
        while around < count and begins[around] < end:
            around += 1
            steps -= 1
        while around > 0 and begins[around - 1] >= end:
            around -= 1
            steps -= 1
        # An open write without reads never returns: it lies within nothing.
        if steps < 0 or (around > 0 and begin < ends[around - 1]):
            return True
    return False


@compiled
def zones_agree(
    starts: IntegerCells,
    ends: IntegerCells,
    processes: IntegerCells,
    is_write: FlagCells,
    values: IntegerCells,
    last_end: IntegerCells,
    first_return: IntegerCells,
    last_start: IntegerCells,
    written: FlagCells,
    begins: IntegerCells,
    forward_ends: IntegerCells,
    never: int,
) -> bool:
    """Return whether all reads and writes certainly have an order.

    Args:
        starts: of the operations, at least one; so are the next four, see ``RegisterColumns``.
        ends: ``NEVER`` without answer.
        processes: from 0.
        is_write: or a read.
        values: from 0, -1 for the initial one.
        last_end: by process, a time before all; used up.
        first_return: by value, the initial one last: ``NEVER``, and ``never`` for the initial one.
        last_start: by value, ``never``; used up.
        written: by value, whether it was written before all: the initial one alone.
        begins: by value, used up.
        forward_ends: by value, used up.
        never: a time before all.
    """
    simple = _gather(
        starts, ends, processes, is_write, values, last_end, first_return, last_start, written
    )
    if not simple:
        return False
    count = _forward_by_begin(first_return, last_start, written, begins, forward_ends, never)
    if count < 0:
        return False
    for place in range(1, count):
        if begins[place] < forward_ends[place - 1]:
            return False
    return not _lies_within(first_return, last_start, begins, forward_ends, count, never)
