"""Depth-first search for an order of all completed operations, with memo.

A configuration is (rank of the next return, set of open operations already placed, state, open
``info`` operations used). From each one the search goes on with every operation that may come
next, those that return first being tried first, and remembers where it has been. Four rules keep
it small, none of which can hide an order (each has a mutant in the tests):

1. A pure call that may happen now is placed now: it changes nothing for the others.
2. Of equal completed operations only the one that returns first is tried, of equal ``info``
   operations only the one that was invoked first, and none where an equal completed one may come
   next: they can swap places in any order. (One that returned at the very moment at which its
   process invoked the next is always tried: that next one may stand between the two.)
3. An ``info`` operation that would not change the state is not used: it can as well never happen.
4. A configuration is left if an equal one was met with no more of any ``info`` used: what is
   possible with fewer left over is possible with more left over.

Must never recurse (histories are long) and never ask the clock: the budget does.

Sources: Wing and Gong 1993; Lowe 2017; the bounds in issue 7.
"""

from typing import Any, NamedTuple

import msgspec

from checker.linearizability.problem import ILLEGAL, Problem
from checker.verdict import Verdict
from contracts.budget import Budget

#: Configurations between two looks at the budget.
POLL_INTERVAL = 1024
#: Dead ends kept for the explanation.
DEAD_ENDS_MAX = 16

#: Linked list of places, last placed first: ``(place, earlier)`` or None.
Path = tuple[int, Any] | None


class Branch(NamedTuple):
    """One way to go on."""

    state: int
    #: Bit of a completed operation, 0 for an ``info``.
    bit: int
    #: Rank of a completed operation, -1 for an ``info``.
    rank: int
    #: Added to the packed counts; 0 for a completed operation.
    increment: int
    place: int


class DeadEnd(NamedTuple):
    """A longest order found: everything before ``rank`` placed, no completed one can follow."""

    rank: int
    state: int
    path: Path


class Outcome(msgspec.Struct, frozen=True):
    """What the search found."""

    verdict: Verdict
    #: Why it stopped, for ``unknown``.
    reason: str | None
    #: Configurations looked at.
    configurations: int
    #: Configurations remembered.
    remembered: int
    #: For ``valid``: an order of all completed and some open operations, last first.
    path: Path
    #: For ``invalid``: the longest orders found, one per final state.
    dead_ends: tuple[DeadEnd, ...]


