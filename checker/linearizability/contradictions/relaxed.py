"""Questions whether some operations contradict each other while all others are relaxed.

To *relax* an operation is to forget its answer and to let it take effect any number of times, or
never, while it was open (from its invocation to its return, without end if it never returned). That
keeps every valid history valid, so a contradiction among the *members*, those not relaxed, is one
of the whole history. Relaxing one more operation never makes a contradiction. Models with unbounded
states let a relaxed operation take effect once at most. Where one process invoked at the very
moment of its last return, that order binds members alone.

Works from left to right in time on the set of all configurations (state, members already placed
among the open ones), which stays small while the members are few. Operations before the first
member only widen the set of states; they are walked through once. Must never say "contradict" or
"do not" after giving up.

Sources: Wing and Gong 1993; issue 7, item 6.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from splitbrain.checker.linearizability.part.problem import ILLEGAL, Transitions, predecessors_of
from splitbrain.checker.models.model import Call, Model, call_of
from splitbrain.contracts.budget import Budget
from splitbrain.history.records import PairedOperation

#: Invocations between two checkpoints of the walk.
CHECKPOINT_INTERVAL: Final = 64
#: Configurations for all checkpoints, and states of one.
CHECKPOINT_CONFIGURATIONS_MAX: Final = 100_000
CHECKPOINT_STATES_MAX: Final = 64
#: Moments that cost as much as one configuration.
_MOMENTS_PER_CONFIGURATION: Final = 8
_CONFIGURATIONS_PER_POLL: Final = 1024

#: State number and bits of placed operations.
Configuration = tuple[int, int]


class _GaveUp(Exception):
    """End of the allowance or the budget."""


class _Moment(NamedTuple):
    time: int
    #: Invocations come before returns of the same time: they are concurrent.
    returns: bool
    place: int


class _Open(NamedTuple):
    """Open operation with a bit of its own: a member, or a relaxed one that counts."""

    place: int
    bit: int
    call: int
    pure: bool
    #: Bit of the member that its process completed at the moment of this invocation, or 0.
    predecessor: int


class _Checkpoint(NamedTuple):
    """State of the walk with everything relaxed, before a moment."""

    moment: int
    states: frozenset[int]
    relaxed: dict[int, int]


class RelaxedHistory:
    """One part up to the return of one operation; answers questions about any set of members.

    The operations are ``ok`` and ``info`` ones by start, equal ones by index; the last is
    completed.
    """

    def __init__(
        self,
        operations: Sequence[PairedOperation],
        last: PairedOperation,
        model: Model,
        budget: Budget,
    ) -> None:
        self.operations = operations
        self._model = model
        self._budget = budget
        number_by_call: dict[Call, int] = {}
        exact = [call_of(operation, model) for operation in operations]
        relaxed = [
            call_of(msgspec.structs.replace(operation, type="info", result=None), model)
            for operation in operations
        ]
        self._exact = [number_by_call.setdefault(call, len(number_by_call)) for call in exact]
        self._relaxed = [number_by_call.setdefault(call, len(number_by_call)) for call in relaxed]
        self._calls = list(number_by_call)
        self._pure = [model.is_pure(call) for call in self._calls]
        self.transitions = Transitions(model, self._calls)
        self._moments = _moments(operations, last)
        self._start_moment = {
            moment.place: position
            for position, moment in enumerate(self._moments)
            if not moment.returns
        }
        self._predecessor = predecessors_of(operations)
        #: Configurations so far, moments included at their rate.
        self.configurations = 0
        self._allowance = 0
        self._checkpoints: list[_Checkpoint] | None = None

    def contradict(self, members: Collection[int], configurations_max: int) -> bool | None:
        """Return whether operations at these places contradict each other; None if it gave up."""
        if self._budget.exhausted() is not None:
            return None
        beginning = self._checkpoint(members)
        self._allowance = self.configurations + configurations_max
        try:
            return _Walk(self, members, beginning).run()
        except _GaveUp:
            return None

    def _checkpoint(self, members: Collection[int]) -> _Checkpoint:
        if self._checkpoints is None:
            self._checkpoints = [_Checkpoint(0, frozenset((0,)), {})]
            if self._model.bounded_states:
                self._allowance = self.configurations + CHECKPOINT_CONFIGURATIONS_MAX
                # With too many states, the checkpoints before them remain.
                with suppress(_GaveUp):
                    _Walk(self, (), self._checkpoints[0]).run(self._checkpoints)
        # A member invoked after the end of the walk is never met.
        starts = (self._start_moment.get(place, len(self._moments)) for place in members)
        first = min(starts, default=0)
        position = bisect_right(self._checkpoints, first, key=lambda point: point.moment) - 1
        return self._checkpoints[position]

    def droppable(self, members: Iterable[int]) -> frozenset[int]:
        """Return relaxed calls that no member can have met."""
        known = {
            self._calls[self._exact[place]]
            for place in members
            if self.operations[place].type == "ok"
        }
        dropped = self._model.droppable({self._calls[number] for number in self._relaxed}, known)
        return frozenset(number for number in set(self._relaxed) if self._calls[number] in dropped)

    def opened(self, place: int, bit: int, bits: dict[int, int], *, member: bool) -> _Open:
        """Give an operation a bit of its own; ``bits`` are those of the members open now."""
        call = self._exact[place] if member else self._relaxed[place]
        predecessor = self._predecessor.get(place) if member else None
        # A relaxed one in between keeps the order of its process.
        while predecessor is not None and predecessor not in bits:
            predecessor = self._predecessor.get(predecessor)
        waits_for = 0 if predecessor is None else bits[predecessor]
        return _Open(place, bit, call, member and self._pure[call], waits_for)

    def relaxed_call(self, place: int) -> int:
        """Return the number of the call with its answer forgotten."""
        return self._relaxed[place]

    def moments(self, beginning: int) -> Iterable[tuple[int, _Moment]]:
        """Yield moments from a position on, each spent from the allowance."""
        for position in range(beginning, len(self._moments)):
            if position % _MOMENTS_PER_CONFIGURATION == 0:
                self.spend()
            yield position, self._moments[position]

    def spend(self) -> None:
        """Count one configuration.

        Raises:
            _GaveUp: the allowance or the budget ended.
        """
        self.configurations += 1
        if self.configurations > self._allowance or (
            self.configurations % _CONFIGURATIONS_PER_POLL == 0
            and self._budget.exhausted() is not None
        ):
            raise _GaveUp

    @property
    def repeatable(self) -> bool:
        """Whether a relaxed operation may take effect any number of times."""
        return self._model.bounded_states


class _Walk:
    """Walk through the moments; its configurations hold everything reachable by now."""

    def __init__(
        self, history: RelaxedHistory, members: Collection[int], beginning: _Checkpoint
    ) -> None:
        self._history = history
        self._members = frozenset(members)
        self._beginning = beginning.moment
        self._configurations: set[Configuration] = {(state, 0) for state in beginning.states}
        #: Open operations with bits, by place.
        self._open: dict[int, _Open] = {}
        self._dropped = history.droppable(self._members) if members else frozenset[int]()
        #: Number of open operations by relaxed call, where they may be repeated.
        self._relaxed = Counter(
            {call: n for call, n in beginning.relaxed.items() if call not in self._dropped}
        )

    def run(self, checkpoints: list[_Checkpoint] | None = None) -> bool:
        """Return whether no configuration is left before the end; append checkpoints meanwhile."""
        invocations = 0
        for position, moment in self._history.moments(self._beginning):
            if moment.returns:
                self._return(moment.place)
                if not self._configurations:
                    return True
                continue
            invocations += 1
            if checkpoints is not None and invocations % CHECKPOINT_INTERVAL == 0:
                states = frozenset(state for state, _ in self._configurations)
                if len(states) > CHECKPOINT_STATES_MAX:
                    raise _GaveUp
                checkpoints.append(_Checkpoint(position, states, dict(self._relaxed)))
            self._invoke(moment.place)
        return False

    def _invoke(self, place: int) -> None:
        member = place in self._members
        if not member:
            call = self._history.relaxed_call(place)
            if call in self._dropped:
                return
            if self._history.repeatable:
                self._relaxed[call] += 1
                if self._relaxed[call] == 1:
                    self._add_reachable()
                return
        bits = {o.place: o.bit for o in self._open.values() if o.place in self._members}
        taken = sum(operation.bit for operation in self._open.values())
        free = ~taken & (taken + 1)
        self._open[place] = self._history.opened(place, free, bits, member=member)
        self._add_reachable()

    def _return(self, place: int) -> None:
        operation = self._open.pop(place, None)
        if operation is None:
            call = self._history.relaxed_call(place)
            if call not in self._dropped:
                self._relaxed[call] -= 1
                if not self._relaxed[call]:
                    del self._relaxed[call]
            return
        bit = operation.bit
        needed = place in self._members
        self._configurations = {
            (state, placed & ~bit)
            for state, placed in self._configurations
            if placed & bit or not needed
        }
        # Release operations that waited for this one.
        for waiting in self._open.values():
            if waiting.predecessor == bit:
                self._open[waiting.place] = waiting._replace(predecessor=0)

    def _add_reachable(self) -> None:
        history, after = self._history, self._history.transitions.after
        waiting = list(self._configurations)
        reached: set[Configuration] = set()
        pure = [operation for operation in self._open.values() if operation.pure]
        others = [operation for operation in self._open.values() if not operation.pure]
        while waiting:
            state, placed = waiting.pop()
            placed = self._observe(state, placed, pure)
            if (state, placed) in reached:
                continue
            reached.add((state, placed))
            history.spend()
            for _, bit, call, _, predecessor in others:
                if placed & bit or predecessor & ~placed:
                    continue
                following = after(state, call)
                if following != ILLEGAL:
                    waiting.append((following, placed | bit))
            for call in self._relaxed:
                following = after(state, call)
                if following not in (ILLEGAL, state):
                    waiting.append((following, placed))
        self._configurations = reached

    def _observe(self, state: int, placed: int, pure: Sequence[_Open]) -> int:
        """Place every pure member that may happen now: it changes nothing for the others."""
        again = True
        while again:
            again = False
            for _, bit, call, _, predecessor in pure:
                if placed & bit or predecessor & ~placed:
                    continue
                if self._history.transitions.after(state, call) != ILLEGAL:
                    placed |= bit
                    again = True
        return placed


def _moments(operations: Sequence[PairedOperation], last: PairedOperation) -> list[_Moment]:
    """Return invocations and returns in order, up to the return of the last one."""
    assert last.end is not None, f"operation {last.index} never returned"
    end = last.end
    moments = [
        _Moment(operation.start, False, place)
        for place, operation in enumerate(operations)
        if operation.start <= end
    ]
    moments += [
        _Moment(operation.end, True, place)
        for place, operation in enumerate(operations)
        if operation.type == "ok"
        and operation.end is not None
        and (operation.end, operation.index) <= (end, last.index)
    ]
    return sorted(moments, key=lambda m: (m.time, m.returns, operations[m.place].index))
