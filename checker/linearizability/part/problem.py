"""Problem of one part in the integers that the search works on.

Completed operations are numbered by their *rank* in order of return. At every moment of a search
the operations that are neither surely done nor surely still to come are those open when the next
one returns; each of them has a *slot*, the lowest that is free, so that a set of them is an integer
of as many bits as the history is wide, however long it is. That is the memo key relative to the
first open operation.

Operations that never returned (``info``) have no rank and no slot, see ``open_groups``.

Where the calls of a part lead to few states, all of them are asked for what is pure (leaves each
state as it is) and what overwrites (always leaves the same), so that a model of a few lines is
searched like a built-in one; where there are too many, the model's own declaration is used.

Sources: Lowe 2017, "Testing for linearizability" (just-in-time, memo); Wing and Gong 1993.
"""

import heapq
from collections.abc import Container, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from splitbrain.checker.findings import end_of
from splitbrain.checker.linearizability.part.open_groups import (
    NO_PREDECESSOR,
    OpenGroup,
    OpenOperation,
    group_open,
)
from splitbrain.checker.models.model import ANY, Call, Model, apart_from_truths, call_of
from splitbrain.history.records import PairedOperation

#: Transition of a call that may not happen in a state.
ILLEGAL: Final = -1


class NumberedMoves(NamedTuple):
    """``Moves`` of a call by the numbers of states, -1 for none."""

    needs: int
    leaves: int
    acts: int
    bars: int


class Transitions:
    """Steps of the model as integers, asked once for each state and call."""

    def __init__(self, model: Model, calls: Sequence[Call]) -> None:
        self._model = model
        self._calls = calls
        initial = apart_from_truths(model.initial, calls)
        self._is_apart = initial is not model.initial
        self._folding = model.folding(calls)
        self._number_by_state: dict[Hashable, int] = {initial: 0}
        #: States by number; number 0 is the initial one.
        self.states: list[Hashable] = [initial]
        #: State -> call -> state, or ILLEGAL; entries appear as they are asked for.
        self.rows: list[dict[int, int]] = [{}]

    @cached_property
    def moves(self) -> list[NumberedMoves] | None:
        """Moves of each call, by number; None if the model does not tell those of all."""
        told = [self._model.moves(call) for call in self._calls]
        if None in told:
            return None
        return [
            NumberedMoves(*(-1 if state is ANY else self.number_of(state) for state in moves))
            for moves in told
            if moves is not None
        ]

    def after(self, state: int, call: int) -> int:
        """Return the number of the state after the call, or ILLEGAL; asked for once."""
        following = self.rows[state].get(call)
        return self.step(state, call) if following is None else following

    def step(self, state: int, call: int) -> int:
        """Ask the model for the state after the call, and note its number, or ILLEGAL."""
        legal, following = self._model.step(self.states[state], self._calls[call])
        number = self.rows[state][call] = self.number_of(following) if legal else ILLEGAL
        return number

    def number_of(self, state: Hashable) -> int:
        """Return the number of a state, a new one if it was not met yet."""
        if self._is_apart:
            state = apart_from_truths(state, self._calls)
        if self._folding is not None:
            state = self._folding(state)
        number = self._number_by_state.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.rows.append({})
        return number


def number_calls(calls: Iterable[Call], model: Model) -> tuple[list[int], list[Call]]:
    """Return the number of each call, and the first of those that are alike, by number."""
    numbers: dict[Hashable, int] = {}
    first: list[Call] = []
    numbered: list[int] = []
    for call in calls:
        number = numbers.setdefault(model.alike(call), len(first))
        if number == len(first):
            first.append(call)
        numbered.append(number)
    return numbered, first


#: Greatest number of steps asked for: some milliseconds.
STEPS_MAX: Final = 4_000
#: Greatest number of states of a part.
STATES_MAX: Final = 64


def properties(
    model: Model, calls: Sequence[Call], transitions: Transitions
) -> tuple[list[bool], list[bool]]:
    """Return by call whether it is pure, and whether it overwrites (no pure one does)."""
    pure = [model.is_pure(call) for call in calls]
    overwrite = [model.is_overwrite(call) for call in calls]
    declared = model.pure_functions or model.overwriting_functions or any(pure) or any(overwrite)
    rows = None if declared else _all_steps(transitions, len(calls))
    if rows is not None:
        for call, following in enumerate(zip(*rows, strict=True)):
            pure[call] = all(after in (ILLEGAL, state) for state, after in enumerate(following))
            overwrite[call] = ILLEGAL not in following and len(set(following)) == 1
    return pure, [writes and not is_pure for writes, is_pure in zip(overwrite, pure, strict=True)]


def _all_steps(transitions: Transitions, count: int) -> list[list[int]] | None:
    """Return the step of each call by state; None if that takes too many steps."""
    rows: list[list[int]] = []
    while len(rows) < len(transitions.states):
        if (len(rows) + 1) * count > STEPS_MAX:
            return None
        row: list[int] = []
        for call in range(count):
            row.append(transitions.step(len(rows), call))
            # Growing states cost more with each step, and never close anyway.
            if len(transitions.states) > STATES_MAX:
                return None
        rows.append(row)
    return rows


