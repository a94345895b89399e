"""Portfolio of the algorithms for one part; it says which decided and why that may be trusted.

``STEPS`` is the one list of algorithms, in the order in which most parts are decided soonest:

- Zones, where a register is only read and written: no search at all.
- The order of elements, where a queue or a stack has each of them once: no search either.
- The order of the positions that a system returned, where it returned any.
- A search for a while: in Python, since importing numba costs more than most parts do, or compiled
  where there is enough to judge.
- Pairs of enqueues and dequeues, for any other FIFO queue.
- Reachability, where states are bounded: is there an answer that nothing can lead to?
- Where operations are open: a dive, a search that forgets which of them it has used. It finds an
  order where there are many, and refutes nothing. Where it is a fast one it is part of the first
  try.
- There, too: the search in which they may take effect any number of times. It cannot drown in the
  ways to use them, and if even that has no order, none exists. An order found that way proves
  something only if it repeats none of them.
- The exact search as long as the budget lasts, compiled where numba is installed.

A step answers with a ``Decision`` or leaves the part to the next one. Verdicts do not depend on
numba.
"""

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from splitbrain.checker.linearizability.kernel.columns import NEVER
from splitbrain.checker.linearizability.kernel.demands import declared_steps, unsupplied
from splitbrain.checker.linearizability.methods.guided import order_by_positions
from splitbrain.checker.linearizability.methods.reachability import unreachable
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.methods.zones import judge_zones
from splitbrain.checker.linearizability.part.outcome import (
    DIVE,
    ELEMENTS,
    EXACT,
    GUIDED,
    PAIRS,
    REACHABLE,
    REALIZED,
    REPEATED,
    SWEEP,
    ZONES,
    Outcome,
)
from splitbrain.checker.linearizability.part_source import PartSource
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget

if TYPE_CHECKING:
    from splitbrain.checker.linearizability.kernel.compiled_search import CompiledSearch

#: Configurations, and as many more for each operation, after which more than the plain search is
#: asked; most histories without violation need one per operation.
FIRST_TRY_CONFIGURATIONS_MAX = 5_000
FIRST_TRY_PER_OPERATION = 2
#: The same for the compiled search, which is a hundred times as fast.
COMPILED_FIRST_TRY_CONFIGURATIONS_MAX = 50_000
COMPILED_FIRST_TRY_PER_OPERATION = 4
#: How many times the configurations of a first try a dive may take.
DIVE_TIMES: Final = 4
#: Operations of a part beyond which the compiled search is asked at once.
FIRST_TRY_OPERATIONS_MAX: Final = 50_000
#: Configurations of the first turn of each compiled search.
FIRST_TURN: Final = 1 << 17
COMPILED = find_spec("numba") is not None


class Decision(msgspec.Struct, frozen=True):
    """Outcome of a part, and the algorithm that decided it."""

    #: One of ``checker.linearizability.part.outcome``.
    algorithm: str
    outcome: Outcome
    #: Whether open operations could be used any number of times, see ``PartSource.repeated``.
    repeated: bool = False
    #: Place of an answer that nothing leads to.
    place: int | None = None
    #: Values that contradict each other, for zones without an order.
    values: tuple[int, ...] = ()
    #: Places of operations that contradict each other, for the order of elements.
    places: tuple[int, ...] = ()


