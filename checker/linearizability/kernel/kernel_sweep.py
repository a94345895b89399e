"""Slots and candidates of a part, compiled: ``linearizability.part.problem`` on columns.

Needs numba.
"""

from typing import Final

from splitbrain.checker.linearizability.kernel.jit import compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    FlagCells,
    IntegerCells,
    NumberCells,
)

#: Greatest number of open operations: bits of a word.
WIDTH_MAX: Final = 62
#: Answer of ``sweep`` for a part that is too wide.
TOO_WIDE: Final = -1


@compiled
def count_candidates(starts: IntegerCells, ends: IntegerCells) -> int:
    """Count the candidates of all ranks; both arrays ascend."""
    total = 0
    started = 0
    for rank in range(len(ends)):
        while started < len(starts) and starts[started] <= ends[rank]:
            started += 1
        total += started - rank
    return total


@compiled
def has_ties(starts: IntegerCells, ends: IntegerCells) -> bool:
    """Return whether any invocation is at the moment of a return; both arrays ascend."""
    started = 0
    for rank in range(len(ends)):
        while started < len(starts) and starts[started] < ends[rank]:
            started += 1
        if started < len(starts) and starts[started] == ends[rank]:
            return True
    return False


@compiled
def predecessors(
    starts: IntegerCells,
    ends: IntegerCells,
    processes: IntegerCells,
    last: IntegerCells,
    before: IntegerCells,
) -> None:
    """Find by place the place that its process completed at the moment of the invocation.

    Processes are numbered from 0; ``last`` is -1 for each and used up; ``before`` is filled, with
    -1 for none.
    """
    for place in range(len(starts)):
        latest = last[processes[place]]
        before[place] = -1
        if latest >= 0 and ends[latest] == starts[place]:
            before[place] = latest
        last[processes[place]] = place


@compiled
def sweep(
    starts: IntegerCells,
    ends: IntegerCells,
    ranks: IntegerCells,
    overwrite: FlagCells,
    bit: IntegerCells,
    candidates_at: IntegerCells,
    candidates: NumberCells,
    fresh_at: IntegerCells,
    fresh: NumberCells,
    overwrites: IntegerCells,
) -> int:
    """Give out slots and list the candidates; return the width, or ``TOO_WIDE``.

    ``ranks`` are by order of start, ``overwrite`` tells by rank whether rule 3 applies without
    waiting. All arrays from ``bit`` on are filled, see ``Layout``.
    """
    free = (1 << WIDTH_MAX) - 1
    width = 0
    started = 0
    filled = 0
    open_overwrites = 0
    for rank in range(len(ends)):
        candidates_at[rank] = filled
        fresh_at[rank] = started
        # Those of the rank before without itself, then those invoked since, by rank.
        if rank:
            for position in range(candidates_at[rank - 1] + 1, candidates_at[rank]):
                candidates[filled] = candidates[position]
                filled += 1
        first = candidates_at[rank]
        while started < len(starts) and starts[started] <= ends[rank]:
            added = ranks[started]
            fresh[started] = added
            started += 1
            if free == 0:
                return TOO_WIDE
            slot = free & -free
            free ^= slot
            bit[added] = slot
            if overwrite[added]:
                open_overwrites |= slot
            position = filled
            filled += 1
            while position > first and candidates[position - 1] > added:
                candidates[position] = candidates[position - 1]
                position -= 1
            candidates[position] = added
        width = max(width, filled - first)
        overwrites[rank] = open_overwrites
        free |= bit[rank]
        open_overwrites &= ~bit[rank]
    candidates_at[len(ends)] = filled
    fresh_at[len(ends)] = started
    return width
