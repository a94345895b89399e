"""Memory of the compiled search: a hash table of sets, of which only the best are kept.

Rule 6 of ``checker.linearizability.methods.search``.
"""

from typing import Final

from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    AVAILABLE,
    BOUND,
    DONE,
    DROPPED,
    FREE,
    KEYS,
    KNOWN_AVAILABLE,
    KNOWN_DONE,
    KNOWN_USED,
    MOVE,
    NODE,
    NODES,
    RANK,
    STATE,
    USED,
    IntegerCells,
    Layout,
    Memory,
    NumberCells,
)

#: Fibonacci hashing: 2**64 divided by the golden ratio, as a signed number.
_GOLDEN: Final = -7046029254386353131


@compiled
def slot_of(keys: IntegerCells, key: int) -> int:
    """Return the slot of a key, or the free one where it would stand."""
    mask = len(keys) - 1
    mixed = key * _GOLDEN
    slot = (mixed ^ (mixed >> 29)) & mask
    while keys[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def rehash(
    keys: IntegerCells, heads: NumberCells, new_keys: IntegerCells, new_heads: NumberCells
) -> None:
    """Move every key to a longer table."""
    for old in range(len(keys)):
        if keys[old] != FREE:
            slot = slot_of(new_keys, keys[old])
            new_keys[slot] = keys[old]
            new_heads[slot] = heads[old]


@part_of_compiled
def _no_more_used(
    layout: Layout,
    one: IntegerCells,
    row: int,
    column: int,
    other: IntegerCells,
    other_row: int,
    other_column: int,
) -> bool:
    """Return whether the first has used no more of any ``info`` than the second."""
    for word in range(len(layout.guard)):
        guard = layout.guard[word]
        least = other[other_row, other_column + word] | guard
        if (least - one[row, column + word]) & guard != guard:
            return False
    return True


@part_of_compiled
def is_new(layout: Layout, memory: Memory, top: int) -> bool:
    """Remember the top of the stack and forget rows that it makes needless (rule 6)."""
    # Two indices per cell: numba would count a row as a new array each time.
    stack, known = memory.stack, memory.known
    done, available = stack[top, DONE], stack[top, AVAILABLE]
    key = (stack[top, RANK] << 32) | (stack[top, STATE] << 1) | stack[top, BOUND]
    slot = slot_of(memory.keys, key)
    if memory.keys[slot] == FREE:
        memory.keys[slot] = key
        memory.heads[slot] = FREE
        memory.control[KEYS] += 1
    entry = memory.heads[slot]
    before = FREE
    while entry != FREE:
        other_done, other_available = known[entry, KNOWN_DONE], known[entry, KNOWN_AVAILABLE]
        more = (done & ~other_done) == 0 and (available & ~other_available) == 0
        if more and _no_more_used(layout, known, entry, KNOWN_USED, stack, top, USED):
            return False
        following = memory.following[entry]
        less = (other_done & ~done) == 0 and (other_available & ~available) == 0
        if less and _no_more_used(layout, stack, top, USED, known, entry, KNOWN_USED):
            if before == FREE:
                memory.heads[slot] = following
            else:
                memory.following[before] = following
            memory.following[entry] = DROPPED
        else:
            before = entry
        entry = following
    node = memory.control[NODES]
    memory.control[NODES] += 1
    memory.parent[node] = stack[top, NODE]
    memory.move[node] = stack[top, MOVE]
    known[node, KNOWN_DONE] = done
    known[node, KNOWN_AVAILABLE] = available
    for word in range(len(layout.guard)):
        known[node, KNOWN_USED + word] = stack[top, USED + word]
    memory.following[node] = memory.heads[slot]
    memory.heads[slot] = node
    return True