class Portfolio:
    """Judge of one part; ``decide`` it once.

    Args:
        source: the part.
        budget: asked before the first step, after each that may take long, and by them.
        compiled_first: ask the compiled search first, where there is one.
        explained: whether an ``invalid`` outcome has to have the longest orders.
    """

    def __init__(
        self,
        source: PartSource,
        budget: Budget,
        *,
        compiled_first: bool = False,
        explained: bool = True,
    ) -> None:
        self.source = source
        self.budget = budget
        self.explained = explained
        self.compiled_first = COMPILED and (
            compiled_first or len(source) > FIRST_TRY_OPERATIONS_MAX
        )
        #: Outcome of the first search before it gave up.
        self.first: Outcome | None = None

    def decide(self, steps: Sequence["Step"] | None = None) -> Decision:
        """Ask one step after the other until one decides; all of them if none are named."""
        reason = self.budget.exhausted()
        for step in STEPS if steps is None else steps:
            if reason is not None:
                break
            decision = step(self)
            if decision is not None:
                return decision
            if self.first is not None:
                reason = self.budget.exhausted()
        unknown = self.first or Outcome(Verdict.UNKNOWN)
        return Decision(EXACT, msgspec.structs.replace(unknown, reason=reason or unknown.reason))

    @cached_property
    def dives_first(self) -> bool:
        """Whether a dive comes right after a short first try, as rule 8 makes it a fast one."""
        source = self.source
        told = self.compiled_first and source.transitions.moves is not None
        return told and _has_open_that_matter(source)

    def tried(self, configurations_max: int, *, compiled: bool, dive: bool = False) -> Outcome:
        """Search with a limit: compiled if possible, else in Python."""
        source = self.source
        if compiled:
            from splitbrain.checker.linearizability.kernel.compiled_search import (
                CompiledSearch,
                DoesNotFit,
            )

            columns, limit = source.columns, configurations_max
            with suppress(DoesNotFit):
                search = CompiledSearch(
                    columns, source.compiled, self.budget, limit, guided=dive, dive=dive
                )
                return search.run() if dive else self._explained(search, search.run())
        search = Search(source.problem, self.budget, configurations_max, dive=dive)
        return search.run() if dive else self._explained(search, search.run())

    def searched(self, *, repeated: bool = False) -> tuple[str, Outcome]:
        """Search as long as the budget lasts; return the algorithm and its outcome."""
        source = self.source
        if COMPILED:
            from splitbrain.checker.linearizability.kernel.compiled_search import DoesNotFit

            unlimited = range(len(source) if repeated else 0)
            with suppress(DoesNotFit):
                return search_in_turns(source, self.budget, unlimited, explained=self.explained)
        search = Search(source.repeated if repeated else source.problem, self.budget)
        return EXACT, self._explained(search, search.run())

    def _explained(self, search: "Search | CompiledSearch", outcome: Outcome) -> Outcome:
        """Return the outcome with the longest orders where they have to be told."""
        is_told = self.explained and outcome.verdict is Verdict.INVALID
        return search.furthest(outcome) if is_told else outcome


def search_in_turns(
    source: PartSource, budget: Budget, unlimited: Container[int] = (), *, explained: bool = True
) -> tuple[str, Outcome]:
    """Search, compiled, depth first and rank by rank; return what decided, and its outcome.

    Depth first finds an order soon where there are many; rank by rank shows soon that there is
    none, see ``kernel_frontier``. Nobody knows beforehand which it is, so each goes on for a while
    and then the other, for twice as long each time: at most three times as long as the better one
    alone. Where operations without answer matter only depth first is used: their use multiplies the
    configurations of a rank.

    Args:
        source: the part.
        budget: polled all the time.
        unlimited: places of ``info`` operations that may take effect any number of times.
        explained: whether an ``invalid`` outcome has to have the longest orders.

    Raises:
        DoesNotFit: the part is too wide, or has too many states.
    """
    from splitbrain.checker.linearizability.kernel.compiled_search import CompiledSearch

    search_of = partial(
        CompiledSearch, source.columns, source.compiled, budget, unlimited=unlimited, guided=True
    )
    turns = [(EXACT, search_of())]
    if not turns[0][1].counts_open:
        turns.insert(0, (SWEEP, search_of(by_rank=True)))
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


#: Step of a portfolio; None leaves the part to the next one.
Step = Callable[[Portfolio], Decision | None]


def by_zones(portfolio: Portfolio) -> Decision | None:
    """Decide a register whose written values are all different."""
    columns = portfolio.source.register
    verdict = None if columns is None else judge_zones(columns)
    if verdict is None:
        return None
    outcome = Outcome(Verdict.VALID if verdict.valid else Verdict.INVALID)
    return Decision(ZONES, outcome, values=verdict.values)


def by_element_order(portfolio: Portfolio) -> Decision | None:
    """Decide a queue or a stack whose elements are all different."""
    source = portfolio.source
    kinds = source.model.element_kinds
    if kinds is None:
        return None
    from splitbrain.checker.linearizability.methods.element_order import judge_elements

    elements = source.elements
    verdict = None if elements is None else judge_elements(elements, kinds.order)
    if verdict is None:
        return None
    outcome = Outcome(Verdict.VALID if verdict.valid else Verdict.INVALID)
    return Decision(ELEMENTS, outcome, places=verdict.places)


def by_fifo_pairs(portfolio: Portfolio) -> Decision | None:
    """Decide any other FIFO queue."""
    source = portfolio.source
    kinds = source.model.element_kinds
    if kinds is None or kinds.order != "first":
        return None
    from splitbrain.checker.linearizability.methods.fifo_pairs import search_pairs

    elements = source.elements
    if elements is None:
        return None
    verdict = search_pairs(elements, portfolio.budget, explained=portfolio.explained)
    if verdict is None:
        return None
    # The search knows no states.
    outcome = msgspec.structs.replace(verdict.outcome, exhausted=False)
    return Decision(PAIRS, outcome, place=verdict.culprit, places=verdict.places)


