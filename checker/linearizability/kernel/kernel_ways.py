"""Ways out of a configuration, put on the stack; compiled, shared by search and sweep.

Rules 3 to 5 of ``linearizability.methods.search``, and rule 7 of ``demands``. Repeated
configurations are left to ``kernel_memo``.
"""

from splitbrain.checker.linearizability.kernel.jit import part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    AVAILABLE,
    BOUND,
    DEEPEST,
    DONE,
    MOVE,
    MOVE_OPEN,
    MOVE_PASS,
    NODE,
    OWN,
    PARENT,
    RANK,
    STAMP,
    STATE,
    STOPS,
    STOPS_MAX,
    USED,
    Layout,
    Memory,
)
from splitbrain.checker.linearizability.kernel.kernel_rules import overwritten, stranded, waits


@part_of_compiled
def push(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
    move: int,
) -> None:
    """Write one configuration; its counts of ``info`` are those in ``memory.used``."""
    row = memory.stack[at]
    row[RANK], row[STATE], row[DONE], row[AVAILABLE] = rank, state, done, available
    row[BOUND], row[NODE], row[MOVE] = bound, memory.control[PARENT], move
    row[OWN] = -1
    for word in range(len(layout.guard)):
        row[USED + word] = memory.used[word]


@part_of_compiled
def pass_way(
    layout: Layout, memory: Memory, at: int, rank: int, state: int, done: int, available: int
) -> int:
    """Put the way on the stack that uses the returning operation no more."""
    passed = available & ~layout.bit[rank]
    if layout.guided:
        product = layout.product[layout.call[rank]]
        if (
            product >= 0
            and product != state
            and stranded(layout, memory, rank, product, done, passed)
        ):
            return at
    push(layout, memory, at, rank, state, done, passed, 0, MOVE_PASS)
    return at + 1


@part_of_compiled
def completed_ways(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
) -> int:
    """Put the ways with completed operations on the stack (rules 4 and 7); returns its height."""
    memory.control[STAMP] += 1
    stamp = memory.control[STAMP]
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        candidate = layout.candidates[position]
        bit = layout.bit[candidate]
        if (available & bit) == 0 or (layout.tied and waits(layout, candidate, rank, done)):
            continue
        call = layout.call[candidate]
        following = memory.transitions[state, call]
        alone = layout.alone[candidate]
        if following < 0 or (following == state and not alone):
            continue
        overwrite = layout.overwrite[call]
        kind = 1 if (done & bit) != 0 and not overwrite else 0
        if memory.tried[call, kind] == stamp and not alone:
            continue
        memory.tried[call, kind] = stamp
        after = overwritten(layout, rank, done) if overwrite else done
        after |= bit
        left = available & ~bit
        leaves = layout.guided and following != state
        if leaves and stranded(layout, memory, rank, state, after, left):
            continue
        still_bound = 0 if candidate == rank else bound
        push(layout, memory, at, rank, following, after, left, still_bound, candidate)
        at += 1
    return at


@part_of_compiled
def open_ways(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
) -> int:
    """Put the ways with ``info`` operations on the stack (rules 4, 5 and 7)."""
    stamp = memory.control[STAMP]
    for group in range(len(layout.group_call)):
        word = layout.group_word[group]
        count = (memory.used[word] >> layout.group_shift[group]) & layout.group_mask[group]
        next_one = layout.group_at[group] + count
        if next_one == layout.group_at[group + 1]:
            continue
        if layout.group_starts[next_one] > layout.ends[rank]:
            continue
        call = layout.group_call[group]
        if memory.tried[call, 0] == stamp or memory.tried[call, 1] == stamp:
            continue
        before = layout.group_predecessor[group]
        if before >= rank and (done & layout.bit[before]) == 0:
            continue
        following = memory.transitions[state, call]
        if following < 0 or following == state:
            continue
        after = overwritten(layout, rank, done) if layout.overwrite[call] else done
        if layout.guided and stranded(layout, memory, rank, state, after, available):
            continue
        push(layout, memory, at, rank, following, after, available, bound, MOVE_OPEN - group)
        memory.stack[at, USED + word] += layout.group_increment[group]
        at += 1
    return at


@part_of_compiled
def _swap(memory: Memory, candidate: int, other: int) -> None:
    for column in range(memory.stack.shape[1]):
        kept = memory.stack[candidate, column]
        memory.stack[candidate, column] = memory.stack[other, column]
        memory.stack[other, column] = kept


@part_of_compiled
def arrange(layout: Layout, memory: Memory, first: int, end: int, rank: int) -> None:
    """Order ways: the first to return on top, above it any that lets the waiting one be done."""
    candidate, other = first, end - 1
    while candidate < other:
        _swap(memory, candidate, other)
        candidate += 1
        other -= 1
    goal = layout.call[rank]
    for position in range(end - 1, first - 1, -1):
        state = memory.stack[position, STATE]
        if memory.stack[position, MOVE] == rank or memory.transitions[state, goal] == state:
            for place in range(position, end - 1):
                _swap(memory, place, place + 1)
            return


@part_of_compiled
def note_stop(memory: Memory, rank: int, state: int, node: int, final: bool) -> None:
    """Remember the furthest stop."""
    control = memory.control
    if rank > control[DEEPEST]:
        control[DEEPEST] = rank
        control[STOPS] = 0
    if rank < control[DEEPEST]:
        return
    for position in range(control[STOPS]):
        if memory.stops[position, 0] == state:
            if final:
                memory.stops[position, 1] = node
            return
    if control[STOPS] < STOPS_MAX:
        memory.stops[control[STOPS], 0] = state
        memory.stops[control[STOPS], 1] = node
        control[STOPS] += 1


@part_of_compiled
def expand(layout: Layout, memory: Memory, place: int, first: int, node: int) -> int:
    """Put all ways of a configuration on the stack, from ``first`` on; return the new height.

    All its transitions are known. Its own place may be overwritten.
    """
    row = memory.stack[place]
    rank, state, done, available = row[RANK], row[STATE], row[DONE], row[AVAILABLE]
    optional = not row[BOUND] and (done & layout.bit[rank]) != 0
    must = 1 if row[BOUND] or optional else 0
    for word in range(len(layout.guard)):
        memory.used[word] = row[USED + word]
    memory.control[PARENT] = node
    at = completed_ways(layout, memory, first, rank, state, done, available, must)
    at = open_ways(layout, memory, at, rank, state, done, available, must)
    if at > first:
        arrange(layout, memory, first, at, rank)
    if optional:
        at = pass_way(layout, memory, at, rank, state, done, available)
    elif not must:
        note_stop(memory, rank, state, node, at == first)
    return at
