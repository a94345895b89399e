"""Rules about one configuration, compiled: 1 to 3 and 6 to 8 of the search.

The rules of ``linearizability.methods.search`` on arrays, and that of ``demands``; the depth-first
search and the sweep share them. Plain loops, nothing allocated. Nothing is changed until all needed
transitions are known, so that a configuration can be looked at again after the caller has answered.
"""

from typing import Final

from splitbrain.checker.linearizability.kernel.jit import compiled, part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    ASKED_CALL,
    ASKED_STATE,
    AVAILABLE,
    BOUND,
    DONE,
    DROPPED,
    FREE,
    KEYS,
    KNOWN_AVAILABLE,
    KNOWN_DONE,
    KNOWN_USED,
    MANY_PRODUCTS,
    MOVE,
    NODE,
    NODES,
    RANK,
    STAMP,
    STATE,
    STRANDED,
    UNASKED,
    UNKNOWN,
    USED,
    IntegerCells,
    Layout,
    Memory,
    NumberCells,
)

#: Fibonacci hashing: 2**64 divided by the golden ratio, as a signed number.
_GOLDEN: Final = -7046029254386353131


@part_of_compiled
def ask(memory: Memory, state: int, call: int) -> None:
    """Ask the caller for a transition."""
    memory.control[ASKED_STATE] = state
    memory.control[ASKED_CALL] = call


@part_of_compiled
def waits(layout: Layout, candidate: int, rank: int, done: int) -> bool:
    """Return whether the operation's predecessor is not done."""
    before = layout.predecessor[candidate]
    return before >= rank and (done & layout.bit[before]) == 0


@part_of_compiled
def satisfied(
    layout: Layout,
    memory: Memory,
    rank: int,
    state: int,
    done: int,
    rows: NumberCells,
    first: int,
    end: int,
) -> int:
    """Apply rules 1 and 2; return -1 where a transition is unknown."""
    again = True
    while again:
        again = False
        for position in range(first, end):
            candidate = rows[position]
            bit = layout.bit[candidate]
            if done & bit:
                continue
            call = layout.call[candidate]
            following = memory.transitions[state, call]
            if following == UNASKED:
                ask(memory, state, call)
                return UNKNOWN
            if following != state or (layout.alone[candidate] and not layout.pure[call]):
                continue
            if layout.tied and waits(layout, candidate, rank, done):
                continue
            done |= bit
            again = again or layout.alone[candidate]
    return done


@part_of_compiled
def overwritten(layout: Layout, rank: int, done: int) -> int:
    """Apply rule 3."""
    after = done | layout.overwrites[rank]
    if layout.tied:
        for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
            candidate = layout.candidates[position]
            if layout.alone[candidate] or not layout.overwrite[layout.call[candidate]]:
                continue
            if not waits(layout, candidate, rank, done):
                after |= layout.bit[candidate]
    return after


@part_of_compiled
def all_known(layout: Layout, memory: Memory, rank: int, state: int) -> bool:
    """Return whether every transition that may be tried is known."""
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        call = layout.call[layout.candidates[position]]
        if memory.transitions[state, call] == UNASKED:
            ask(memory, state, call)
            return False
    for group in range(0 if layout.sparing else len(layout.group_call)):
        call = layout.group_call[group]
        if memory.transitions[state, call] == UNASKED:
            ask(memory, state, call)
            return False
    return True


@part_of_compiled
def _first_above(cells: IntegerCells, first: int, end: int, bound: int) -> int:
    """Return the position of the first cell above a bound; cells ascend."""
    while first < end:
        middle = (first + end) >> 1
        if cells[middle] > bound:
            end = middle
        else:
            first = middle + 1
    return first


@part_of_compiled
def _next_demand(layout: Layout, rank: int, state: int, done: int) -> int:
    """Return the first rank not done that this state alone allows, or -1."""
    end = layout.demand_at[state + 1]
    position = _first_above(layout.demands, layout.demand_at[state], end, rank - 1)
    while position < end:
        candidate = layout.demands[position]
        if candidate >= layout.horizon:
            return -1
        if layout.starts[candidate] > layout.ends[rank] or (done & layout.bit[candidate]) == 0:
            return candidate
        position += 1
    return -1