class Candidate(NamedTuple):
    """Completed operation as the search meets it."""

    bit: int
    call: int
    rank: int
    #: Rank of the operation that its process completed at the very moment of this invocation: equal
    #: times do not tell their order, the process does.
    predecessor: int
    #: Whether it is the predecessor of another: then it cannot swap places with an equal one that
    #: returns at the same time, see rule 2 of the search.
    precedes_at_tie: bool
    #: Place among the part's operations.
    place: int
    pure: bool
    overwrite: bool


class Problem:
    """Part, compiled.

    Args:
        operations: ``ok`` and ``info`` operations of one part, by start, equal ones by index.
        model: judges them.
        unlimited: places of ``info`` operations that may take effect any number of times. That
            only adds orders, so a problem without any order has none with limits either, and
            the search no longer depends on which of them it has used.
    """

    def __init__(
        self,
        operations: Sequence[PairedOperation],
        model: Model,
        unlimited: Container[int] = frozenset(),
    ) -> None:
        self.operations = operations
        #: Number of each operation's call, by place, and the calls that are not alike by number.
        self.call_by_place, self.calls = number_calls(
            (call_of(operation, model) for operation in operations), model
        )
        call_by_place = self.call_by_place
        self.transitions = Transitions(model, self.calls)
        #: Whether a call is pure, and whether it overwrites every state, by number.
        self.pure, self.overwrite = properties(model, self.calls, self.transitions)
        #: Places of completed operations by rank.
        self.place_by_rank: list[int] = sorted(
            (place for place, operation in enumerate(operations) if operation.type == "ok"),
            key=lambda place: (end_of(operations[place]), operations[place].index),
        )
        #: Return times by rank.
        self.ends: list[int] = [end_of(operations[place]) for place in self.place_by_rank]
        #: Greatest number of operations open at once.
        self.width = 0
        #: Bits by rank.
        self.bits: list[int] = []
        #: By rank r: candidates for the next place while r has none and everything before it has.
        self.candidates: list[tuple[Candidate, ...]] = []
        #: By rank r: candidates that were invoked after the return before that of r.
        self.fresh: list[tuple[Candidate, ...]] = []
        #: By rank r: bits of the overwrites among its candidates that wait for no predecessor.
        self.overwrites: list[int] = []
        #: By rank r: overwrites among its candidates that may have to wait for one.
        self.waiting_overwrites: list[tuple[Candidate, ...]] = []
        rank_by_place = {place: rank for rank, place in enumerate(self.place_by_rank)}
        predecessors = {
            place: rank_by_place[before] for place, before in predecessors_of(operations).items()
        }
        self._sweep(rank_by_place, predecessors)
        grouped = group_open(
            [
                OpenOperation(
                    place, call, operations[place].start, predecessors.get(place, NO_PREDECESSOR)
                )
                for place, call in enumerate(call_by_place)
                if operations[place].type == "info"
            ],
            {call_by_place[place] for place in self.place_by_rank},
            self.calls,
            model,
            unlimited,
        )
        #: Operations without answer that matter.
        self.groups: list[OpenGroup] = grouped.groups
        #: One bit on top of each group's count, for comparing packed counts.
        self.guard = grouped.guard
        self.open_dropped = grouped.dropped

    def _sweep(self, rank_by_place: dict[int, int], predecessors: dict[int, int]) -> None:
        """Give out slots and list the candidates, passing over the returns in order."""
        operations = self.operations
        by_start = sorted(rank_by_place)
        with_successor = set(predecessors.values())
        self.bits = [0] * len(self.place_by_rank)
        free: list[int] = []
        active: dict[int, Candidate] = {}
        overwrites = 0
        waiting: dict[int, Candidate] = {}
        position = 0
        for rank, end in enumerate(self.ends):
            fresh: list[Candidate] = []
            while position < len(by_start) and operations[by_start[position]].start <= end:
                place = by_start[position]
                position += 1
                slot = heapq.heappop(free) if free else self._new_slot()
                own_rank = rank_by_place[place]
                self.bits[own_rank] = 1 << slot
                call = self.call_by_place[place]
                active[own_rank] = candidate = Candidate(
                    bit=1 << slot,
                    call=call,
                    rank=own_rank,
                    predecessor=predecessors.get(place, NO_PREDECESSOR),
                    precedes_at_tie=own_rank in with_successor,
                    place=place,
                    pure=self.pure[call],
                    overwrite=self.overwrite[call],
                )
                fresh.append(candidate)
                if candidate.overwrite and not candidate.precedes_at_tie:
                    if candidate.predecessor == NO_PREDECESSOR:
                        overwrites |= candidate.bit
                    else:
                        waiting[own_rank] = candidate
            if fresh:
                active = dict(sorted(active.items()))
            self.candidates.append(tuple(active.values()))
            self.fresh.append(tuple(fresh))
            self.overwrites.append(overwrites)
            self.waiting_overwrites.append(tuple(waiting.values()))
            bit = active.pop(rank).bit
            waiting.pop(rank, None)
            overwrites &= ~bit
            heapq.heappush(free, bit.bit_length() - 1)

    def _new_slot(self) -> int:
        self.width += 1
        return self.width - 1


def predecessors_of(operations: Sequence[PairedOperation]) -> dict[int, int]:
    """Return by place the operation that its process completed at the moment of the invocation."""
    predecessors: dict[int, int] = {}
    last_by_process: dict[int, int] = {}
    for place, operation in enumerate(operations):
        before = last_by_process.get(operation.process)
        if before is not None and operations[before].end == operation.start:
            predecessors[place] = before
        last_by_process[operation.process] = place
    return predecessors
