"""Zones: a register of distinct written values judged without a search, in n log n.

All operations of one value (its write and the reads of it) stand together in every order. Let *f*
be the first return among them and *s* the last invocation. Those of value A can stand before those
of value B only if no operation of B returned before one of A was invoked: not f(B) < s(A). So two
values contradict each other if f(A) < s(B) and f(B) < s(A), and where no two do, and no read
returned before the write of its value was invoked, there is an order. A value with f < s has a
*forward zone* from f to s: no two of these may overlap, and no other value may lie strictly within
one.

The initial value is one that was written before everything. A write without answer counts if its
value was read (it returns never), else it is taken to never have happened. Where a process invoked
at the very moment of its last return, that order is not one of time: such histories are not for
this module.

Source: Gibbons and Korach 1997, "Testing shared memories", section 4.
"""

import sys
from typing import NamedTuple

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import (
    BEFORE_ALL,
    INITIAL,
    NEVER,
    RegisterColumns,
    goes_on_at_once,
)
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers


class ZoneVerdict(NamedTuple):
    """Verdict of the zones."""

    valid: bool
    #: Values that contradict each other; one alone where a read is at odds with its own write.
    values: tuple[int, ...]


def judge_zones(columns: RegisterColumns) -> ZoneVerdict | None:
    """Return whether the reads and writes have an order; None where the method does not apply."""
    # Importing numba takes longer than a million operations do.
    if "numba" in sys.modules and len(columns.starts) and agree_at_once(columns):
        return ZoneVerdict(True, ())
    return judge_zones_plainly(columns)


def judge_zones_plainly(columns: RegisterColumns) -> ZoneVerdict | None:
    """Judge without compiled code."""
    values, is_write, ends = columns.values, columns.is_write, columns.ends
    written = values[is_write]
    count = int(values.max(initial=INITIAL)) + 1
    times_written = np.bincount(written, minlength=count) if _plain(written) else None
    if times_written is None or (times_written > 1).any() or goes_on_at_once(columns):
        return None
    # From here on a value has one write or none; the last entry is the initial value's.
    reads = ~is_write & (ends != NEVER)
    first_return = np.full(count + 1, NEVER, dtype=np.int64)
    last_start = np.full(count + 1, BEFORE_ALL, dtype=np.int64)
    write_start = np.full(count + 1, NEVER, dtype=np.int64)
    first_return[written] = ends[is_write]
    last_start[written] = write_start[written] = columns.starts[is_write]
    first_return[INITIAL] = write_start[INITIAL] = BEFORE_ALL
    read = values[reads]
    was_read = np.zeros(count + 1, dtype=np.bool_)
    was_read[read] = True
    np.minimum.at(first_return, read, ends[reads])
    np.maximum.at(last_start, read, columns.starts[reads])
    # A read that returned before its value was written, or of one that never was.
    early = np.flatnonzero(was_read & (first_return < write_start))
    if len(early):
        return ZoneVerdict(False, (int(early[0]),))
    return _contradiction(first_return, last_start, count)


def agree_at_once(columns: RegisterColumns) -> bool:
    """Return whether compiled code confirms an order at once."""
    from splitbrain.checker.linearizability.kernel.kernel_zones import ZoneMemory, zones_agree

    count = int(columns.values.max(initial=INITIAL)) + 2
    memory = ZoneMemory(
        last_end=np.full(int(columns.processes.max()) + 1, BEFORE_ALL, dtype=np.int64),
        first_return=np.full(count, NEVER, dtype=np.int64),
        last_start=np.full(count, BEFORE_ALL, dtype=np.int64),
        written=np.zeros(count, dtype=np.bool_),
        begins=np.empty(count, dtype=np.int64),
        ends=np.empty(count, dtype=np.int64),
    )
    memory.first_return[INITIAL] = BEFORE_ALL
    memory.written[INITIAL] = True
    return zones_agree(columns, memory)


def _contradiction(first_return: Integers, last_start: Integers, count: int) -> ZoneVerdict:
    """Find the first two values that cannot stand in either order, if any."""
    happened = last_start != BEFORE_ALL
    # An open write that nobody read has no return; it contradicts nobody.
    happened[:count] &= first_return[:count] != NEVER
    forward = np.flatnonzero(happened & (first_return < last_start))
    forward = forward[np.argsort(first_return[forward], kind="stable")]
    begins, ends = first_return[forward], last_start[forward]
    overlapping = np.flatnonzero(begins[1:] < ends[:-1])
    if len(overlapping):
        place = overlapping[0]
        return ZoneVerdict(False, _numbers(int(forward[place]), int(forward[place + 1]), count))
    if len(forward):
        others = np.flatnonzero(happened & (first_return >= last_start))
        around = np.searchsorted(begins, last_start[others], side="left") - 1
        within = (around >= 0) & (first_return[others] < ends[around])
        place = int(within.argmax()) if len(others) else 0
        if len(others) and within[place]:
            return ZoneVerdict(
                False, _numbers(int(forward[around[place]]), int(others[place]), count)
            )
    return ZoneVerdict(True, ())


def _numbers(first: int, second: int, count: int) -> tuple[int, ...]:
    return tuple(INITIAL if value == count else value for value in (first, second))


def _plain(written: Integers) -> bool:
    return not len(written) or int(written.min()) != INITIAL
