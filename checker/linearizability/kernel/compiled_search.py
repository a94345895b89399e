"""Driver of the compiled search: gives it memory and steps, polls the budget.

Importing this module imports numba. The verdict is that of the search in Python
(``linearizability.methods.search``); ``Outcome.decisions`` are the same kind of decisions.
"""

from collections.abc import Container
from typing import Final

import msgspec
import numpy as np

from splitbrain.checker.linearizability.kernel import kernel_layout as codes
from splitbrain.checker.linearizability.kernel.columns import PartColumns
from splitbrain.checker.linearizability.kernel.compiled_layout import (
    CompiledModel,
    DoesNotFit,
    lay_out,
    longer,
)
from splitbrain.checker.linearizability.kernel.kernel_frontier import frontier
from splitbrain.checker.linearizability.kernel.kernel_layout import Layout, Memory
from splitbrain.checker.linearizability.kernel.kernel_rules import rehash
from splitbrain.checker.linearizability.kernel.kernel_search import search
from splitbrain.checker.linearizability.kernel.kernel_sweep import WIDTH_MAX
from splitbrain.checker.linearizability.part.outcome import PASS, Decision, Ending, Outcome
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget

__all__ = ["CompiledModel", "CompiledSearch", "DoesNotFit"]

#: Configurations between two polls of the budget: some milliseconds. Many groups of ``info``
#: operations make each take as many times as long as so many of them go into their number.
POLL_INTERVAL: Final = 1 << 14
_GROUPS_PER_TIME: Final = 64
#: Configurations for ``furthest``: a base, and a multiple of those that the verdict took.
FURTHEST_FIRST: Final = 1 << 19
FURTHEST_TIMES: Final = 4
_STACK_FIRST: Final = 1 << 10
_NODES_FIRST: Final = 1 << 12
_TABLE_FIRST: Final = 1 << 12


