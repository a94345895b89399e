"""How long a system did not serve: fault by fault, and at the worst. Pure.

The failover of a fault is the time from when it was asked for to the first acknowledgement of a
change that was invoked after that and placed in a new epoch: one greater than that of every change
acknowledged until then. It must come before the next fault. ``spark_analysis`` defines the same
figure in the same way (``jobs.availability``). Must never tell a time for a fault that moved no
leader, nor where the system gives no positions.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.functions import Functions, only_reads
from splitbrain.history.records import PairedOperation


def failovers_ns(
    windows: Sequence[FaultWindow],
    operations: Iterable[PairedOperation],
    functions: Functions,
) -> Mapping[int, int]:
    """Index of each fault that moved the leader, to how long that took, ns.

    Args:
        windows: of the faults that were injected.
        operations: of the run.
        functions: of its workload.
    """
    changes = sorted(
        (operation.end, operation.start, operation.position[0])
        for operation in operations
        if operation.type == "ok"
        and not operation.final
        and not only_reads(functions, operation.f, operation.argument)
        and operation.end is not None
        and operation.position is not None
    )
    ends = [told for told, _, _ in changes]
    highest = list(accumulate((epoch for _, _, epoch in changes), max))
    starts = sorted({window.start for window in windows})
    found: dict[int, int] = {}
    for window in windows:
        place = bisect_right(ends, window.start)
        next_ = bisect_right(starts, window.start)
        limit = bisect_right(ends, starts[next_]) if next_ < len(starts) else len(ends)
        if not place:
            continue
        for told, asked, epoch in changes[place:limit]:
            if asked > window.start and epoch > highest[place - 1]:
                found[window.index] = told - window.start
                break
    return found


def longest_unavailability_ns(
    operations: Iterable[PairedOperation], functions: Functions
) -> int | None:
    """Longest time without an acknowledged write while the clients loaded the system, ns.

    Bounded by the first invocation of a write and the last event of one; None without writes.
    ``spark_analysis`` defines the same figure in the same way.
    """
    writes = [
        operation
        for operation in operations
        if not operation.final and not only_reads(functions, operation.f, operation.argument)
    ]
    if not writes:
        return None
    begin = min(operation.start for operation in writes)
    finish = max(
        operation.start if operation.end is None else operation.end for operation in writes
    )
    acknowledged = sorted(
        operation.end
        for operation in writes
        if operation.type == "ok" and operation.end is not None
    )
    moments = [begin, *acknowledged, finish]
    return max(later - earlier for earlier, later in pairwise(moments))
