"""Chooses how one part is judged, and says what decided and why that may be trusted.

In the order in which most parts are decided soonest:

1. The search in Python for a while: importing numba costs more than most parts do.
2. Is there an answer that nothing can lead to (``reachability``)? Where states are bounded.
3. Where operations are open: the search in which they may take effect any number of times. It
   cannot drown in the ways to use them, and if even that has no order, none exists. An order found
   that way proves nothing.
4. The exact search as long as the budget lasts, compiled where numba is installed.

Verdicts do not depend on numba. Must never call ``valid`` what only a relaxed question allowed.
"""

from collections.abc import Container
from functools import cached_property
from importlib.util import find_spec
from typing import Final

import msgspec

from checker.linearizability.algorithms import EXACT, REACHABLE, REPEATED
from checker.linearizability.columns import PartColumns, columns_of
from checker.linearizability.outcome import Ending, Outcome
from checker.linearizability.parts import Part
from checker.linearizability.problem import Problem
from checker.linearizability.reachability import unreachable
from checker.linearizability.search import Search
from checker.models.model import Model
from checker.verdict import Verdict
from contracts.budget import Budget

#: Configurations, and as many more for each operation, after which more than the plain search is
#: asked; most histories without violation need one per operation.
FIRST_TRY_CONFIGURATIONS_MAX = 5_000
FIRST_TRY_PER_OPERATION = 2
#: Operations of a part beyond which the compiled search is asked at once.
FIRST_TRY_OPERATIONS_MAX: Final = 50_000
#: Whether the compiled search may be used.
COMPILED = find_spec("numba") is not None


class Decision(msgspec.Struct, frozen=True):
    """What decided a part."""

    #: One of ``checker.linearizability.algorithms``.
    algorithm: str
    outcome: Outcome
    problem: Problem


class Portfolio:
    """Judges one part; ``decide`` it once."""

    def __init__(self, part: Part, model: Model, budget: Budget) -> None:
        self._part = part
        self._model = model
        self._budget = budget
        self._problem = Problem(part.operations, model)

    def decide(self) -> Decision:
        """Ask one after the other until one knows."""
        problem = self._problem
        first = self._first_try()
        if first.verdict is not Verdict.UNKNOWN or self._budget.exhausted() is not None:
            return Decision(EXACT, first, problem)
        if self._model.bounded_states:
            refuted = self._unreachable(first)
            if refuted is not None:
                return Decision(REACHABLE, refuted, problem)
            if problem.groups:
                everything = range(len(self._part.operations))
                repeated = Problem(self._part.operations, self._model, unlimited=everything)
                outcome = self._search(repeated, everything)
                if outcome.verdict is Verdict.INVALID:
                    return Decision(REPEATED, outcome, repeated)
        return Decision(EXACT, self._search(problem), problem)

    def _first_try(self) -> Outcome:
        count = len(self._part.operations)
        limit = FIRST_TRY_CONFIGURATIONS_MAX + FIRST_TRY_PER_OPERATION * count
        if COMPILED and count > FIRST_TRY_OPERATIONS_MAX:
            return self._search(self._problem, configurations_max=limit)
        return Search(self._problem, self._budget, limit).run()

    def _unreachable(self, first: Outcome) -> Outcome | None:
        """An outcome that names the operation whose answer nothing leads to, if there is one."""
        problem = self._problem
        columns = self._columns
        place = unreachable(columns, problem.transitions, len(problem.calls), self._budget)
        if place is None:
            return None
        rank = problem.place_by_rank.index(place)
        furthest = tuple(end for end in first.dead_ends if end.rank == rank)
        return msgspec.structs.replace(
            first,
            verdict=Verdict.INVALID,
            reason=None,
            dead_ends=furthest or (Ending(rank, None, ()),),
            exhausted=False,
        )

    def _search(
        self,
        problem: Problem,
        unlimited: Container[int] = frozenset(),
        configurations_max: int | None = None,
    ) -> Outcome:
        if COMPILED:
            from checker.linearizability.compiled_search import (
                CompiledModel,
                CompiledSearch,
                DoesNotFit,
            )

            compiled = CompiledModel(self._model, problem.calls, problem.transitions)
            try:
                return CompiledSearch(
                    self._columns, compiled, self._budget, configurations_max, unlimited
                ).run()
            except DoesNotFit:
                pass
        return Search(problem, self._budget, configurations_max).run()

    @cached_property
    def _columns(self) -> PartColumns:
        return columns_of(self._part.operations, self._problem.call_by_place)
