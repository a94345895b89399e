"""Outcome of a search, and the order that its decisions stand for.

A search notes only the operations that changed the state, in order, and the returns at which it let
one that still could pass; the others stood where they were first done. ``order_of`` restores the
whole order from that by one more walk through the part: for an explanation or a proof only.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from splitbrain.checker.linearizability.part.problem import Candidate, Problem
from splitbrain.checker.verdict import Verdict

EXACT: Final = "depth-first search with memo"
SWEEP: Final = "sweep of all configurations, rank by rank"
DIVE: Final = "depth-first dive, operations without answer used greedily"
REPEATED: Final = "depth-first search with memo, open operations repeatable"
REALIZED: Final = "depth-first search with memo, open operations repeatable but not repeated"
REACHABLE: Final = "reachable states, every call repeatable"
ZONES: Final = "zones"
ELEMENTS: Final = "order of elements"
PAIRS: Final = "search of pairs of enqueue and dequeue"
GUIDED: Final = "order of positions"

#: Precondition of each algorithm, by name.
PRECONDITIONS: Final = {
    EXACT: "none",
    SWEEP: "no operation without answer matters; at most 62 open at once",
    DIVE: "an order; a dive refutes nothing",
    REPEATED: "no order even if open operations happen any number of times; finitely many states",
    REALIZED: "an order that uses no open operation twice",
    REACHABLE: "an answer that no sequence of the calls invoked by then leads to",
    GUIDED: "the order of the positions that the system returned satisfies the model",
    ZONES: "one register, reads and writes only, every value written once",
    PAIRS: "one FIFO queue without limit",
    ELEMENTS: "one queue or stack without limit, every element put in once",
}


#: Place of the operation that changed the state, or ``PASS``.
Decision = int
#: Decision that the returning operation changes the state no more.
PASS: Final = -1


class Ending(msgspec.Struct, frozen=True):
    """End of an order in which everything before ``rank`` has a place."""

    rank: int
    #: None where no order up to there was found.
    state: int | None
    decisions: tuple[Decision, ...]


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a search."""

    verdict: Verdict
    #: Reason of ``unknown``.
    reason: str | None = None
    configurations: int = 0
    remembered: int = 0
    #: For ``valid``: decisions for an order of all completed and some open operations.
    decisions: tuple[Decision, ...] | None = None
    #: Longest orders found, one per final state; for ``invalid`` none is longer.
    dead_ends: tuple[Ending, ...] = ()
    #: For ``invalid``: whether the dead ends hold every final state of a longest order.
    exhausted: bool = True


def order_of(problem: Problem, decisions: Sequence[Decision]) -> list[int]:
    """Return places in the order that these decisions stand for, up to where they lead.

    Operations that were done and not used stand where they first could.
    """
    return _Replay(problem).run(decisions)


class _Replay:
    """Repetition of a search that also keeps the order."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        #: Places; None where an operation stood that changed the state later.
        self._order: list[int | None] = []
        #: Position in the order of operations that are done and not used, by rank.
        self._position: dict[int, int] = {}
        self._rank = 0
        self._state = 0
        self._opened: set[int] = set()
        self._done: set[int] = set()
        self._used: set[int] = set()
        self._bound = False
        self._rank_by_place = {place: rank for rank, place in enumerate(problem.place_by_rank)}

    def run(self, decisions: Sequence[Decision]) -> list[int]:
        self._satisfy()
        for decision in decisions:
            self._go_on()
            if decision == PASS:
                self._used.add(self._rank)
            else:
                self._change(decision)
        self._go_on()
        return [place for place in self._order if place is not None]

    def _go_on(self) -> None:
        while self._rank < len(self._problem.ends) and not self._bound:
            rank = self._rank
            pure = self._problem.pure[self._call(self._problem.place_by_rank[rank])]
            if rank not in self._done or not (pure or rank in self._used):
                return
            self._rank += 1
            self._satisfy()

    def _change(self, place: int) -> None:
        problem = self._problem
        rank = self._rank_by_place.get(place)
        # If the operation of this rank was done before, it has to be used first.
        self._bound = self._rank in self._done and rank != self._rank
        if problem.overwrite[self._call(place)]:
            for candidate in self._waiting(place):
                if candidate.overwrite and not candidate.precedes_at_tie:
                    self._stand(candidate.rank, candidate.place)
        if rank is not None:
            if rank in self._position:
                self._order[self._position.pop(rank)] = None
            self._done.add(rank)
            self._used.add(rank)
        self._order.append(place)
        self._state = problem.transitions.step(self._state, self._call(place))
        self._satisfy()

    def _satisfy(self) -> None:
        found = True
        while found:
            found = False
            for candidate in self._waiting(None):
                if candidate.precedes_at_tie and not candidate.pure:
                    continue
                following = self._problem.transitions.step(self._state, candidate.call)
                if following == self._state:
                    self._stand(candidate.rank, candidate.place)
                    found = True

    def _waiting(self, but: int | None) -> Iterator[Candidate]:
        if self._rank == len(self._problem.ends):
            return
        candidates = self._problem.candidates[self._rank]
        # Copying all of ``done`` would cost the square of a long part.
        done = self._done.intersection(
            [rank for candidate in candidates for rank in (candidate.rank, candidate.predecessor)]
        )
        for candidate in candidates:
            waits = candidate.predecessor >= self._rank and candidate.predecessor not in done
            if candidate.rank not in done and candidate.place != but and not waits:
                yield candidate

    def _stand(self, rank: int, place: int) -> None:
        self._done.add(rank)
        self._position[rank] = len(self._order)
        self._order.append(place)

    def _call(self, place: int) -> int:
        return self._problem.call_by_place[place]
