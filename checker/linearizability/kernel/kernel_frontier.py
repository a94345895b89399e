"""Sweep, compiled: all configurations of one rank before any of the next.

The cost is exponential in the width alone, that is in how many operations are open at once, and
linear in the length of the history; no order of trying can make it worse. Earlier ranks are
forgotten, but for the decisions that lead to the current ones. The rules are those of
``linearizability.methods.search``; among all that reach a rank only the best go on (rule 6), which
the depth-first search cannot know before it has been everywhere. So the sweep refutes faster, and
finds an order later.

Source: Lee and Mathur 2026, "Fixed Parameter Tractable Linearizability Monitoring" (PLDI; a walk
through the frontiers of a history). Frontiers as sets of done and available operations, and keeping
only the best of them, are this project's (decision 0014).
"""

from typing import Final

from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    ASK,
    AVAILABLE,
    BOUND,
    COMPACT_AT,
    CONFIGURATIONS,
    DONE,
    DROPPED,
    FOUND,
    FREE,
    HEAD,
    KEYS,
    LAST,
    LAYER,
    MOVE,
    NODE,
    NODES,
    NONE_LEFT,
    OWED,
    OWN,
    RANK,
    STACKED,
    STATE,
    UNKNOWN,
    WAITING,
    WAITING_FULL,
    WIDEST,
    IntegerCells,
    Layout,
    Memory,
)
from splitbrain.checker.linearizability.kernel.kernel_rules import (
    all_known,
    is_new,
    satisfied,
    slot_of,
    still_owed,
)
from splitbrain.checker.linearizability.kernel.kernel_search import expand, lacks

#: Number of nodes below which none are forgotten.
_COMPACT_MIN: Final = 4096


@part_of_compiled
def _copy(rows: IntegerCells, place: int, others: IntegerCells, target: int) -> None:
    for column in range(rows.shape[1]):
        others[target, column] = rows[place, column]


@part_of_compiled
def _close_up(memory: Memory) -> None:
    control, stack = memory.control, memory.stack
    head = control[HEAD]
    for place in range(head, control[STACKED]):
        _copy(stack, place, stack, place - head)
    control[STACKED] -= head
    control[HEAD] = 0


@part_of_compiled
def _arrive(layout: Layout, memory: Memory, place: int) -> int:
    """Let a configuration go on to the next rank; ``ASK``, ``FOUND`` or 0."""
    control, row = memory.control, memory.stack[place]
    rank = row[RANK]
    done, available = row[DONE] & ~layout.bit[rank], row[AVAILABLE]
    rank += 1
    if rank == len(layout.ends):
        node = control[NODES]
        memory.parent[node], memory.move[node] = row[NODE], row[MOVE]
        control[NODES] += 1
        control[LAST] = node
        return FOUND
    first, end = layout.fresh_at[rank], layout.fresh_at[rank + 1]
    for position in range(first, end):
        candidate = layout.fresh[position]
        if not layout.pure[layout.call[candidate]]:
            available |= layout.bit[candidate]
    first, end = layout.candidates_at[rank], layout.candidates_at[rank + 1]
    done = satisfied(layout, memory, rank, row[STATE], done, layout.candidates, first, end)
    if done == UNKNOWN:
        return ASK
    row[RANK], row[DONE], row[AVAILABLE], row[BOUND] = rank, done, available, 0
    if is_new(layout, memory, place):
        row[OWN] = control[NODES] - 1
        _copy(memory.stack, place, memory.waiting, control[WAITING])
        control[WAITING] += 1
    return 0


