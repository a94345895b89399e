"""Proof of validity from the positions that a system returned (offsets, revisions, epochs).

Operations that may change the state are put in the order of their positions; the others go where
their answers fit first, within the limits of time. If every completed operation has a place that
way, the order is a proof, and one more walk through it checks that. If not, nothing is proved:
positions may be wrong, or missing, and a search has to decide. Operations with neither answer nor
position are taken to never have happened. Equal times are treated as ordered here, which is
stricter than they are. Source: issue 7, item 4; Elle's and Jepsen's use of versions.
"""

from collections.abc import Sequence

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import NEVER, returned_at
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.linearizability.part.problem import ILLEGAL, Transitions
from splitbrain.checker.models.model import Call, Model, apart_from_truths, call_of
from splitbrain.history.records import PairedOperation


def order_by_positions(operations: Sequence[PairedOperation], model: Model) -> list[int] | None:
    """Return places in an order that satisfies the model and time; None if positions lead to none.

    The operations are ``ok`` and ``info`` ones of one part, by start.
    """
    if not any(operation.position is not None for operation in operations):
        return None
    calls = [call_of(operation, model) for operation in operations]
    changing = [place for place, call in enumerate(calls) if not model.is_pure(call)]
    if any(operations[p].position is None and operations[p].type == "ok" for p in changing):
        return None
    base = [place for place in changing if operations[place].position is not None]
    base.sort(key=lambda place: (operations[place].position, operations[place].start, place))
    observing = [
        place
        for place, call in enumerate(calls)
        if model.is_pure(call) and operations[place].type == "ok"
    ]
    gaps = _Guide(operations, calls, model, base).gaps(observing)
    if gaps is None:
        return None
    by_gap = sorted(
        zip(gaps, observing, strict=True), key=lambda p: (p[0], returned_at(operations[p[1]]))
    )
    order = _merged(base, by_gap)
    return order if is_proof(operations, calls, model, order) else None


def is_proof(
    operations: Sequence[PairedOperation], calls: Sequence[Call], model: Model, order: Sequence[int]
) -> bool:
    """Return whether the order holds every completed operation once, is legal, and true to time."""
    completed = {place for place, operation in enumerate(operations) if operation.type == "ok"}
    if len(set(order)) != len(order) or not completed <= set(order):
        return False
    state = apart_from_truths(model.initial, calls)
    latest_start = -1
    for place in order:
        operation = operations[place]
        legal, state = model.step(state, calls[place])
        if not legal or (operation.type == "ok" and returned_at(operation) <= latest_start):
            return False
        latest_start = max(latest_start, operation.start)
    return True


class _Guide:
    """States that the changing operations lead through, and the gaps between them."""

    def __init__(
        self,
        operations: Sequence[PairedOperation],
        calls: Sequence[Call],
        model: Model,
        base: Sequence[int],
    ) -> None:
        numbers: dict[Call, int] = {}
        self._numbers = [numbers.setdefault(call, len(numbers)) for call in calls]
        self._operations = operations
        self._transitions = Transitions(model, list(numbers))
        #: State in each gap: before all, after the first, and so on; cut where a step is illegal.
        self._states = self._walk(base)
        starts = np.array([operations[place].start for place in base], dtype=np.int64)
        ends = np.array([returned_at(operations[place]) for place in base], dtype=np.int64)
        #: Latest invocation before each gap, and earliest return after it.
        self._latest = np.maximum.accumulate(np.concatenate(([-1], starts)))
        self._earliest = np.minimum.accumulate(np.concatenate((ends, [NEVER]))[::-1])[::-1]
        self._complete = len(self._states) == len(base) + 1
        self._fits: dict[int, Integers] = {}

    def gaps(self, observing: Sequence[int]) -> list[int] | None:
        """Return the first gap for each operation, none before that of one that precedes it."""
        if not self._complete:
            return None
        by_end = sorted(observing, key=lambda place: returned_at(self._operations[place]))
        chosen: dict[int, int] = {}
        finished = at_least = 0
        # By invocation, so that every preceding operation has been placed before.
        for place in sorted(observing, key=lambda place: self._operations[place].start):
            operation = self._operations[place]
            while returned_at(self._operations[by_end[finished]]) < operation.start:
                at_least = max(at_least, chosen[by_end[finished]])
                finished += 1
            gap = self._first_fit(place, at_least)
            if gap is None:
                return None
            chosen[place] = gap
        return [chosen[place] for place in observing]

    def _walk(self, base: Sequence[int]) -> list[int]:
        states = [0]
        for place in base:
            following = self._transitions.step(states[-1], self._numbers[place])
            if following == ILLEGAL:
                break
            states.append(following)
        return states

    def _first_fit(self, place: int, at_least: int) -> int | None:
        operation = self._operations[place]
        # An operation after the gap must not have returned before this one was invoked.
        first = int(np.searchsorted(self._earliest, operation.start, side="right"))
        fits = self._fitting(self._numbers[place])
        position = int(np.searchsorted(fits, max(first, at_least)))
        if position == len(fits):
            return None
        gap = int(fits[position])
        # An operation before the gap must have been invoked before this one returned.
        return gap if self._latest[gap] < returned_at(operation) else None

    def _fitting(self, call: int) -> Integers:
        fits = self._fits.get(call)
        if fits is None:
            legal = np.array(
                [
                    self._transitions.step(state, call) != ILLEGAL
                    for state in range(len(self._transitions.states))
                ]
            )
            fits = self._fits[call] = np.flatnonzero(legal[np.array(self._states)])
        return fits


def _merged(base: Sequence[int], by_gap: Sequence[tuple[int, int]]) -> list[int]:
    order: list[int] = []
    waiting = 0
    for gap in range(len(base) + 1):
        while waiting < len(by_gap) and by_gap[waiting][0] == gap:
            order.append(by_gap[waiting][1])
            waiting += 1
        order += base[gap : gap + 1]
    return order