class CompiledSearch:
    """One search of one part; ``run`` it once, or ``advance`` it step by step.

    Args:
        columns: the part.
        model: its calls and transitions.
        budget: polled every ``POLL_INTERVAL`` configurations, and before memory grows.
        configurations_max: give up after as many, None for no limit.
        unlimited: places of ``info`` operations that may take effect any number of times.
        guided: leave configurations that cannot meet all demands (rule 7), if the model's states
            are few; that costs some time beforehand.
        by_rank: sweep all configurations of one rank before any of the next, instead of depth
            first.
        dive: forget which ``info`` operations were used, and try few at once; it finds orders
            alone, so that ``invalid`` means no more than that it found none.

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
        *,
        guided: bool = False,
        by_rank: bool = False,
        dive: bool = False,
    ) -> None:
        self.model = model
        self._budget = budget
        self._configurations_max = configurations_max
        self._laid_out = lay_out(columns, model, unlimited, guided=guided)
        #: Greatest number of completed operations open at once.
        self.width = self._laid_out.width
        self.open_dropped = self._laid_out.open_dropped
        self._groups = self._laid_out.groups
        #: Whether a configuration counts the uses of operations without answer.
        self.counts_open = any(group.increment for group in self._groups)
        self._by_rank = by_rank and len(self._laid_out.layout.ends) > 0
        #: Configurations of earlier walks.
        self._before = 0
        self._begin(self._laid_out.layout._replace(dive=dive))

    def _begin(self, layout: Layout) -> None:
        self._layout = layout
        self._memory: Memory = self._new_memory()

    def run(self) -> Outcome:
        """Search until an order is found, none is left, or the budget ends."""
        outcome = self.advance(None)
        assert outcome is not None, "without a limit there is an outcome"
        return outcome

    def advance(self, configurations: int | None) -> Outcome | None:
        """Go on for so many configurations; None if there is no outcome yet.

        An ``invalid`` outcome has the longest orders only without rule 7; see ``furthest``.
        """
        control = self._memory.control
        until = (
            None if configurations is None else int(control[codes.CONFIGURATIONS]) + configurations
        )
        while True:
            limit = int(control[codes.CONFIGURATIONS]) + self._ration(until)
            walk = frontier if self._by_rank else search
            answer = walk(self._layout, self._memory, limit)
            if answer == codes.FOUND:
                return self._outcome(Verdict.VALID, last=int(control[codes.LAST]))
            if answer == codes.NONE_LEFT:
                return self._outcome(Verdict.INVALID)
            if answer == codes.ASK:
                question = control[codes.ASKED_STATE], control[codes.ASKED_CALL]
                self.model.answer(int(question[0]), int(question[1]))
                self._memory = self._memory._replace(transitions=self.model.table)
                continue
            reason = self._stop_reason()
            if reason is not None:
                return self._outcome(Verdict.UNKNOWN, reason=reason)
            if answer != codes.LIMIT:
                self._grow(answer)
            elif until is not None and int(control[codes.CONFIGURATIONS]) >= until:
                return None

    def furthest(self, outcome: Outcome) -> Outcome:
        """Return the same ``invalid`` outcome with the longest orders, found by one more walk.

        Rule 7 leaves a configuration for an operation far ahead. Let U be the last operation that
        any was left for or stood before: not all up to it have a place. Walking once more with the
        demands before U alone either comes to U wherever that is possible, or shows that the
        longest orders end before it. Rule 8 comes as far as there is an order, but not to states
        that only operations without answer lead to which nothing needs; it is left out. All this
        may take far longer than the verdict did; beyond the limit U is reported without an order.
        """
        control = self._memory.control
        limit = FURTHEST_FIRST + int(FURTHEST_TIMES * control[codes.CONFIGURATIONS])
        while self._layout.guided or self._layout.sparing:
            control = self._memory.control
            deepest = int(control[codes.DEEPEST])
            rank = max(int(control[codes.STRANDED]), deepest)
            within = not self._layout.guided or self._layout.horizon <= rank
            if rank == deepest and within and not self._layout.sparing:
                break
            self._before += int(control[codes.CONFIGURATIONS])
            self._begin(self._layout._replace(horizon=rank, sparing=False))
            again = self.advance(limit)
            if again is None or again.verdict is not Verdict.INVALID:
                ends = (Ending(rank, None, ()),)
                return msgspec.structs.replace(outcome, dead_ends=ends, exhausted=False)
            outcome = again
        return outcome

    def _new_memory(self) -> Memory:
        layout = self._layout
        words = len(layout.guard)
        memory = Memory(
            transitions=self.model.table,
            stack=np.zeros((_STACK_FIRST, codes.USED + words), dtype=np.int64),
            parent=np.zeros(_NODES_FIRST, dtype=np.int32),
            move=np.zeros(_NODES_FIRST, dtype=np.int32),
            known=np.zeros((_NODES_FIRST, codes.KNOWN_USED + words), dtype=np.int64),
            following=np.zeros(_NODES_FIRST, dtype=np.int32),
            keys=np.full(_TABLE_FIRST, codes.FREE, dtype=np.int64),
            heads=np.full(_TABLE_FIRST, codes.FREE, dtype=np.int32),
            used=np.zeros(words, dtype=np.int64),
            waiting=np.zeros(
                (_STACK_FIRST if self._by_rank else 0, codes.USED + words), dtype=np.int64
            ),
            tried=np.zeros((len(layout.pure), 2), dtype=np.int64),
            wanted=np.zeros((len(layout.leading_at), 2), dtype=np.int64),
            stops=np.zeros((codes.STOPS_MAX, 2), dtype=np.int64),
            control=np.zeros(codes.CONTROLS, dtype=np.int64),
        )
        memory.control[codes.STACKED] = 1
        memory.control[codes.DEEPEST] = memory.control[codes.STRANDED] = -1
        memory.stack[0, codes.NODE] = memory.stack[0, codes.OWN] = -1
        memory.stack[0, codes.MOVE] = codes.MOVE_PASS
        if len(layout.ends):
            for candidate in layout.fresh[: layout.fresh_at[1]]:
                if not layout.pure[layout.call[candidate]]:
                    memory.stack[0, codes.AVAILABLE] |= layout.bit[candidate]
        return memory

    def _grow(self, lack: int) -> None:
        memory = self._memory
        if lack == codes.STACK_FULL:
            more = WIDTH_MAX + len(self._groups) + 3
            while len(memory.stack) < len(self._memory.stack) + more:
                memory = memory._replace(stack=longer(memory.stack, 0))
            self._memory = memory
        elif lack == codes.WAITING_FULL:
            # All waiting configurations go on the stack at once.
            stack = memory.stack
            while len(stack) < 2 * len(memory.waiting):
                stack = longer(stack, 0)
            self._memory = memory._replace(stack=stack, waiting=longer(memory.waiting, 0))
        elif lack == codes.MEMO_FULL:
            self._memory = memory._replace(
                parent=longer(memory.parent, 0),
                move=longer(memory.move, 0),
                known=longer(memory.known, 0),
                following=longer(memory.following, 0),
            )
        else:
            keys = np.full(4 * len(memory.keys), codes.FREE, dtype=np.int64)
            heads = np.full(len(keys), codes.FREE, dtype=np.int32)
            rehash(memory.keys, memory.heads, keys, heads)
            self._memory = memory._replace(keys=keys, heads=heads)

    def _ration(self, until: int | None) -> int:
        ends = [end for end in (until, self._configurations_max) if end is not None]
        interval = max(1, POLL_INTERVAL // (1 + len(self._groups) // _GROUPS_PER_TIME))
        if not ends:
            return interval
        left = min(ends) - int(self._memory.control[codes.CONFIGURATIONS])
        return max(0, min(interval, left))

    def _stop_reason(self) -> str | None:
        configurations = int(self._memory.control[codes.CONFIGURATIONS])
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
                Ending(int(control[codes.DEEPEST]), int(state), self._decisions(int(node)))
                for state, node in stops[: control[codes.STOPS]]
            ]
        return Outcome(
            verdict=verdict,
            reason=reason,
            configurations=self._before + int(control[codes.CONFIGURATIONS]),
            remembered=int(control[codes.NODES]),
            decisions=None if last is None else self._decisions(last),
            dead_ends=tuple(ends),
        )

    def _decisions(self, node: int) -> tuple[Decision, ...]:
        moves: list[int] = []
        # A sweep may have forgotten the node.
        if node < 0:
            return ()
        while node >= 0:
            moves.append(int(self._memory.move[node]))
            node = int(self._memory.parent[node])
        # The first node is the beginning, without a decision.
        moves.pop()
        used = [0] * len(self._groups)
        decisions: list[Decision] = []
        for move in reversed(moves):
            if move == codes.MOVE_PASS:
                decisions.append(PASS)
            elif move >= 0:
                decisions.append(int(self._laid_out.place_by_rank[move]))
            else:
                number = codes.MOVE_OPEN - move
                group = self._groups[number]
                # A group without limit is shown as its first operation, however often used.
                decisions.append(group.places[used[number]])
                used[number] += 1 if group.increment else 0
        return tuple(decisions)
