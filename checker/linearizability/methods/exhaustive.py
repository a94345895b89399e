"""Exact search as long as the budget lasts, compiled: depth first and rank by rank, in turns.

Depth first finds an order soon where there are many; rank by rank shows soon that there is none,
see ``kernel_frontier``. Nobody knows beforehand which it is, so each goes on for a while and then
the other, for twice as long each time: at most three times as long as the better one alone. Where
operations without answer matter only depth first is used: their use multiplies the configurations
of a rank.

Importing this module imports numba.
"""

from collections.abc import Container
from typing import Final

from splitbrain.checker.linearizability.kernel.columns import PartColumns
from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel, CompiledSearch
from splitbrain.checker.linearizability.part.outcome import EXACT, SWEEP, Outcome
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget

#: Configurations of the first turn of each.
FIRST_TURN: Final = 1 << 17


def search_exhaustively(
    columns: PartColumns,
    model: CompiledModel,
    budget: Budget,
    unlimited: Container[int] = frozenset(),
    *,
    explained: bool = True,
) -> tuple[str, Outcome]:
    """Search, and return the deciding algorithm and its outcome.

    Args:
        columns: the part.
        model: its calls and transitions.
        budget: polled all the time.
        unlimited: places of ``info`` operations that may take effect any number of times.
        explained: whether an ``invalid`` outcome has to have the longest orders.

    Raises:
        DoesNotFit: the part is too wide, or has too many states.
    """
    into_the_depth = CompiledSearch(columns, model, budget, unlimited=unlimited, guided=True)
    turns = [(EXACT, into_the_depth)]
    if not into_the_depth.counts_open:
        by_rank = CompiledSearch(
            columns, model, budget, unlimited=unlimited, guided=True, by_rank=True
        )
        turns.insert(0, (SWEEP, by_rank))
    turn = FIRST_TURN
    while True:
        for algorithm, search in turns:
            outcome = search.advance(turn)
            if outcome is None:
                continue
            if explained and outcome.verdict is Verdict.INVALID:
                outcome = search.furthest(outcome)
            return algorithm, outcome
        turn *= 2
