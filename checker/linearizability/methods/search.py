"""Depth-first search for an order of all completed operations, with memo.

A configuration is a rank (of the return that comes next), a state, the open operations that are
*done* (their obligation to have taken effect is met), those that are *available* (they can still
change the state), and the ``info`` operations used. The search lets operations take effect only
where one has to: at the return of one that is not done, or as the last chance of one that is
available. These rules keep it small, none of which can hide an order (each has a mutant in the
tests; rule 7 is in ``kernel.demands``):

1. A pure call is done as soon as its answer fits the state: it changes nothing for the others.
2. Any operation is done as soon as it would leave the state as it is, and *stays available*: if it
   changes the state later, that is where it stood.
3. When an overwrite changes the state, all open overwrites are done and stay available: they may
   have stood unseen right before it. So a write costs nothing unless its value is seen.
4. Of equal available operations only the one that returns first is tried, of equal ``info``
   operations only the one that was invoked first, and none where an equal completed one is
   available: they can swap places in any order. Those that are done and those that are not are
   equal only among overwrites.
5. An ``info`` operation that would not change the state is not used: it can as well never happen.
6. A configuration is left if one of the same rank and state was met in which as much was done, as
   much was available and no more of any ``info`` was used: what is possible with less is possible
   with more.
8. An ``info`` operation is used only right before something that cannot happen without it: an
   answer that the state before it does not allow, or another ``info`` operation that acts in none
   but the state after it (decision 0014 has the proof). Wanted are the states that allow an answer
   which this one does not; and if one is wanted, so is any in which an ``info`` operation leads
   there. One that was used is *owed* until it was needed: no overwrite may follow it before. That
   asks for a model that tells its ``moves``.

Where a process invoked an operation at the very moment of its last return, that return's operation
has to stand before it; such operations are done only where they are put (rules 2 to 4 leave them
out). Must never recurse (histories are long) and never ask the clock: the budget does.

Sources: Wing and Gong 1993; Lowe 2017 (just in time, memo); the bounds in issue 7; Godefroid 1996
(of orders that differ by swaps one is enough: rule 8). Rules 2, 3, 8 and the order of rule 6 on
what is done and available are this project's (decision 0014).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from splitbrain.checker.linearizability.part.open_groups import OpenGroup
from splitbrain.checker.linearizability.part.outcome import PASS, Decision, Ending, Outcome
from splitbrain.checker.linearizability.part.problem import ILLEGAL, Candidate, Problem
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget

#: Configurations between two polls of the budget.
POLL_INTERVAL = 256
#: Configurations for ``furthest``: a base, and a multiple of those that the verdict took.
FURTHEST_FIRST: Final = 1 << 13
FURTHEST_TIMES: Final = 4
#: Greatest number of ``info`` operations tried at a configuration of a dive.
DIVE_WAYS_MAX: Final = 4
#: Dead ends kept for the explanation.
DEAD_ENDS_MAX: Final = 16

#: Rank, state, done, available, whether the operation of this rank has to change the state before
#: its return, ``info`` used, the node of the decision that led here, and whether an ``info``
#: operation is owed (rule 8).
Configuration = tuple[int, int, int, int, bool, int, int, bool]
#: Done, available and used.
Known = tuple[int, int, int]


class Search:
    """One search of one problem; ``run`` it once.

    Args:
        problem: the part.
        budget: polled every ``POLL_INTERVAL`` configurations.
        configurations_max: give up after so many.
        sparing: use rule 8, if the model tells its moves.
        dive: forget which ``info`` operations were used, and try few at once; then ``invalid``
            means no more than that no order was found.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        configurations_max: int | None = None,
        *,
        sparing: bool = True,
        dive: bool = False,
    ) -> None:
        self._problem = problem
        self._budget = budget
        self._configurations_max = configurations_max
        self._count = len(problem.ends)
        self._moves = problem.transitions.moves if sparing and problem.groups else None
        self._leading: defaultdict[int, list[OpenGroup]] = defaultdict(list)
        if self._moves is not None:
            for group in problem.groups:
                self._leading[self._moves[group.call].leaves].append(group)
        self._dive = dive
        self._memo: dict[tuple[int, int, bool], list[Known]] = {}
        self._remembered = 0
        #: Tree of decisions: parent node, and decision.
        self._nodes: list[tuple[int, Decision]] = []
        #: Node of a furthest configuration, by state.
        self._deepest: dict[int, int] = {}
        self._deepest_rank = -1
        self._configurations = 0

    def run(self) -> Outcome:
        """Search until an order is found, none is left, or the budget ends."""
        count = self._count
        available = _changing(self._problem.fresh[0]) if count else 0
        # The next one is last.
        stack: list[Configuration] = [(0, 0, 0, available, False, 0, -1, False)]
        while stack:
            self._configurations += 1
            if self._configurations % POLL_INTERVAL == 0 and (reason := self._stop_reason()):
                return self._outcome(Verdict.UNKNOWN, reason=reason)
            rank, state, done, available, bound, used, node, owed = stack.pop()
            owed = owed and self._is_owed(rank, state, done)
            if rank < count:
                rank, done, available = self._settle(rank, state, done, available, bound)
            if rank == count:
                return self._outcome(Verdict.VALID, node=node)
            if not self._is_new(rank, state, done, available, bound, used):
                continue
            optional = not bound and bool(done & self._problem.bits[rank])
            here = (rank, state, done, available, bound or optional, used, node, owed)
            ways = self._completed(here)
            ways += self._open(here)
            if optional:
                self._nodes.append((node, PASS))
                passed = available & ~self._problem.bits[rank]
                way = (rank, state, done, passed, False, used, len(self._nodes) - 1, owed)
                ways.insert(0, way)
            else:
                self._prefer(ways, rank)
                if not bound:
                    self._note_stop(rank, state, node, final=not ways)
            # Tried from the end: the first to return comes first.
            ways.reverse()
            stack += ways
        return self._outcome(Verdict.INVALID)

    def furthest(self, outcome: Outcome) -> Outcome:
        """Return the same ``invalid`` outcome with the final states of all longest orders.

        Rule 8 does not come to states that nothing needs. Leaving it out may take far longer than
        the verdict did; beyond the limit the outcome says that orders are missing.
        """
        if self._moves is None:
            return outcome
        limit = FURTHEST_FIRST + FURTHEST_TIMES * outcome.configurations
        again = Search(self._problem, self._budget, limit, sparing=False).run()
        missing = msgspec.structs.replace(outcome, exhausted=False)
        return again if again.verdict is Verdict.INVALID else missing

    def _settle(
        self, rank: int, state: int, done: int, available: int, bound: bool
    ) -> tuple[int, int, int]:
        """Go on to the first return at which something is to be decided."""
        problem = self._problem
        done = self._satisfied(rank, state, done, problem.candidates[rank])
        while not bound:
            bit = problem.bits[rank]
            if not done & bit or available & bit:
                break
            done &= ~bit
            rank += 1
            if rank == self._count:
                break
            fresh = problem.fresh[rank]
            if fresh:
                available |= _changing(fresh)
                done = self._satisfied(rank, state, done, fresh)
        return rank, done, available

    def _satisfied(self, rank: int, state: int, done: int, candidates: Sequence[Candidate]) -> int:
        """Add operations that are done in this state (rules 1 and 2)."""
        bits, transitions = self._problem.bits, self._problem.transitions
        row = transitions.rows[state]
        again = True
        while again:
            again = False
            for bit, call, _, predecessor, precedes_at_tie, _, pure, _ in candidates:
                if done & bit or (precedes_at_tie and not pure):
                    continue
                following = row.get(call)
                if following is None:
                    following = transitions.step(state, call)
                if following != state:
                    continue
                if predecessor >= rank and not done & bits[predecessor]:
                    continue
                done |= bit
                again = again or precedes_at_tie
        return done

    def _overwritten(self, rank: int, done: int) -> int:
        """Add operations that are done once an overwrite has changed the state (rule 3)."""
        problem = self._problem
        unseen = done | problem.overwrites[rank]
        for candidate in problem.waiting_overwrites[rank]:
            if candidate.predecessor < rank or done & problem.bits[candidate.predecessor]:
                unseen |= candidate.bit
        return unseen

    def _completed(self, here: Configuration) -> list[Configuration]:
        """Return the ways to go on with a completed operation, by return (rule 4)."""
        rank, state, done, available, bound, used, node, owed = here
        problem = self._problem
        bits, row = problem.bits, problem.transitions.rows[state]
        ways: list[Configuration] = []
        tried: set[tuple[int, bool]] = set()
        for bit, call, own_rank, predecessor, alone, place, _, overwrite in problem.candidates[
            rank
        ]:
            if not available & bit or (owed and self._needed_by(call) != state):
                continue
            if predecessor >= rank and not done & bits[predecessor]:
                continue
            following = row.get(call)
            if following is None:
                following = problem.transitions.step(state, call)
            if following == ILLEGAL or (following == state and not alone):
                continue
            kind = (call, bool(done & bit) and not overwrite)
            if kind in tried and not alone:
                continue
            tried.add(kind)
            after = self._overwritten(rank, done) if overwrite else done
            still_bound = bound and own_rank != rank
            self._nodes.append((node, place))
            last = len(self._nodes) - 1
            left = available & ~bit
            ways.append((rank, following, after | bit, left, still_bound, used, last, False))
        self._tried = {call for call, _ in tried}
        return ways

    def _open(self, here: Configuration) -> list[Configuration]:
        """Return the ways to go on with an ``info`` operation (rules 4, 5 and 8)."""
        rank, state, done, available, bound, used, node, _ = here
        problem = self._problem
        row = problem.transitions.rows[state]
        ways: list[Configuration] = []
        for group in problem.groups if self._moves is None else self._needed(here):
            place = self._next_open(group, here)
            if place is None or group.call in self._tried:
                continue
            following = row.get(group.call)
            if following is None:
                following = problem.transitions.step(state, group.call)
            if following in (ILLEGAL, state):
                continue
            after = self._overwritten(rank, done) if problem.overwrite[group.call] else done
            self._nodes.append((node, place))
            last = len(self._nodes) - 1
            more = used + group.increment
            owed = self._moves is not None
            ways.append((rank, following, after, available, bound, more, last, owed))
            if self._dive and len(ways) == DIVE_WAYS_MAX:
                break
        return ways

    def _needed(self, here: Configuration) -> Iterator[OpenGroup]:
        """Return groups that lead from this state to one that is wanted (rule 8), nearest first."""
        assert self._moves is not None
        owed, state = here[7], here[1]
        wanted = self._wanted(here)
        waiting = [*wanted]
        for other in waiting:
            for group in self._leading.get(other, ()):
                acts = self._moves[group.call].acts
                if acts not in (-1, state):
                    if acts not in wanted and self._next_open(group, here) is not None:
                        wanted[acts] = None
                        waiting.append(acts)
                elif acts == state or not owed:
                    yield group

    def _wanted(self, here: Configuration) -> dict[int, None]:
        """Return the states that allow an answer which this one does not."""
        rank, state, done = here[:3]
        wanted: dict[int, None] = {}
        for candidate in self._problem.candidates[rank]:
            call = candidate.call
            if done & candidate.bit or self._problem.transitions.after(state, call) != ILLEGAL:
                continue
            needed = self._needed_by(call)
            others = [*self._leading] if needed < 0 else [needed]
            wanted.update((other, None) for other in others if other != state)
        return wanted

    def _needed_by(self, call: int) -> int:
        assert self._moves is not None
        return self._moves[call].needs

    def _is_owed(self, rank: int, state: int, done: int) -> bool:
        """Return whether no answer has needed the ``info`` operation that led to this state."""
        problem = self._problem
        after = self._satisfied(rank, state, done, problem.candidates[rank])
        return not after & ~done & ~problem.overwrites[rank]

    def _next_open(self, group: OpenGroup, here: Configuration) -> int | None:
        """Return the place of the operation of a group that may stand here, None if none may."""
        rank, done, used = here[0], here[2], here[5]
        count = used >> group.shift & group.mask
        if count == len(group.starts) or group.starts[count] > self._problem.ends[rank]:
            return None
        if group.predecessor >= rank and not done & self._problem.bits[group.predecessor]:
            return None
        return group.places[count]

    def _prefer(self, ways: list[Configuration], rank: int) -> None:
        """Try first the ways that let the waiting operation be done."""
        problem = self._problem
        own = problem.place_by_rank[rank]
        goal = problem.call_by_place[own]
        for position, way in enumerate(ways):
            if self._nodes[way[6]][1] == own or problem.transitions.after(way[1], goal) == way[1]:
                ways.insert(0, ways.pop(position))
                return

    def _is_new(
        self, rank: int, state: int, done: int, available: int, bound: bool, used: int
    ) -> bool:
        """Remember the configuration; False if it or a better one is known (rule 6)."""
        key = (rank, state, bound)
        used = 0 if self._dive else used
        known = self._memo.get(key)
        if known is None:
            self._memo[key] = [(done, available, used)]
            self._remembered += 1
            return True
        guard = self._problem.guard
        open_used = used | guard
        for other_done, other_available, other_used in known:
            if (
                not done & ~other_done
                and not available & ~other_available
                and open_used - other_used & guard == guard
            ):
                return False
        kept = [
            other
            for other in known
            if other[0] & ~done
            or other[1] & ~available
            or (other[2] | guard) - used & guard != guard
        ]
        kept.append((done, available, used))
        self._remembered += len(kept) - len(known)
        self._memo[key] = kept
        return True

    def _note_stop(self, rank: int, state: int, node: int, *, final: bool) -> None:
        if rank > self._deepest_rank:
            self._deepest_rank = rank
            self._deepest.clear()
        known = state in self._deepest
        wanted = final if known else len(self._deepest) < DEAD_ENDS_MAX
        if rank == self._deepest_rank and wanted:
            self._deepest[state] = node

    def _stop_reason(self) -> str | None:
        if self._configurations_max is not None and self._configurations > self._configurations_max:
            return f"no answer after {self._configurations_max} configurations"
        return self._budget.exhausted()

    def _outcome(
        self, verdict: Verdict, *, reason: str | None = None, node: int | None = None
    ) -> Outcome:
        ends = [
            Ending(self._deepest_rank, state, self._decisions(last))
            for state, last in self._deepest.items()
        ]
        return Outcome(
            verdict=verdict,
            reason=reason,
            configurations=self._configurations,
            remembered=self._remembered,
            decisions=None if node is None else self._decisions(node),
            dead_ends=() if verdict is Verdict.VALID else tuple(ends),
        )

    def _decisions(self, node: int) -> tuple[Decision, ...]:
        decisions: list[Decision] = []
        while node >= 0:
            node, decision = self._nodes[node]
            decisions.append(decision)
        decisions.reverse()
        return tuple(decisions)


def _changing(candidates: Sequence[Candidate]) -> int:
    bits = 0
    for candidate in candidates:
        if not candidate.pure:
            bits |= candidate.bit
    return bits