def by_positions(portfolio: Portfolio) -> Decision | None:
    """Decide by an order of the system's own positions."""
    source = portfolio.source
    if not source.has_positions or order_by_positions(source.operations, source.model) is None:
        return None
    return Decision(GUIDED, Outcome(Verdict.VALID))


def by_first_try(portfolio: Portfolio) -> Decision | None:
    """Decide by a search that gives up early, and a dive if it is a fast one."""
    compiled = portfolio.compiled_first
    limit = _limit(portfolio, compiled and not portfolio.dives_first)
    first = portfolio.tried(limit, compiled=compiled)
    portfolio.first = first
    if first.verdict is not Verdict.UNKNOWN:
        return Decision(EXACT, first)
    return _dived(portfolio) if portfolio.dives_first else None


def by_reachability(portfolio: Portfolio) -> Decision | None:
    """Refute by an answer that no sequence of calls leads to."""
    source = portfolio.source
    if not source.model.bounded_states:
        return None
    steps = declared_steps(source.transitions)
    place = None if steps is None else unsupplied(steps, source.columns)
    if place is None:
        calls = len(source.calls)
        place = unreachable(source.columns, source.transitions, calls, portfolio.budget)
    if place is None:
        return None
    first = portfolio.first or Outcome(Verdict.UNKNOWN)
    refuted = msgspec.structs.replace(first, verdict=Verdict.INVALID, reason=None, exhausted=False)
    return Decision(REACHABLE, refuted, place=place)


def by_dive(portfolio: Portfolio) -> Decision | None:
    """Find an order by a search that forgets which operations without answer it has used."""
    later = not portfolio.dives_first and _has_open_that_matter(portfolio.source)
    return _dived(portfolio) if later else None


def by_repetition(portfolio: Portfolio) -> Decision | None:
    """Refute if no order exists even with open operations repeated at will.

    An order found that way is a proof if it repeats none.
    """
    source = portfolio.source
    if not source.model.bounded_states or not _has_open_that_matter(source):
        return None
    _, outcome = portfolio.searched(repeated=True)
    if outcome.decisions is not None:
        from splitbrain.checker.linearizability.methods.realized import is_realized

        realized = is_realized(source.repeated, outcome.decisions, source.model)
        return Decision(REALIZED, outcome) if realized else None
    if outcome.verdict is not Verdict.INVALID:
        return None
    return Decision(REPEATED, outcome, repeated=True)


def by_search(portfolio: Portfolio) -> Decision:
    """Decide by a search as long as the budget lasts."""
    return Decision(*portfolio.searched())


STEPS: Final[tuple[Step, ...]] = (
    by_zones,
    by_element_order,
    by_positions,
    by_first_try,
    by_fifo_pairs,
    by_reachability,
    by_dive,
    by_repetition,
    by_search,
)
#: Steps that look at one configuration after the other.
SEARCHES: Final = (by_first_try, *STEPS[5:])
#: Steps that never take long.
QUICK_STEPS: Final = STEPS[:4]


def _limit(portfolio: Portfolio, compiled: bool) -> int:
    """Return the configurations of a first try."""
    count = len(portfolio.source)
    if compiled:
        return COMPILED_FIRST_TRY_CONFIGURATIONS_MAX + COMPILED_FIRST_TRY_PER_OPERATION * count
    return FIRST_TRY_CONFIGURATIONS_MAX + FIRST_TRY_PER_OPERATION * count


def _dived(portfolio: Portfolio) -> Decision | None:
    limit = DIVE_TIMES * _limit(portfolio, COMPILED)
    outcome = portfolio.tried(limit, compiled=COMPILED, dive=True)
    return Decision(DIVE, outcome) if outcome.verdict is Verdict.VALID else None


def _has_open_that_matter(source: PartSource) -> bool:
    """Return whether an operation without answer can have enabled an answered one."""
    columns, calls = source.columns, source.calls
    is_open = columns.ends == NEVER
    numbers: list[int] = np.unique(columns.calls[is_open]).tolist()
    answered: list[int] = np.unique(columns.calls[~is_open]).tolist()
    open_calls = {calls[number] for number in numbers}
    known = {calls[number] for number in answered}
    return bool(open_calls - source.model.droppable(open_calls, known))