@part_of_compiled
def _invoked_between(layout: Layout, row: int, after: int, until: int) -> bool:
    """Return whether a completed operation that leads to a state is invoked in that time."""
    end = layout.producer_at[row + 1]
    position = _first_above(layout.producers, layout.producer_at[row], end, after)
    return position < end and layout.producers[position] <= until


@part_of_compiled
def _open_left(layout: Layout, memory: Memory, row: int, until: int) -> bool:
    """Return whether an ``info`` operation that leads to a state is left, invoked by then."""
    for position in range(layout.leading_at[row], layout.leading_at[row + 1]):
        if next_open(layout, memory, layout.leading[position], until):
            return True
    return False


@part_of_compiled
def next_open(layout: Layout, memory: Memory, group: int, until: int) -> bool:
    """Return whether an ``info`` operation of a group is left, invoked by then."""
    used = memory.used[layout.group_word[group]] >> layout.group_shift[group]
    place = layout.group_at[group] + (used & layout.group_mask[group])
    return place < layout.group_at[group + 1] and layout.group_starts[place] <= until


@part_of_compiled
def stranded(
    layout: Layout, memory: Memory, rank: int, state: int, done: int, available: int
) -> bool:
    """Return whether something needs this state that nothing can lead to again in time (rule 7)."""
    demand = _next_demand(layout, rank, state, done)
    if demand < 0:
        return False
    deadline = layout.ends[demand]
    now = layout.ends[rank]
    many = len(layout.producer_at) - 2
    if _invoked_between(layout, state, now, deadline):
        return False
    if _invoked_between(layout, many, now, deadline):
        return False
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        candidate = layout.candidates[position]
        if (available & layout.bit[candidate]) != 0:
            product = layout.product[layout.call[candidate]]
            if product in (state, MANY_PRODUCTS):
                return False
    if _open_left(layout, memory, state, deadline) or _open_left(layout, memory, many, deadline):
        return False
    memory.control[STRANDED] = max(memory.control[STRANDED], demand)
    return True


@part_of_compiled
def can_stand(layout: Layout, memory: Memory, group: int, rank: int, done: int) -> bool:
    """Return whether an ``info`` operation of a group is left that can stand here."""
    before = layout.group_predecessor[group]
    if before >= rank and (done & layout.bit[before]) == 0:
        return False
    return next_open(layout, memory, group, layout.ends[rank])


# --- rule 8: which states are wanted -------------------------------------------------------------


@part_of_compiled
def want(memory: Memory, state: int, end: int) -> int:
    """Note that a state is wanted; return how many are."""
    stamp = memory.control[STAMP]
    if memory.wanted[state, 0] == stamp:
        return end
    memory.wanted[state, 0] = stamp
    memory.wanted[end, 1] = state
    return end + 1


@part_of_compiled
def wanted_by_answers(layout: Layout, memory: Memory, rank: int, state: int, done: int) -> int:
    """Note the states that allow an answer which this one does not; return how many there are."""
    end = 0
    for position in range(layout.candidates_at[rank], layout.candidates_at[rank + 1]):
        candidate = layout.candidates[position]
        call = layout.call[candidate]
        if (done & layout.bit[candidate]) != 0 or memory.transitions[state, call] >= 0:
            continue
        if layout.needs[call] >= 0:
            end = want(memory, layout.needs[call], end)
            continue
        for other in range(len(layout.leading_at) - 2):
            if other != state:
                end = want(memory, other, end)
    return end


@part_of_compiled
def still_owed(layout: Layout, rank: int, owed: int, before: int, done: int) -> int:
    """Return whether no answer has needed the last ``info`` operation, now that more is done."""
    return 0 if done & ~before & ~layout.overwrites[rank] else owed


# --- memory: a hash table of sets, of which only the best are kept -------------------------------


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
    first: IntegerCells,
    row: int,
    column: int,
    second: IntegerCells,
    second_row: int,
    second_column: int,
) -> bool:
    """Return whether the first has used no more of any ``info`` than the second; a dive forgets."""
    for word in range(0 if layout.dive else len(layout.guard)):
        guard = layout.guard[word]
        least = second[second_row, second_column + word] | guard
        if (least - first[row, column + word]) & guard != guard:
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
