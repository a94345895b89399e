"""Layout of one part for the compiled search.

Importing this module imports numba.
"""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import NEVER, PartColumns
from splitbrain.checker.linearizability.kernel.demands import (
    NO_DEMANDS,
    STEPS_MAX,
    AllSteps,
    all_steps,
    by_row,
    declared_steps,
    demands_of,
    fill_table,
)
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    MANY_PRODUCTS,
    UNASKED,
    Integers,
    Layout,
)
from splitbrain.checker.linearizability.kernel.kernel_sweep import (
    TOO_WIDE,
    WIDTH_MAX,
    count_candidates,
    has_ties,
    predecessors,
    sweep,
)
from splitbrain.checker.linearizability.part.open_groups import (
    NO_PREDECESSOR,
    OpenGroup,
    OpenGroups,
    OpenOperation,
    group_open,
)
from splitbrain.checker.linearizability.part.problem import Transitions, properties
from splitbrain.checker.models.model import Call, Model

#: Entries of the transition table beyond which the search in Python is used.
TRANSITIONS_MAX: Final = 1 << 24
_STATES_FIRST: Final = 16


class DoesNotFit(Exception):
    """Signal that the part is too wide, or has too many states, for the compiled search."""


class CompiledModel:
    """Calls and transitions as arrays; shared by all parts whose calls it numbers."""

    def __init__(self, model: Model, calls: list[Call], transitions: Transitions) -> None:
        self.model = model
        self.calls = calls
        self.transitions = transitions
        pure, overwrite = properties(model, calls, transitions)
        # One more, so that there is a column where there are no calls.
        self.pure = np.array([*pure, False])
        self.overwrite = np.array([*overwrite, False])
        self.table: Any = np.full((_STATES_FIRST, len(calls) + 1), UNASKED, dtype=np.int32)

    def answer(self, state: int, call: int) -> None:
        """Enter one transition.

        Raises:
            DoesNotFit: there are too many states.
        """
        following = self.transitions.step(state, call)
        # Other users of the steps may have numbered states: each needs a row.
        self._make_room(following + 1)
        self.table[state, call] = following

    @cached_property
    def declared(self) -> AllSteps | None:
        """Return what the model tells of each call, if it does; all steps are entered then.

        Raises:
            DoesNotFit: there are too many states.
        """
        steps = declared_steps(self.transitions)
        if steps is not None:
            self._make_room(steps.states)
            fill_table(self.table[: steps.states, : len(self.calls)], self.transitions)
        return steps

    @cached_property
    def steps(self) -> AllSteps | None:
        """Return all steps, if states are bounded and few or the model tells of each call.

        Raises:
            DoesNotFit: there are too many states.
        """
        steps = self.declared
        # All steps tell more: of a refusal, for instance, that one state alone gives it.
        few = steps is None or steps.states * len(self.calls) <= STEPS_MAX
        if few and self.model.bounded_states:
            steps = all_steps(self.transitions, len(self.calls)) or steps
        if steps is not None:
            self._make_room(steps.states)
        if steps is not None and steps.table is not None:
            self.table[: steps.states, : len(self.calls)] = steps.table
        return steps

    def _make_room(self, states: int) -> None:
        rows, width = self.table.shape
        while states > rows:
            rows *= 2
        if rows > len(self.table):
            if rows * width > TRANSITIONS_MAX:
                raise DoesNotFit
            grown = np.full((rows, width), UNASKED, dtype=self.table.dtype)
            grown[: len(self.table)] = self.table
            self.table = grown


class LaidOut(NamedTuple):
    """Part ready to be searched."""

    layout: Layout
    place_by_rank: Integers
    #: Operations without answer that matter.
    groups: list[OpenGroup]
    #: Number of operations without answer that were dropped.
    open_dropped: int
    #: Greatest number of completed operations open at once.
    width: int


