"""One part of a history as columns: what the compiled search and the zone method work on.

Must never depend on numba.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from checker.linearizability.kernel_layout import Integers
from checker.models.model import Call, Model, call_of
from history.records import PairedOperation

#: Return time of an operation that never returned.
NEVER: Final = np.iinfo(np.int64).max


class PartColumns(NamedTuple):
    """``ok`` and ``info`` operations of one part, by start, equal ones by index."""

    starts: Integers
    #: ``NEVER`` for an operation without answer.
    ends: Integers
    #: Any numbers.
    processes: Integers
    #: Numbers of calls.
    calls: Integers


def columns_of(
    operations: Sequence[PairedOperation], model: Model, numbers: dict[Call, int]
) -> PartColumns:
    """Columns of one part.

    Args:
        operations: by start, equal ones by index, none of them ``fail``.
        model: names the calls.
        numbers: calls met so far by number; new ones are added.
    """
    table = [
        (
            o.start,
            NEVER if o.end is None or o.type == "info" else o.end,
            o.process,
            numbers.setdefault(call_of(o, model), len(numbers)),
        )
        for o in operations
    ]
    array = np.array(table, dtype=np.int64).reshape(len(table), 4)
    starts, ends, processes, calls = (np.ascontiguousarray(array[:, n]) for n in range(4))
    return PartColumns(starts, ends, processes, calls)
