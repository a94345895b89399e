"""Drives the compiled search: lays out a part, gives memory and steps, polls the budget.

Importing this module imports numba. The verdict is that of ``checker.linearizability.search``;
``Outcome.decisions`` are the same kind of decisions.
"""

from collections.abc import Container
from typing import Any, Final

import numpy as np

from checker.linearizability import kernel_search as kernel
from checker.linearizability.columns import NEVER, PartColumns
from checker.linearizability.derived import properties
from checker.linearizability.kernel_layout import Integers, Layout, Memory
from checker.linearizability.kernel_search import rehash, search
from checker.linearizability.kernel_sweep import (
    TOO_WIDE,
    WIDTH_MAX,
    count_candidates,
    has_ties,
    predecessors,
    sweep,
)
from checker.linearizability.open_groups import (
    NO_PREDECESSOR,
    OpenGroup,
    OpenOperation,
    group_open,
)
from checker.linearizability.outcome import PASS, Decision, Ending, Outcome
from checker.linearizability.transitions import Transitions
from checker.models.model import Call, Model
from checker.verdict import Verdict
from contracts.budget import Budget

#: Configurations between two looks at the budget: some milliseconds.
POLL_INTERVAL: Final = 1 << 14
#: Entries of the table of transitions beyond which the search in Python is asked instead.
TRANSITIONS_MAX: Final = 1 << 24
_STACK_FIRST: Final = 1 << 10
_NODES_FIRST: Final = 1 << 12
_TABLE_FIRST: Final = 1 << 12
_STATES_FIRST: Final = 16


class DoesNotFit(Exception):
    """The part is too wide, or has too many states, for the compiled search."""


class CompiledModel:
    """Calls and transitions as arrays; shared by all parts whose calls it numbers.

    Args:
        model: asked for what is not known yet.
        calls: distinct calls by number.
        transitions: the model's steps by state and call.
    """

    def __init__(self, model: Model, calls: list[Call], transitions: Transitions) -> None:
        self.model = model
        self.calls = calls
        self.transitions = transitions
        pure, overwrite = properties(model, calls, transitions)
        # One more, so that there is a column where there are no calls.
        self.pure = np.array([*pure, False])
        self.overwrite = np.array([*overwrite, False])
        self.table: Any = np.full((_STATES_FIRST, len(calls) + 1), kernel.UNASKED, dtype=np.int32)

    def answer(self, state: int, call: int) -> None:
        """Enter one transition.

        Raises:
            DoesNotFit: there are too many states.
        """
        following = self.transitions.step(state, call)
        # States may have been numbered by others than this search: every one needs a row.
        while following >= len(self.table):
            if 2 * self.table.size > TRANSITIONS_MAX:
                raise DoesNotFit
            self.table = _longer(self.table, kernel.UNASKED)
        self.table[state, call] = following


