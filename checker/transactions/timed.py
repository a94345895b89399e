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


class Times:
    """Outcomes, processes and times of transactions in the order of their invocations.

    Times are nanoseconds, ``NEVER`` for the end of one without answer; outcomes are numbers of
    ``history.columns``.
    """

    def __init__(
        self,
        indexes: Integers,
        processes: Integers,
        starts: Integers,
        ends: Integers,
        outcomes: NDArray[np.int8],
    ) -> None:
        self.indexes, self.processes = indexes, processes
        self.starts, self.ends = starts, ends
        self.is_ok: NDArray[np.bool_] = outcomes == OK
        self.has_failed: NDArray[np.bool_] = outcomes == FAIL


class Timed(Times):
    """Transactions, and what is known of them without what they read and wrote."""

    def __init__(self, operations: Sequence[PairedOperation]) -> None:
        #: All of them, failed ones too.
        self.operations = operations
        self.is_final: NDArray[np.bool_]
        if isinstance(operations, ColumnOperations):
            of = operations.columns
            self.is_final = of.finals
            super().__init__(of.indexes, of.processes, of.starts, of.ends, of.outcomes)
            return
        self.is_final = np.array([o.final for o in operations], dtype=bool)
        super().__init__(
            np.array([o.index for o in operations], dtype=np.int64),
            np.array([o.process for o in operations], dtype=np.int64),
            np.array([o.start for o in operations], dtype=np.int64),
            np.array([NEVER if o.end is None else o.end for o in operations], dtype=np.int64),
            np.array([NUMBER_BY_TYPE[o.type] for o in operations], dtype=np.int8),
        )