class Search:
    """One search of one problem; ``run`` it once.

    Args:
        problem: the compiled part.
        budget: asked every ``POLL_INTERVAL`` configurations.
        configurations_max: give up after as many, None for no limit.
    """

    def __init__(
        self, problem: Problem, budget: Budget, configurations_max: int | None = None
    ) -> None:
        self._problem = problem
        self._budget = budget
        self._configurations_max = configurations_max
        self._count = len(problem.ends)
        self._rank_shift = problem.width
        self._state_shift = problem.width + self._count.bit_length()
        self._memo: dict[int, int | tuple[int, ...]] = {}
        self._deepest: dict[int, DeadEnd] = {}
        self._deepest_rank = -1
        self._configurations = 0

    def run(self) -> Outcome:
        """Search until an order is found, none is left, or the budget ends."""
        bits, count = self._problem.bits, self._count
        # Configurations with ways left to go on, the latest last.
        stack: list[tuple[int, int, int, Path, list[Branch]]] = []
        rank = mask = state = used = 0
        path: Path = None
        while True:
            self._configurations += 1
            if self._configurations % POLL_INTERVAL == 0 and (reason := self._stop_reason()):
                return self._outcome(Verdict.UNKNOWN, reason=reason)
            rank, mask, path, branches, tried = self._settle(rank, mask, state, path)
            if rank == count:
                return self._outcome(Verdict.VALID, path=path)
            if self._is_new(rank, mask, state, used):
                if not branches:
                    self._note_dead_end(rank, state, path)
                self._add_open(branches, tried, rank, mask, state, used)
            else:
                branches.clear()
            if branches:
                # Tried from the end: the first to return is the first to be tried.
                branches.reverse()
            elif stack:
                rank, mask, used, path, branches = stack.pop()
            else:
                return self._outcome(Verdict.INVALID)
            branch = branches.pop()
            if branches:
                stack.append((rank, mask, used, path, branches))
            state = branch.state
            used += branch.increment
            mask |= branch.bit
            path = (branch.place, path)
            if branch.rank == rank:
                while rank < count and mask & bits[rank]:
                    mask ^= bits[rank]
                    rank += 1

    def _settle(
        self, rank: int, mask: int, state: int, path: Path
    ) -> tuple[int, int, Path, list[Branch], list[int]]:
        """Place every pure call that may happen (rule 1) and list what else may come next."""
        problem = self._problem
        bits, pure, candidates, count = problem.bits, problem.pure, problem.candidates, self._count
        transitions = problem.transitions
        row = transitions.rows[state]
        branches: list[Branch] = []
        tried: list[int] = []
        while rank < count:
            branches = []
            tried = []
            for bit, call, own_rank, predecessor, precedes_at_tie, place in candidates[rank]:
                if mask & bit:
                    continue
                if predecessor >= rank and not mask & bits[predecessor]:
                    continue
                following = row.get(call)
                if following is None:
                    following = transitions.step(state, call)
                if following == ILLEGAL:
                    continue
                if pure[call]:
                    mask |= bit
                    path = (place, path)
                    if own_rank == rank:
                        break
                elif precedes_at_tie or call not in tried:
                    tried.append(call)
                    branches.append(Branch(following, bit, own_rank, 0, place))
            else:
                return rank, mask, path, branches, tried
            while rank < count and mask & bits[rank]:
                mask ^= bits[rank]
                rank += 1
        return rank, mask, path, branches, tried

    def _add_open(
        self,
        branches: list[Branch],
        tried: list[int],
        rank: int,
        mask: int,
        state: int,
        used: int,
    ) -> None:
        """Add the ``info`` operations that may take effect now (rules 2 and 3)."""
        transitions, bits = self._problem.transitions, self._problem.bits
        now = self._problem.ends[rank]
        row = transitions.rows[state]
        groups = self._problem.groups
        for call, predecessor, starts, places, shift, count_mask, increment in groups:
            count = used >> shift & count_mask
            if count == len(starts) or starts[count] > now or call in tried:
                continue
            if predecessor >= rank and not mask & bits[predecessor]:
                continue
            following = row.get(call)
            if following is None:
                following = transitions.step(state, call)
            if following not in (ILLEGAL, state):
                branches.append(Branch(following, 0, -1, increment, places[count]))

    def _is_new(self, rank: int, mask: int, state: int, used: int) -> bool:
        """Remember the configuration; False if it or a better one is known (rule 4)."""
        key = state << self._state_shift | rank << self._rank_shift | mask
        known = self._memo.get(key)
        if known is None:
            self._memo[key] = used
            return True
        if known == used:
            return False
        guard = self._problem.guard
        minimal = known if isinstance(known, tuple) else (known,)
        if any((used | guard) - other & guard == guard for other in minimal):
            return False
        kept = [other for other in minimal if (other | guard) - used & guard != guard]
        self._memo[key] = (*kept, used) if kept else used
        return True

    def _note_dead_end(self, rank: int, state: int, path: Path) -> None:
        if rank > self._deepest_rank:
            self._deepest_rank = rank
            self._deepest.clear()
        if rank == self._deepest_rank and len(self._deepest) < DEAD_ENDS_MAX:
            self._deepest.setdefault(state, DeadEnd(rank, state, path))

    def _stop_reason(self) -> str | None:
        if self._configurations_max is not None and self._configurations > self._configurations_max:
            return f"no answer after {self._configurations_max} configurations"
        return self._budget.exhausted()

    def _outcome(
        self, verdict: Verdict, *, reason: str | None = None, path: Path = None
    ) -> Outcome:
        return Outcome(
            verdict=verdict,
            reason=reason,
            configurations=self._configurations,
            remembered=len(self._memo),
            path=path,
            dead_ends=tuple(self._deepest.values()) if verdict is Verdict.INVALID else (),
        )


def order_of(path: Path) -> list[int]:
    """Places of a path, first placed first."""
    places: list[int] = []
    while path is not None:
        place, path = path
        places.append(place)
    places.reverse()
    return places
