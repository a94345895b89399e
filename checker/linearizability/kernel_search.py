"""``checker.linearizability.search``, compiled: the same six rules on arrays.

Needs numba. Each function is written for the compiler: plain loops over arrays, nothing allocated.
A configuration is looked at without changing anything until all that it needs is known; so it can
be looked at again after the caller has answered. Must decide what the search in Python decides.

It is longer than 400 lines because numba keeps compiled code by the stamp of its own file alone:
what a function calls and every constant that it was compiled with must stand in this file, or an
old version could stay in use.
"""

from typing import Final

from checker.linearizability.jit import compiled, part_of_compiled
from checker.linearizability.kernel_layout import IntegerCells, Layout, Memory, NumberCells

# What the search answers.
FOUND: Final = 1
NONE_LEFT: Final = 2
LIMIT: Final = 3
STACK_FULL: Final = 4
MEMO_FULL: Final = 5
TABLE_FULL: Final = 6
ASK: Final = 7

# Places in ``Memory.control``.
STACKED: Final = 0
NODES: Final = 1
KEYS: Final = 2
CONFIGURATIONS: Final = 3
DEEPEST: Final = 4
STOPS: Final = 5
ASKED_STATE: Final = 6
ASKED_CALL: Final = 7
LAST: Final = 8
STAMP: Final = 9
CONTROLS: Final = 10

# Columns of ``Memory.stack``; the words of used ``info`` follow.
RANK: Final = 0
STATE: Final = 1
DONE: Final = 2
AVAILABLE: Final = 3
BOUND: Final = 4
NODE: Final = 5
MOVE: Final = 6
USED: Final = 7

# Columns of ``Memory.known``; the words of used ``info`` follow.
KNOWN_DONE: Final = 0
KNOWN_AVAILABLE: Final = 1
KNOWN_USED: Final = 2

#: Moves that are no rank: nothing, and the first ``info`` group, the next ones below.
MOVE_PASS: Final = -1
MOVE_OPEN: Final = -2
#: Transition that was not asked for yet; another negative one is illegal.
UNASKED: Final = -2
#: Key of a free slot in the hash table, and end of a list.
FREE: Final = -1
#: States noted at the furthest rank.
STOPS_MAX: Final = 16


#: Ways that one configuration may have, ``info`` apart: a word of operations, and to pass.
_WAYS_MAX: Final = 66
#: Answer of ``_satisfied`` besides a set of bits.
_UNKNOWN: Final = -1
#: Fibonacci hashing: 2**64 divided by the golden ratio, as a signed number.
_GOLDEN: Final = -7046029254386353131


@compiled
def slot_of(keys: IntegerCells, key: int) -> int:
    """Where a key stands, or would stand."""
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
def _ask(memory: Memory, state: int, call: int) -> None:
    memory.control[ASKED_STATE] = state
    memory.control[ASKED_CALL] = call


@part_of_compiled
def _waits(layout: Layout, one: int, rank: int, done: int) -> bool:
    before = layout.predecessor[one]
    return before >= rank and (done & layout.bit[before]) == 0


@part_of_compiled
def _satisfied(
    layout: Layout,
    memory: Memory,
    rank: int,
    state: int,
    done: int,
    rows: NumberCells,
    first: int,
    end: int,
) -> int:
    """Rules 1 and 2; -1 where a transition is unknown."""
    again = True
    while again:
        again = False
        for position in range(first, end):
            one = rows[position]
            bit = layout.bit[one]
            if done & bit:
                continue
            call = layout.call[one]
            following = memory.transitions[state, call]
            if following == UNASKED:
                _ask(memory, state, call)
                return _UNKNOWN
            if following != state or (layout.alone[one] and not layout.pure[call]):
                continue
            if layout.tied and _waits(layout, one, rank, done):
                continue
            done |= bit
            again = again or layout.alone[one]
    return done


