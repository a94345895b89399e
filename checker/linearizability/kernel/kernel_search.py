"""Depth-first search of ``checker.linearizability.methods.search``, compiled: its rules on arrays.

Needs numba. Each function is written for the compiler: plain loops over arrays, nothing allocated.
A configuration is not changed until all that it needs is known; so it can be looked at again after
the caller has answered. Must decide as the search in Python does.
"""

from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    ASK,
    AVAILABLE,
    BOUND,
    CONFIGURATIONS,
    DONE,
    FOUND,
    KEYS,
    LAST,
    LIMIT,
    MEMO_FULL,
    MOVE,
    NODE,
    NODES,
    NONE_LEFT,
    RANK,
    STACK_FULL,
    STACKED,
    STATE,
    TABLE_FULL,
    UNKNOWN,
    WAYS_MAX,
    Layout,
    Memory,
)
from splitbrain.checker.linearizability.kernel.kernel_memo import is_new
from splitbrain.checker.linearizability.kernel.kernel_rules import all_known, satisfied
from splitbrain.checker.linearizability.kernel.kernel_ways import expand


@part_of_compiled
def _settle(layout: Layout, memory: Memory, top: int) -> bool:
    """Take the top of the stack to the first return that needs a decision; False if asking."""
    row = memory.stack[top]
    rank, state, done, available = row[RANK], row[STATE], row[DONE], row[AVAILABLE]
    count = len(layout.ends)
    if rank < count:
        first, end = layout.candidates_at[rank], layout.candidates_at[rank + 1]
        done = satisfied(layout, memory, rank, state, done, layout.candidates, first, end)
        if done == UNKNOWN:
            return False
    while rank < count and not row[BOUND]:
        bit = layout.bit[rank]
        if (done & bit) == 0 or (available & bit) != 0:
            break
        done &= ~bit
        rank += 1
        if rank == count:
            break
        first, end = layout.fresh_at[rank], layout.fresh_at[rank + 1]
        for position in range(first, end):
            candidate = layout.fresh[position]
            if not layout.pure[layout.call[candidate]]:
                available |= layout.bit[candidate]
        done = satisfied(layout, memory, rank, state, done, layout.fresh, first, end)
        if done == UNKNOWN:
            return False
        # Kept at once: the known way need not be walked again.
        row[RANK], row[DONE], row[AVAILABLE] = rank, done, available
    row[RANK], row[DONE], row[AVAILABLE] = rank, done, available
    return True


@part_of_compiled
def lacks(layout: Layout, memory: Memory, limit: int) -> int:
    """Return what the caller must give before the next configuration, 0 for nothing."""
    control = memory.control
    if control[CONFIGURATIONS] >= limit:
        return LIMIT
    if control[STACKED] + WAYS_MAX + len(layout.group_call) >= len(memory.stack):
        return STACK_FULL
    if control[NODES] + 1 >= len(memory.parent):
        return MEMO_FULL
    if 2 * control[KEYS] + 2 >= len(memory.keys):
        return TABLE_FULL
    return 0


@compiled
def search(layout: Layout, memory: Memory, limit: int) -> int:
    """Go on until an order is found, none is left, something is lacking, or at the limit.

    The stack of the memory begins with one configuration.
    """
    control = memory.control
    while control[STACKED] > 0:
        lack = lacks(layout, memory, limit)
        if lack:
            return lack
        top = control[STACKED] - 1
        if not _settle(layout, memory, top):
            return ASK
        row = memory.stack[top]
        rank, state = row[RANK], row[STATE]
        if rank == len(layout.ends):
            node = control[NODES]
            memory.parent[node], memory.move[node] = row[NODE], row[MOVE]
            control[NODES] += 1
            control[LAST] = node
            return FOUND
        if not all_known(layout, memory, rank, state):
            return ASK
        control[CONFIGURATIONS] += 1
        control[STACKED] = top
        if not is_new(layout, memory, top):
            continue
        control[STACKED] = expand(layout, memory, top, top, control[NODES] - 1)
    return NONE_LEFT
