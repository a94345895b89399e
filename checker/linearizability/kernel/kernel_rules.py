"""Rules about one configuration: 1 to 3 of the search and 7, compiled.

The rules of ``linearizability.methods.search`` on arrays, and that of ``demands``; the depth-first
search and the sweep share them. Plain loops, nothing allocated. Nothing is changed until all needed
transitions are known, so that a configuration can be looked at again after the caller has answered.
"""

from splitbrain.checker.linearizability.kernel.jit import part_of_compiled
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    ASKED_CALL,
    ASKED_STATE,
    MANY_PRODUCTS,
    STRANDED,
    UNASKED,
    UNKNOWN,
    IntegerCells,
    Layout,
    Memory,
    NumberCells,
)


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
    for group in range(len(layout.group_call)):
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
    for group in range(len(layout.group_call)):
        product = layout.product[layout.group_call[group]]
        if product not in (state, MANY_PRODUCTS):
            continue
        count = (
            memory.used[layout.group_word[group]] >> layout.group_shift[group]
        ) & layout.group_mask[group]
        next_one = layout.group_at[group] + count
        if next_one != layout.group_at[group + 1] and layout.group_starts[next_one] <= deadline:
            return False
    memory.control[STRANDED] = max(memory.control[STRANDED], demand)
    return True