@part_of_compiled
def _overwritten(layout: Layout, rank: int, done: int) -> int:
    """Rule 3."""
    after = done | layout.overwrites[rank]
    if layout.tied:
        for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
            one = layout.candidates[position]
            if layout.alone[one] or not layout.overwrite[layout.call[one]]:
                continue
            if not _waits(layout, one, rank, done):
                after |= layout.bit[one]
    return after


@part_of_compiled
def _settle(layout: Layout, memory: Memory, top: int) -> bool:
    """Take the top of the stack to the first return that needs a decision; False if asked."""
    row = memory.stack[top]
    rank, state, done, available = row[RANK], row[STATE], row[DONE], row[AVAILABLE]
    count = len(layout.ends)
    if rank < count:
        first, end = layout.candidates_at[rank], layout.candidates_at[rank + 1]
        done = _satisfied(layout, memory, rank, state, done, layout.candidates, first, end)
        if done == _UNKNOWN:
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
            one = layout.fresh[position]
            if not layout.pure[layout.call[one]]:
                available |= layout.bit[one]
        done = _satisfied(layout, memory, rank, state, done, layout.fresh, first, end)
        if done == _UNKNOWN:
            return False
        # Kept at once: what is known need not be walked through again.
        row[RANK], row[DONE], row[AVAILABLE] = rank, done, available
    row[RANK], row[DONE], row[AVAILABLE] = rank, done, available
    return True


@part_of_compiled
def _all_known(layout: Layout, memory: Memory, rank: int, state: int) -> bool:
    """Whether every transition that may be tried is known."""
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        call = layout.call[layout.candidates[position]]
        if memory.transitions[state, call] == UNASKED:
            _ask(memory, state, call)
            return False
    for group in range(len(layout.group_call)):
        call = layout.group_call[group]
        if memory.transitions[state, call] == UNASKED:
            _ask(memory, state, call)
            return False
    return True


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
    """Whether the first has used no more of any ``info`` than the second."""
    for word in range(len(layout.guard)):
        guard = layout.guard[word]
        least = other[other_row, other_column + word] | guard
        if (least - one[row, column + word]) & guard != guard:
            return False
    return True


@part_of_compiled
def _is_new(layout: Layout, memory: Memory, top: int) -> bool:
    """Rule 6: remember the top of the stack, and forget what it makes needless."""
    # Cells by two indices: a row of its own would be counted as a new array each time.
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


