"""Search for an answer that nothing invoked by then can lead to, in any order and however often.

If every call invoked by the return of an operation could have happened at any time and any number
of times, and still no state would allow its answer, there is no order. This decides some histories
that are too wide, or have too many open operations, for a search. Finding nothing proves nothing.
"""

import heapq
from typing import Final

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import NEVER, PartColumns
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.linearizability.part.problem import ILLEGAL, Transitions
from splitbrain.contracts.budget import Budget

#: States and steps beyond which it gives up.
STATES_MAX: Final = 2_000
STEPS_MAX: Final = 500_000


def unreachable(
    columns: PartColumns, transitions: Transitions, calls_count: int, budget: Budget
) -> int | None:
    """Return the place of the first operation to return with an unreachable answer, or None."""
    first_start = _least(columns.starts, columns.calls, calls_count)
    first_end = _least(columns.ends, columns.calls, calls_count)
    reached = _Reached(transitions)
    moments = [(int(at), 0, call) for call, at in enumerate(first_start) if at != NEVER]
    moments += [(int(at), 1, call) for call, at in enumerate(first_end) if at != NEVER]
    heapq.heapify(moments)
    while moments:
        if budget.exhausted() is not None:
            return None
        at, returns, call = heapq.heappop(moments)
        if returns and not reached.allows(call):
            return int(np.flatnonzero((columns.calls == call) & (columns.ends == at))[0])
        if not returns and not reached.add(call):
            return None
    return None


class _Reached:
    """States that some sequence of the calls so far leads to."""

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._states: list[int] = [0]
        self._known = {0}
        self._calls: list[int] = []
        self._steps = 0

    def add(self, call: int) -> bool:
        """Let a call happen from now on; False if there are too many states."""
        self._calls.append(call)
        waiting: list[tuple[int, tuple[int, ...]]] = [(state, (call,)) for state in self._states]
        while waiting:
            state, calls = waiting.pop()
            for next_call in calls:
                self._steps += 1
                following = self._transitions.after(state, next_call)
                if following != ILLEGAL and following not in self._known:
                    self._known.add(following)
                    self._states.append(following)
                    waiting.append((following, tuple(self._calls)))
            if len(self._states) > STATES_MAX or self._steps > STEPS_MAX:
                return False
        return True

    def allows(self, call: int) -> bool:
        return any(self._transitions.after(state, call) != ILLEGAL for state in self._states)


def _least(times: Integers, calls: Integers, count: int) -> Integers:
    least = np.full(count, NEVER, dtype=np.int64)
    np.minimum.at(least, calls, times)
    return least
