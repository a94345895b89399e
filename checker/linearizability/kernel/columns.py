"""Columns of one part, for the compiled search and the zones; independent of numba."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.history.records import PairedOperation

#: Return time of an operation that never returned.
NEVER: Final = np.iinfo(np.int64).max
#: A time before all, and the value of a register then.
BEFORE_ALL: Final = np.iinfo(np.int64).min
INITIAL: Final = -1
_FEW_PROCESSES: Final = np.iinfo(np.uint16).max


class PartColumns(NamedTuple):
    """Operations of one part, ``ok`` and ``info``, by start, equal ones by index."""

    starts: Integers
    #: ``NEVER`` for an operation without answer.
    ends: Integers
    #: Any numbers.
    processes: Integers
    #: Numbers of calls.
    calls: Integers


class RegisterColumns(NamedTuple):
    """Reads and writes of one register, those without answer included, by invocation."""

    starts: Integers
    #: ``NEVER`` where there is no answer.
    ends: Integers
    #: Any processes, numbered from 0.
    processes: Integers
    is_write: NDArray[np.bool_]
    #: Values numbered from 0, or ``INITIAL``; arbitrary for a read without answer.
    values: Integers


#: Kinds in ``ElementColumns``.
PUTS, TAKES, FINDS_NOTHING, TELLS_NOTHING = range(4)


class ElementColumns(NamedTuple):
    """Operations that put elements in and take them out, by invocation."""

    starts: Integers
    #: ``NEVER`` where there is no answer.
    ends: Integers
    #: Any numbers.
    processes: Integers
    kinds: Integers
    #: Numbers of elements, from 0; arbitrary where an operation names none.
    numbers: Integers
    #: Elements by number.
    names: Sequence[Any]


def returned_at(operation: PairedOperation) -> int:
    """Return when an ``ok`` or ``info`` operation returned; ``NEVER`` without an answer."""
    return NEVER if operation.end is None or operation.type == "info" else operation.end


def columns_of(operations: Sequence[PairedOperation], calls: Sequence[int]) -> PartColumns:
    """Return the columns of operations by start, equal ones by index, without ``fail``."""
    table = [
        (o.start, returned_at(o), o.process, call)
        for o, call in zip(operations, calls, strict=True)
    ]
    array = np.array(table, dtype=np.int64).reshape(len(table), 4)
    starts, ends, processes, numbers = (np.ascontiguousarray(array[:, n]) for n in range(4))
    return PartColumns(starts, ends, processes, numbers)


def goes_on_at_once(columns: PartColumns | RegisterColumns | ElementColumns) -> bool:
    """Return whether a process invoked an operation at the very moment of its last return."""
    # Numbers of 16 bits are sorted five times as fast.
    few = int(columns.processes.max(initial=0)) <= _FEW_PROCESSES
    numbers = columns.processes.astype(np.uint16) if few else columns.processes
    order = np.argsort(numbers, kind="stable")
    processes = columns.processes[order]
    same = processes[1:] == processes[:-1]
    return bool((same & (columns.ends[order][:-1] == columns.starts[order][1:])).any())