@part_of_compiled
def _push(
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
    row = memory.stack[at]
    row[RANK], row[STATE], row[DONE], row[AVAILABLE] = rank, state, done, available
    row[BOUND], row[NODE], row[MOVE] = bound, memory.control[NODES] - 1, move
    for word in range(len(layout.guard)):
        row[USED + word] = memory.used[word]


@part_of_compiled
def _swap(memory: Memory, one: int, other: int) -> None:
    for column in range(memory.stack.shape[1]):
        kept = memory.stack[one, column]
        memory.stack[one, column] = memory.stack[other, column]
        memory.stack[other, column] = kept


@part_of_compiled
def _completed(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
) -> int:
    """Put the ways with completed operations on the stack (rule 4); returns its new height."""
    memory.control[STAMP] += 1
    stamp = memory.control[STAMP]
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        one = layout.candidates[position]
        bit = layout.bit[one]
        if (available & bit) == 0 or (layout.tied and _waits(layout, one, rank, done)):
            continue
        call = layout.call[one]
        following = memory.transitions[state, call]
        alone = layout.alone[one]
        if following < 0 or (following == state and not alone):
            continue
        overwrite = layout.overwrite[call]
        kind = 1 if (done & bit) != 0 and not overwrite else 0
        if memory.tried[call, kind] == stamp and not alone:
            continue
        memory.tried[call, kind] = stamp
        after = _overwritten(layout, rank, done) if overwrite else done
        still_bound = 0 if one == rank else bound
        _push(layout, memory, at, rank, following, after | bit, available & ~bit, still_bound, one)
        at += 1
    return at


@part_of_compiled
def _open(
    layout: Layout,
    memory: Memory,
    at: int,
    rank: int,
    state: int,
    done: int,
    available: int,
    bound: int,
) -> int:
    """Put the ways with ``info`` operations on the stack (rules 4 and 5)."""
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
        after = _overwritten(layout, rank, done) if layout.overwrite[call] else done
        _push(layout, memory, at, rank, following, after, available, bound, MOVE_OPEN - group)
        memory.stack[at, USED + word] += layout.group_increment[group]
        at += 1
    return at


@part_of_compiled
def _arrange(layout: Layout, memory: Memory, first: int, end: int, rank: int) -> None:
    """The first to return on top, and above it what lets the one that waits be done."""
    one, other = first, end - 1
    while one < other:
        _swap(memory, one, other)
        one += 1
        other -= 1
    goal = layout.call[rank]
    for position in range(end - 1, first - 1, -1):
        state = memory.stack[position, STATE]
        if memory.stack[position, MOVE] == rank or memory.transitions[state, goal] == state:
            for place in range(position, end - 1):
                _swap(memory, place, place + 1)
            return


@part_of_compiled
def _note_stop(memory: Memory, rank: int, state: int, final: bool) -> None:
    """Remember how far it came."""
    control = memory.control
    if rank > control[DEEPEST]:
        control[DEEPEST] = rank
        control[STOPS] = 0
    if rank < control[DEEPEST]:
        return
    for position in range(control[STOPS]):
        if memory.stops[position, 0] == state:
            if final:
                memory.stops[position, 1] = control[NODES] - 1
            return
    if control[STOPS] < STOPS_MAX:
        memory.stops[control[STOPS], 0] = state
        memory.stops[control[STOPS], 1] = control[NODES] - 1
        control[STOPS] += 1


@part_of_compiled
def _lacks(layout: Layout, memory: Memory, limit: int) -> int:
    """What has to be given before the next configuration, 0 if nothing."""
    control = memory.control
    if control[CONFIGURATIONS] >= limit:
        return LIMIT
    if control[STACKED] + _WAYS_MAX + len(layout.group_call) >= len(memory.stack):
        return STACK_FULL
    if control[NODES] + 1 >= len(memory.parent):
        return MEMO_FULL
    if 2 * control[KEYS] + 2 >= len(memory.keys):
        return TABLE_FULL
    return 0


@compiled
def search(layout: Layout, memory: Memory, limit: int) -> int:
    """Go on until an order is found, none is left, or something is lacking.

    Args:
        layout: the part.
        memory: where the search stands; its stack begins with one configuration.
        limit: configurations after which to come back.
    """
    control = memory.control
    while control[STACKED] > 0:
        lack = _lacks(layout, memory, limit)
        if lack:
            return lack
        top = control[STACKED] - 1
        if not _settle(layout, memory, top):
            return ASK
        row = memory.stack[top]
        rank, state, done, available = row[RANK], row[STATE], row[DONE], row[AVAILABLE]
        bound = row[BOUND]
        if rank == len(layout.ends):
            node = control[NODES]
            memory.parent[node], memory.move[node] = row[NODE], row[MOVE]
            control[NODES] += 1
            control[LAST] = node
            return FOUND
        if not _all_known(layout, memory, rank, state):
            return ASK
        control[CONFIGURATIONS] += 1
        control[STACKED] = top
        if not _is_new(layout, memory, top):
            continue
        for word in range(len(layout.guard)):
            memory.used[word] = row[USED + word]
        optional = not bound and (done & layout.bit[rank]) != 0
        must = 1 if bound or optional else 0
        at = _completed(layout, memory, top, rank, state, done, available, must)
        at = _open(layout, memory, at, rank, state, done, available, must)
        _arrange(layout, memory, top, at, rank)
        if optional:
            passed = available & ~layout.bit[rank]
            _push(layout, memory, at, rank, state, done, passed, 0, MOVE_PASS)
            at += 1
        elif not bound:
            _note_stop(memory, rank, state, at == top)
        control[STACKED] = at
    return NONE_LEFT