@part_of_compiled
def _compact(memory: Memory) -> None:
    """Keep the nodes that lead to waiting rows; the table then holds only these rows."""
    control, following = memory.control, memory.following
    count = control[NODES]
    memory.keys[:] = FREE
    control[KEYS] = 0
    # 1. Needed nodes: parents have smaller numbers.
    following[:count] = FREE
    for place in range(control[WAITING]):
        following[memory.waiting[place, OWN]] = 1
    for node in range(count - 1, -1, -1):
        if following[node] != FREE and memory.parent[node] >= 0:
            following[memory.parent[node]] = 1
    # 2. New numbers, kept in ``following`` until all are given.
    kept = 0
    for node in range(count):
        if following[node] != FREE:
            parent = memory.parent[node]
            memory.parent[kept] = following[parent] if parent >= 0 else parent
            memory.move[kept] = memory.move[node]
            for column in range(memory.known.shape[1]):
                memory.known[kept, column] = memory.known[node, column]
            following[node] = kept
            kept += 1
    for place in range(control[WAITING]):
        row = memory.waiting[place]
        row[OWN] = following[row[OWN]]
        row[NODE] = memory.parent[row[OWN]]
    for place in range(memory.stops.shape[0]):
        memory.stops[place, 1] = FREE
    # 3. The table again.
    for place in range(control[WAITING]):
        row = memory.waiting[place]
        key = (row[RANK] << 32) | (row[STATE] << 1) | row[BOUND]
        slot = slot_of(memory.keys, key)
        if memory.keys[slot] == FREE:
            memory.keys[slot] = key
            memory.heads[slot] = FREE
            control[KEYS] += 1
        following[row[OWN]] = memory.heads[slot]
        memory.heads[slot] = row[OWN]
    control[NODES] = kept
    control[COMPACT_AT] = 2 * kept + _COMPACT_MIN


@part_of_compiled
def _next_rank(memory: Memory) -> None:
    """Put the waiting rows on the stack, without those that a better one replaced."""
    control = memory.control
    best = 0
    for place in range(control[WAITING]):
        if memory.following[memory.waiting[place, OWN]] != DROPPED:
            _copy(memory.waiting, place, memory.waiting, best)
            best += 1
    control[WAITING] = best
    control[WIDEST] = max(control[WIDEST], best)
    if control[NODES] > control[COMPACT_AT]:
        _compact(memory)
    for place in range(best):
        _copy(memory.waiting, place, memory.stack, place)
    control[STACKED] = best
    control[HEAD] = 0
    control[WAITING] = 0
    control[LAYER] += 1


@part_of_compiled
def _lacks(layout: Layout, memory: Memory, limit: int) -> int:
    lack = lacks(layout, memory, limit)
    if not lack and memory.control[WAITING] + 1 >= len(memory.waiting):
        return WAITING_FULL
    return lack


@compiled
def frontier(layout: Layout, memory: Memory, limit: int) -> int:
    """Go on until an order is found, none is left, something is lacking, or at the limit.

    The part has an operation, and the stack of the memory begins with one configuration.
    """
    control, stack = memory.control, memory.stack
    while True:
        if control[HEAD] == control[STACKED]:
            if control[WAITING] == 0:
                return NONE_LEFT
            _next_rank(memory)
        elif 2 * control[HEAD] > len(stack):
            _close_up(memory)
        lack = _lacks(layout, memory, limit)
        if lack:
            return lack
        # First in, first out: what took less is known before what took more, and makes it needless.
        place = control[HEAD]
        rank, state, own = stack[place, RANK], stack[place, STATE], stack[place, OWN]
        if own >= 0 and memory.following[own] == DROPPED:
            control[HEAD] += 1
            continue
        first, end = layout.candidates_at[rank], layout.candidates_at[rank + 1]
        done = satisfied(
            layout, memory, rank, state, stack[place, DONE], layout.candidates, first, end
        )
        if done == UNKNOWN or not all_known(layout, memory, rank, state):
            return ASK
        before = stack[place, DONE]
        stack[place, OWED] = still_owed(layout, rank, stack[place, OWED], before, done)
        stack[place, DONE] = done
        bit = layout.bit[rank]
        # A bound operation is available: it has to be used first.
        if (done & bit) != 0 and (stack[place, AVAILABLE] & bit) == 0:
            answer = _arrive(layout, memory, place)
            if answer:
                return answer
            control[HEAD] += 1
            continue
        control[CONFIGURATIONS] += 1
        control[HEAD] += 1
        if own < 0:
            if not is_new(layout, memory, place):
                continue
            own = control[NODES] - 1
        control[STACKED] = expand(layout, memory, place, control[STACKED], own)