def lay_out(
    columns: PartColumns, model: CompiledModel, unlimited: Container[int], *, guided: bool
) -> LaidOut:
    """Return the arrays that the kernel works on; rule 7 if guided and the model's states are few.

    ``info`` operations at the unlimited places may take effect any number of times.

    Raises:
        DoesNotFit: the part is too wide.
    """
    completed = np.flatnonzero(columns.ends != NEVER)
    order = np.argsort(columns.ends[completed], kind="stable")
    place_by_rank = completed[order]
    count = len(completed)
    starts = columns.starts[completed]
    ends = columns.ends[place_by_rank]
    call = columns.calls[place_by_rank]
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    rank_by_place = np.full(len(columns.starts) + 1, -1, dtype=np.int64)
    rank_by_place[place_by_rank] = np.arange(count)
    tied = bool(has_ties(columns.starts, ends))
    before = _ranks_before(columns, rank_by_place, tied=tied)
    predecessor = before[place_by_rank]
    alone = np.zeros(count, dtype=np.bool_)
    alone[before[before >= 0]] = True
    total = count_candidates(starts, ends)
    bit, overwrites = np.zeros(count, np.int64), np.zeros(count, np.int64)
    candidates_at, fresh_at = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    candidates, fresh = np.zeros(total, np.int32), np.zeros(count, np.int32)
    absorbed = model.overwrite[call] & ~alone & (predecessor < 0)
    width = sweep(
        starts, ends, ranks, absorbed, bit, candidates_at, candidates, fresh_at, fresh, overwrites
    )
    if width == TOO_WIDE:
        raise DoesNotFit
    opened = _open_groups(columns, before, call, model, unlimited)
    steps = model.steps if guided else None
    by_rank = columns.starts[place_by_rank]
    demands = NO_DEMANDS if steps is None else demands_of(steps, by_rank, call)
    layout = Layout(
        starts=by_rank,
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
        tied=tied,
        pure=model.pure,
        overwrite=model.overwrite,
        guided=steps is not None,
        horizon=count,
        dive=False,
        **demands._asdict(),
        **_packed(opened.groups),
        **_leading(opened.groups, model.declared or steps),
    )
    return LaidOut(layout, place_by_rank, opened.groups, opened.dropped, width)


def _ranks_before(columns: PartColumns, rank_by_place: Integers, *, tied: bool) -> Integers:
    """Return by place the rank that its process completed at the moment of invocation, or -1."""
    before = np.full(len(columns.starts), -1, dtype=np.int64)
    if not tied:
        return before
    _, processes = np.unique(columns.processes, return_inverse=True)
    last = np.full(len(columns.starts), -1, dtype=np.int64)
    predecessors(columns.starts, columns.ends, processes, last, before)
    return rank_by_place[before]


def _open_groups(
    columns: PartColumns,
    before: Integers,
    known: Integers,
    model: CompiledModel,
    unlimited: Container[int],
) -> OpenGroups:
    return group_open(
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
        model.calls,
        model.model,
        unlimited,
    )


def _packed(groups: Sequence[OpenGroup]) -> dict[str, Integers]:
    """Return the groups as arrays, their counts packed into words."""
    words: list[int] = []
    shifts: list[int] = []
    guards = [0]
    shift = 0
    for group in groups:
        bits = group.mask.bit_length()
        if shift + bits + 1 > WIDTH_MAX:
            guards.append(0)
            shift = 0
        words.append(len(guards) - 1)
        shifts.append(shift)
        if group.increment:
            guards[-1] |= 1 << (shift + bits)
            shift += bits + 1
    sizes = [len(group.starts) for group in groups]
    return {
        "group_call": _integers([group.call for group in groups]),
        "group_predecessor": _integers([group.predecessor for group in groups]),
        "group_at": np.cumsum(_integers([0, *sizes])),
        "group_starts": _integers([s for group in groups for s in group.starts]),
        "group_word": _integers(words),
        "group_shift": _integers(shifts),
        "group_mask": _integers([group.mask for group in groups]),
        "group_increment": _integers(
            [
                1 << shift if group.increment else 0
                for group, shift in zip(groups, shifts, strict=True)
            ]
        ),
        "guard": _integers(guards),
    }


def _leading(groups: Sequence[OpenGroup], steps: AllSteps | None) -> dict[str, Any]:
    """Return the groups by the states that they leave, for rules 7 and 8."""
    if steps is None:
        empty = np.zeros(3, dtype=np.int64)
        names = ("needs", "group_acts_in", "leading_at", "leading")
        return {"sparing": False, **dict.fromkeys(names, empty)}
    calls = _integers([group.call for group in groups])
    product = steps.product[calls]
    rows = np.where(product == MANY_PRODUCTS, steps.states, product)
    leading_at, leading = by_row(rows, steps.states + 1)
    acts_in = steps.acts_in if groups else None
    return {
        "sparing": acts_in is not None,
        "needs": steps.allowed_by,
        "group_acts_in": _integers([]) if acts_in is None else acts_in[calls],
        "leading_at": leading_at,
        "leading": leading,
    }


def _integers(values: list[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def longer(array: Any, fill: int) -> Any:
    """Return an array twice as long, the new half filled."""
    grown = np.full((2 * len(array), *array.shape[1:]), fill, dtype=array.dtype)
    grown[: len(array)] = array
    return grown
