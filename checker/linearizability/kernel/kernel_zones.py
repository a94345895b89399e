"""Zones that contradict nobody, recognized in one pass over the operations, compiled.

Only confirms an order; anything else (a contradiction, a value written twice, values in an order
that would take long) is left to ``linearizability.methods.zones``, which names it. Needs numba.
"""

from typing import Final, NamedTuple

from splitbrain.checker.linearizability.kernel.columns import BEFORE_ALL, NEVER, RegisterColumns
from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import FlagCells, IntegerCells

#: Steps for each operation, beyond which values are too far from the order of time.
_STEPS_PER_OPERATION: Final = 16


class ZoneMemory(NamedTuple):
    """Arrays that are filled on the way, of times but for ``written``."""

    #: By process, ``BEFORE_ALL`` at first.
    last_end: IntegerCells
    #: By value, the initial one last: ``NEVER`` at first, and ``BEFORE_ALL`` for the initial one.
    first_return: IntegerCells
    #: By value, ``BEFORE_ALL`` at first.
    last_start: IntegerCells
    #: By value, whether it was written; at first the initial one alone.
    written: FlagCells
    #: Forward zones in order.
    begins: IntegerCells
    ends: IntegerCells


@part_of_compiled
def _gather(register: RegisterColumns, memory: ZoneMemory) -> bool:
    """Fill first return and last invocation of every value; False if the case is not simple."""
    last_end, first_return = memory.last_end, memory.first_return
    last_start, written = memory.last_start, memory.written
    now = register.starts[0]
    for place in range(len(register.starts)):
        start, end = register.starts[place], register.ends[place]
        process, value = register.processes[place], register.values[place]
        if start < now or last_end[process] == start:
            return False
        now = start
        last_end[process] = end
        if register.is_write[place]:
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
def _forward_by_begin(memory: ZoneMemory) -> int:
    """Put the forward zones in order; return their number, or -1 if that takes too long."""
    written, begins, ends = memory.written, memory.begins, memory.ends
    steps = _STEPS_PER_OPERATION * len(written)
    count = 0
    for at in range(len(written)):
        # The initial value comes first: it was written before everything.
        value = len(written) - 1 if at == 0 else at - 1
        begin, end = memory.first_return[value], memory.last_start[value]
        if end == BEFORE_ALL:
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
def _lies_within(memory: ZoneMemory, count: int) -> bool:
    """Return whether a value lies strictly within a forward zone, or that takes too long."""
    first_return, begins, ends = memory.first_return, memory.begins, memory.ends
    steps = _STEPS_PER_OPERATION * len(first_return)
    around = 0
    for value in range(len(first_return)):
        begin, end = first_return[value], memory.last_start[value]
        if end == BEFORE_ALL or begin < end:
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
def zones_agree(register: RegisterColumns, memory: ZoneMemory) -> bool:
    """Return whether all reads and writes certainly have an order; there is at least one."""
    if not _gather(register, memory):
        return False
    count = _forward_by_begin(memory)
    if count < 0:
        return False
    for place in range(1, count):
        if memory.begins[place] < memory.ends[place - 1]:
            return False
    return not _lies_within(memory, count)
