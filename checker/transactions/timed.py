"""Transactions of a history as columns, without what they read and wrote; pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splitbrain.history.columns import (
    FAIL,
    NEVER,
    NUMBER_BY_TYPE,
    OK,
    ColumnOperations,
    Integers,
)
from splitbrain.history.records import PairedOperation


class Timed:
    """Outcomes, processes and times of transactions in the order of their invocations."""

    def __init__(self, operations: Sequence[PairedOperation]) -> None:
        #: All of them, failed ones too.
        self.operations = operations
        self.indexes: Integers
        self.processes: Integers
        #: Nanoseconds; ``NEVER`` for the end of one without answer.
        self.starts: Integers
        self.ends: Integers
        self.is_final: NDArray[np.bool_]
        if isinstance(operations, ColumnOperations):
            columns = operations.columns
            self.indexes, self.processes = columns.indexes, columns.processes
            self.starts, self.ends = columns.starts, columns.ends
            self.is_final = columns.finals
            outcomes = columns.outcomes
        else:
            self.indexes = np.array([o.index for o in operations], dtype=np.int64)
            self.processes = np.array([o.process for o in operations], dtype=np.int64)
            self.starts = np.array([o.start for o in operations], dtype=np.int64)
            ends = [NEVER if o.end is None else o.end for o in operations]
            self.ends = np.array(ends, dtype=np.int64)
            self.is_final = np.array([o.final for o in operations], dtype=bool)
            outcomes = np.array([NUMBER_BY_TYPE[o.type] for o in operations], dtype=np.int8)
        self.is_ok: NDArray[np.bool_] = outcomes == OK
        self.has_failed: NDArray[np.bool_] = outcomes == FAIL
