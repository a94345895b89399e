"""Depth-first search of ``checker.linearizability.methods.search``, compiled: its rules on arrays.

Needs numba. Each function is written for the compiler: plain loops over arrays, nothing allocated.
A configuration is not changed until all that it needs is known; so it can be looked at again after
the caller has answered. Decides as the search in Python does. The ways out of a configuration
(rules 3 to 5, 8, and 7 of ``demands``) are those of the sweep
too.
"""

from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    ASK,
    AVAILABLE,
    BOUND,
    CONFIGURATIONS,
    DEEPEST,
    DIVE_WAYS_MAX,
    DONE,
    FOUND,
    KEYS,
    LAST,
    LIMIT,
    MEMO_FULL,
    MOVE,
    MOVE_OPEN,
    MOVE_PASS,
    NODE,
    NODES,
    NONE_LEFT,
    OWED,
    OWN,
    PARENT,
    RANK,
    STACK_FULL,
    STACKED,
    STAMP,
    STATE,
    STOPS,
    STOPS_MAX,
    TABLE_FULL,
    UNKNOWN,
    USED,
    WAYS_MAX,
    Layout,
    Memory,
)
from splitbrain.checker.linearizability.kernel.kernel_rules import (
    all_known,
    can_stand,
    is_new,
    overwritten,
    satisfied,
    still_owed,
    stranded,
    waits,
    want,
    wanted_by_answers,
)


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
    owed: int,
    move: int,
) -> None:
    """Write one configuration; its counts of ``info`` are those in ``memory.used``."""
    row = memory.stack[at]
    row[RANK], row[STATE], row[DONE], row[AVAILABLE] = rank, state, done, available
    row[BOUND], row[NODE], row[MOVE] = bound, memory.control[PARENT], move
    row[OWN], row[OWED] = -1, owed
    for word in range(len(layout.guard)):
        row[USED + word] = memory.used[word]


@part_of_compiled
def pass_way(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    owed: int,
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
    push(layout, memory, at, rank, state, done, passed, 0, owed, MOVE_PASS)
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
    owed: int,
) -> int:
    """Put the ways with completed operations on the stack (rules 4, 7 and 8); return its height."""
    memory.control[STAMP] += 1
    stamp = memory.control[STAMP]
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        candidate = layout.candidates[position]
        bit = layout.bit[candidate]
        if (available & bit) == 0 or (layout.tied and waits(layout, candidate, rank, done)):
            continue
        call = layout.call[candidate]
        if owed and layout.needs[call] != state:
            continue
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
        push(layout, memory, at, rank, following, after, left, still_bound, 0, candidate)
        at += 1
    return at


@part_of_compiled
def _open_way(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
    group: int,
) -> int:
    """Put the way with the next ``info`` operation of a group on the stack, if there is one."""
    stamp = memory.control[STAMP]
    call = layout.group_call[group]
    if memory.tried[call, 0] == stamp or memory.tried[call, 1] == stamp:
        return at
    following = memory.transitions[state, call]
    if following < 0 or following == state:
        return at
    after = overwritten(layout, rank, done) if layout.overwrite[call] else done
    if layout.guided and stranded(layout, memory, rank, state, after, available):
        return at
    owed = 1 if layout.sparing else 0
    push(layout, memory, at, rank, following, after, available, bound, owed, MOVE_OPEN - group)
    memory.stack[at, USED + layout.group_word[group]] += layout.group_increment[group]
    return at + 1


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
    owed: int,
) -> int:
    """Put the ways with ``info`` operations on the stack (rules 4, 5, 7 and 8)."""
    if not layout.sparing:
        for group in range(len(layout.group_call)):
            if can_stand(layout, memory, group, rank, done):
                at = _open_way(layout, memory, at, rank, state, done, available, bound, group)
        return at
    most = at + (DIVE_WAYS_MAX if layout.dive else len(layout.group_call))
    end = wanted_by_answers(layout, memory, rank, state, done)
    place = 0
    while place < end:
        wanted = memory.wanted[place, 1]
        place += 1
        for position in range(layout.leading_at[wanted], layout.leading_at[wanted + 1]):
            group = layout.leading[position]
            if not can_stand(layout, memory, group, rank, done):
                continue
            acts_in = layout.group_acts_in[group]
            if acts_in >= 0 and acts_in != state:
                end = want(memory, acts_in, end)
            elif acts_in == state or not owed:
                at = _open_way(layout, memory, at, rank, state, done, available, bound, group)
            if at == most:
                return at
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
    owed = row[OWED]
    at = completed_ways(layout, memory, first, rank, state, done, available, must, owed)
    at = open_ways(layout, memory, at, rank, state, done, available, must, owed)
    if at > first:
        arrange(layout, memory, first, at, rank)
    if optional:
        at = pass_way(layout, memory, at, rank, state, done, available, owed)
    elif not must:
        note_stop(memory, rank, state, node, at == first)
    return at


@part_of_compiled
def _settle(layout: Layout, memory: Memory, top: int) -> bool:
    """Take the top of the stack to the first return that needs a decision; False if asking."""
    row = memory.stack[top]
    rank, state, done, available = row[RANK], row[STATE], row[DONE], row[AVAILABLE]
    count, owed = len(layout.ends), row[OWED]
    if rank < count:
        first, end = layout.candidates_at[rank], layout.candidates_at[rank + 1]
        done = satisfied(layout, memory, rank, state, done, layout.candidates, first, end)
        if done == UNKNOWN:
            return False
        owed = still_owed(layout, rank, owed, row[DONE], done)
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
        row[RANK], row[DONE], row[AVAILABLE], row[OWED] = rank, done, available, owed
    row[RANK], row[DONE], row[AVAILABLE], row[OWED] = rank, done, available, owed
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