class CompiledSearch:
    """One search of one part; ``run`` it once.

    Args:
        columns: the part.
        model: its calls and transitions.
        budget: asked every ``POLL_INTERVAL`` configurations.
        configurations_max: give up after as many, None for no limit.
        unlimited: places of ``info`` operations that may take effect any number of times.

    Raises:
        DoesNotFit: the part is too wide, or (from ``run``) has too many states.
    """

    def __init__(
        self,
        columns: PartColumns,
        model: CompiledModel,
        budget: Budget,
        configurations_max: int | None = None,
        unlimited: Container[int] = frozenset(),
    ) -> None:
        #: Its calls and transitions.
        self.model = model
        self._budget = budget
        self._configurations_max = configurations_max
        completed = np.flatnonzero(columns.ends != NEVER)
        order = np.argsort(columns.ends[completed], kind="stable")
        self._place_by_rank = completed[order]
        self._groups: list[OpenGroup] = []
        #: Greatest number of completed operations open at once.
        self.width = 0
        self.open_dropped = 0
        self._layout: Layout = self._lay_out(columns, completed, order, unlimited)
        self._memory: Memory = self._new_memory()

    def run(self) -> Outcome:
        """Search until an order is found, none is left, or the budget ends."""
        control = self._memory.control
        while True:
            answer = search(
                self._layout, self._memory, int(control[kernel.CONFIGURATIONS]) + self._ration()
            )
            if answer == kernel.FOUND:
                return self._outcome(Verdict.VALID, last=int(control[kernel.LAST]))
            if answer == kernel.NONE_LEFT:
                return self._outcome(Verdict.INVALID)
            if answer == kernel.LIMIT:
                reason = self._stop_reason()
                if reason is not None:
                    return self._outcome(Verdict.UNKNOWN, reason=reason)
            elif answer == kernel.ASK:
                asked = control[kernel.ASKED_STATE], control[kernel.ASKED_CALL]
                self.model.answer(int(asked[0]), int(asked[1]))
                self._memory = self._memory._replace(transitions=self.model.table)
            else:
                self._grow(answer)

    def _lay_out(
        self,
        columns: PartColumns,
        completed: Integers,
        order: Integers,
        unlimited: Container[int],
    ) -> Layout:
        count = len(completed)
        starts = columns.starts[completed]
        ends = columns.ends[self._place_by_rank]
        call = columns.calls[self._place_by_rank]
        ranks = np.empty(count, dtype=np.int64)
        ranks[order] = np.arange(count)
        rank_by_place = np.full(len(columns.starts) + 1, -1, dtype=np.int64)
        rank_by_place[self._place_by_rank] = np.arange(count)
        before = np.full(len(columns.starts), -1, dtype=np.int64)
        tied = has_ties(columns.starts, ends)
        if tied:
            _, processes = np.unique(columns.processes, return_inverse=True)
            last = np.full(len(columns.starts), -1, dtype=np.int64)
            predecessors(columns.starts, columns.ends, processes, last, before)
            before = rank_by_place[before]
        predecessor = before[self._place_by_rank]
        alone = np.zeros(count, dtype=np.bool_)
        alone[before[before >= 0]] = True
        total = count_candidates(starts, ends)
        bit, overwrites = np.zeros(count, np.int64), np.zeros(count, np.int64)
        candidates_at, fresh_at = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        candidates, fresh = np.zeros(total, np.int32), np.zeros(count, np.int32)
        absorbed = self.model.overwrite[call] & ~alone & (predecessor < 0)
        self.width = sweep(
            starts,
            ends,
            ranks,
            absorbed,
            bit,
            candidates_at,
            candidates,
            fresh_at,
            fresh,
            overwrites,
        )
        if self.width == TOO_WIDE:
            raise DoesNotFit
        return Layout(
            ends=ends,
            call=call,
            bit=bit,
            predecessor=predecessor,
            alone=alone,
            candidates_at=candidates_at,
            candidates=candidates,
            fresh_at=fresh_at,
            fresh=fresh,
            overwrites=overwrites,
            tied=bool(tied),
            pure=self.model.pure,
            overwrite=self.model.overwrite,
            **self._group(columns, before, call, unlimited),
        )

    def _group(
        self,
        columns: PartColumns,
        before: Integers,
        known: Integers,
        unlimited: Container[int],
    ) -> dict[str, Integers]:
        """The groups of ``info`` operations, their counts packed into words."""
        grouped = group_open(
            [
                OpenOperation(
                    int(place),
                    int(columns.calls[place]),
                    int(columns.starts[place]),
                    int(before[place]) if before[place] >= 0 else NO_PREDECESSOR,
                )
                for place in np.flatnonzero(columns.ends == NEVER)
            ],
            np.unique(known).tolist() if len(known) < len(columns.starts) else (),
            self.model.calls,
            self.model.model,
            unlimited,
        )
        self._groups, self.open_dropped = grouped.groups, grouped.dropped
        words: list[int] = []
        shifts: list[int] = []
        guards = [0]
        shift = 0
        for group in self._groups:
            bits = group.mask.bit_length()
            if shift + bits + 1 > WIDTH_MAX:
                guards.append(0)
                shift = 0
            words.append(len(guards) - 1)
            shifts.append(shift)
            if group.increment:
                guards[-1] |= 1 << (shift + bits)
                shift += bits + 1
        sizes = [len(group.starts) for group in self._groups]
        return {
            "group_call": _integers([group.call for group in self._groups]),
            "group_predecessor": _integers([group.predecessor for group in self._groups]),
            "group_at": np.cumsum(_integers([0, *sizes])),
            "group_starts": _integers([s for group in self._groups for s in group.starts]),
            "group_word": _integers(words),
            "group_shift": _integers(shifts),
            "group_mask": _integers([group.mask for group in self._groups]),
            "group_increment": _integers(
                [
                    1 << shift if group.increment else 0
                    for group, shift in zip(self._groups, shifts, strict=True)
                ]
            ),
            "guard": _integers(guards),
        }

    def _new_memory(self) -> Memory:
        layout = self._layout
        words = len(layout.guard)
        memory = Memory(
            transitions=self.model.table,
            stack=np.zeros((_STACK_FIRST, kernel.USED + words), dtype=np.int64),
            parent=np.zeros(_NODES_FIRST, dtype=np.int32),
            move=np.zeros(_NODES_FIRST, dtype=np.int32),
            known=np.zeros((_NODES_FIRST, kernel.KNOWN_USED + words), dtype=np.int64),
            following=np.zeros(_NODES_FIRST, dtype=np.int32),
            keys=np.full(_TABLE_FIRST, kernel.FREE, dtype=np.int64),
            heads=np.full(_TABLE_FIRST, kernel.FREE, dtype=np.int32),
            used=np.zeros(words, dtype=np.int64),
            tried=np.zeros((len(layout.pure), 2), dtype=np.int64),
            stops=np.zeros((kernel.STOPS_MAX, 2), dtype=np.int64),
            control=np.zeros(kernel.CONTROLS, dtype=np.int64),
        )
        memory.control[kernel.STACKED] = 1
        memory.control[kernel.DEEPEST] = -1
        memory.stack[0, kernel.NODE] = -1
        memory.stack[0, kernel.MOVE] = kernel.MOVE_PASS
        if len(layout.ends):
            for one in layout.fresh[: layout.fresh_at[1]]:
                if not layout.pure[layout.call[one]]:
                    memory.stack[0, kernel.AVAILABLE] |= layout.bit[one]
        return memory

    def _grow(self, lack: int) -> None:
        """Twice as much of what is full."""
        memory = self._memory
        if lack == kernel.STACK_FULL:
            more = WIDTH_MAX + len(self._groups) + 3
            rows = max(2 * len(memory.stack), len(memory.stack) + more)
            stack = np.zeros((rows, memory.stack.shape[1]), dtype=np.int64)
            stack[: len(memory.stack)] = memory.stack
            self._memory = memory._replace(stack=stack)
        elif lack == kernel.MEMO_FULL:
            self._memory = memory._replace(
                parent=_longer(memory.parent, 0),
                move=_longer(memory.move, 0),
                known=_longer(memory.known, 0),
                following=_longer(memory.following, 0),
            )
        else:
            keys = np.full(4 * len(memory.keys), kernel.FREE, dtype=np.int64)
            heads = np.full(len(keys), kernel.FREE, dtype=np.int32)
            rehash(memory.keys, memory.heads, keys, heads)
            self._memory = memory._replace(keys=keys, heads=heads)

    def _ration(self) -> int:
        """Configurations until the next look at the budget."""
        if self._configurations_max is None:
            return POLL_INTERVAL
        left = self._configurations_max - int(self._memory.control[kernel.CONFIGURATIONS])
        return max(0, min(POLL_INTERVAL, left))

    def _stop_reason(self) -> str | None:
        configurations = int(self._memory.control[kernel.CONFIGURATIONS])
        if self._configurations_max is not None and configurations >= self._configurations_max:
            return f"no answer after {self._configurations_max} configurations"
        return self._budget.exhausted()

    def _outcome(
        self, verdict: Verdict, *, reason: str | None = None, last: int | None = None
    ) -> Outcome:
        control, stops = self._memory.control, self._memory.stops
        ends: list[Ending] = []
        if verdict is not Verdict.VALID:
            ends = [
                Ending(int(control[kernel.DEEPEST]), int(state), self._decisions(int(node)))
                for state, node in stops[: control[kernel.STOPS]]
            ]
        return Outcome(
            verdict=verdict,
            reason=reason,
            configurations=int(control[kernel.CONFIGURATIONS]),
            remembered=int(control[kernel.NODES]),
            decisions=None if last is None else self._decisions(last),
            dead_ends=tuple(ends),
        )

    def _decisions(self, node: int) -> tuple[Decision, ...]:
        """What was decided on the way to a node, the first decision first."""
        moves: list[int] = []
        while node >= 0:
            moves.append(int(self._memory.move[node]))
            node = int(self._memory.parent[node])
        # The first node is the beginning; nothing was decided there.
        moves.pop()
        used = [0] * len(self._groups)
        decisions: list[Decision] = []
        for move in reversed(moves):
            if move == kernel.MOVE_PASS:
                decisions.append(PASS)
            elif move >= 0:
                decisions.append(int(self._place_by_rank[move]))
            else:
                number = kernel.MOVE_OPEN - move
                group = self._groups[number]
                # One without limit is shown as its first, however often it took effect.
                decisions.append(group.places[used[number]])
                used[number] += 1 if group.increment else 0
        return tuple(decisions)


def _integers(values: list[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _longer(array: Any, fill: int) -> Any:
    longer = np.full((2 * len(array), *array.shape[1:]), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
