"""Search for an order of writes that no read shows, by a SAT solver that is told of cycles; pure.

A variable for each pair of chains says which one is first (``open_orders``). The solver chooses; of
the cycles that its choice leaves, those with the fewest choices become clauses, until there is none
left, or no choice. Reachability over certain edges decides some of them before. Nothing but
cycles is ever a clause, so those that contradict each other are the proof. Sources: Zhang and
others 2023, "Viper"; Huang and others 2023, "PolySI"; Ignatiev and others 2018 (PySAT).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from splitbrain.checker.transactions.cycles import without_stations
from splitbrain.checker.transactions.graph import Edge, components, successors_of
from splitbrain.checker.transactions.open_orders import PARALLEL, OpenGraph

_SOLVER: Final = "glucose4"
#: Conflicts between two looks at the budget.
_CONFLICTS: Final = 2000
#: Cycles that one choice may give.
_CYCLES_MAX: Final = 64
#: Bits of reachability that are held at once.
_BITS_MAX: Final = 4_000_000_000
#: Cycles of a contradiction up to which it is made smaller.
_SMALL: Final = 60


class MissingSolver(Exception):
    """The extra with the solver is not installed."""


class Conflict(NamedTuple):
    """Choices that make a cycle when all are made, as literals, and its edges."""

    literals: tuple[int, ...]
    edges: tuple[Edge, ...]


def contradiction(
    graph: OpenGraph, likely: Sequence[int], poll: Callable[..., None]
) -> list[Conflict] | None:
    """Return cycles that leave no choice; None where some choice leaves no cycle.

    ``likely`` has a literal of each pair, which is tried first.

    Raises:
        MissingSolver: python-sat is not installed.
    """
    make = _solver()
    # A database does most things in the order of time, so this spares the rest.
    if next(_conflicts(graph, likely, poll), None) is None:
        return None
    known: list[Conflict] = []
    facts = _facts(graph, poll)
    if facts is not None and _search(make, graph, facts, likely, known, poll):
        return None
    # Facts have no cycles of their own: without them, those that are needed turn up.
    if facts != [] and _search(make, graph, [], likely, known, poll):
        return None
    return _core(make, graph.clauses, known, poll)


def _solver() -> Callable[..., Any]:
    try:
        from pysat.solvers import Solver  # type: ignore[import-untyped]
    except ImportError:
        raise MissingSolver from None
    return Solver


def _search(
    make: Callable[..., Any],
    graph: OpenGraph,
    facts: Sequence[int],
    likely: Sequence[int],
    known: list[Conflict],
    poll: Callable[..., None],
) -> bool:
    """Return whether a choice without cycles exists; add the cycles of others to ``known``."""
    with make(name=_SOLVER) as solver:
        for literal in facts:
            solver.add_clause([literal])
        for conflict in known:
            solver.add_clause([-literal for literal in conflict.literals])
        for clause in graph.clauses:
            solver.add_clause(clause)
        # That makes variables of them, too.
        solver.set_phases(likely)
        while _solve(solver, poll):
            found = list(_conflicts(graph, solver.get_model() or (), poll))
            if not found:
                return True
            for conflict in found:
                if not conflict.literals:
                    known.append(conflict)
                    return False
                solver.add_clause([-literal for literal in conflict.literals])
            known += found
    return False


def _solve(solver: Any, poll: Callable[..., None], assumptions: Sequence[int] = ()) -> bool:
    while True:
        poll(_CONFLICTS)
        solver.conf_budget(_CONFLICTS)
        answer = solver.solve_limited(assumptions=list(assumptions))
        if answer is not None:
            return answer


def _conflicts(
    graph: OpenGraph, chosen: Iterable[int], poll: Callable[..., None]
) -> Iterator[Conflict]:
    """Yield cycles of a choice, each with few of its literals."""
    taken = set(chosen) | {0}
    steps = [*graph.certain, *(step for each in taken for step in graph.chosen.get(each, ()))]
    single = [step for step in graph.single if step.kind in taken]
    component = components(successors_of([*steps, *single]), poll)
    inside = successors_of(
        step for step in steps if component.get(step.source, -1) == component.get(step.target, -2)
    )
    starts = [step for several in inside.values() for step in several if step.kind]
    starts += [
        step for step in single if component.get(step.source, -1) == component.get(step.target, -2)
    ]
    # A cycle of certain steps needs no choice.
    if not starts:
        every = [step for several in inside.values() for step in several]
        starts = [s for s in every if graph.edges[s.proof].source < graph.transactions][:1]
    met: set[tuple[int, ...]] = set()
    for start in starts:
        way = _way_back(start, inside, poll)
        if way is None:
            continue
        literals = tuple(sorted({step.kind for step in way if step.kind}))
        if literals not in met:
            met.add(literals)
            edges = [graph.edges[step.proof] for step in way]
            yield Conflict(literals, without_stations(edges, graph.transactions))
        if len(met) == _CYCLES_MAX:
            return


def _way_back(
    start: Edge, successors: dict[int, list[Edge]], poll: Callable[..., None]
) -> list[Edge] | None:
    """Return a cycle from a step on, with as few choices as there can be; None for none."""
    came: dict[int, tuple[int, Edge]] = {start.target: (0, start)}
    ahead = deque([(0, start.target)])
    while ahead:
        cost, state = ahead.popleft()
        if came[state][0] < cost:
            continue
        if state == start.source:
            way = [came[state][1]]
            while way[-1] is not start:
                way.append(came[way[-1].source][1])
            return way[::-1]
        for step in successors.get(state, ()):
            poll()
            dearer = cost + (1 if step.kind and step.kind != start.kind else 0)
            if step.target in came and came[step.target][0] <= dearer:
                continue
            came[step.target] = (dearer, step)
            if dearer == cost:
                ahead.appendleft((dearer, step.target))
            else:
                ahead.append((dearer, step.target))
    return None


def _facts(graph: OpenGraph, poll: Callable[..., None]) -> list[int] | None:
    """Return choices that certain edges leave no alternative to; None for a pair with neither."""
    facts: dict[int, None] = {}
    if graph.forbidden == PARALLEL:
        return []
    steps = list(graph.certain)
    sources = {step.source for several in graph.chosen.values() for step in several}
    places = {state: place for place, state in enumerate(sources)}
    open_pairs = [number for number in range(1, len(graph.pairs) + 1) if number in graph.chosen]
    while open_pairs:
        successors = successors_of(steps)
        if len(successors) * len(places) > _BITS_MAX:
            break
        reached = _reached(successors, places, poll)
        if reached is None:
            return None
        new: list[int] = []
        for number in open_pairs:
            ways = [
                not any(
                    (reached.get(step.target, 0) >> places[step.source]) & 1
                    or step.target == step.source
                    for step in graph.chosen.get(literal, ())
                )
                for literal in (number, -number)
            ]
            if not any(ways):
                return None
            if not all(ways):
                new.append(number if ways[0] else -number)
        if not new:
            break
        facts.update(dict.fromkeys(new))
        steps += [step for literal in new for step in graph.chosen.get(literal, ())]
        open_pairs = [n for n in open_pairs if n not in facts and -n not in facts]
    return list(facts)


def _reached(
    successors: dict[int, list[Edge]], places: dict[int, int], poll: Callable[..., None]
) -> dict[int, int] | None:
    """Return the places that each state leads to, as bits; None where there is a cycle."""
    reached: dict[int, int] = {}
    open_states: set[int] = set()
    for root in successors:
        walk = [root]
        while walk:
            poll()
            state = walk[-1]
            if state in reached:
                walk.pop()
                continue
            after = successors.get(state, ())
            if state not in open_states:
                open_states.add(state)
                waiting = [step.target for step in after if step.target not in reached]
                if any(other in open_states for other in waiting):
                    return None
                walk += waiting
                continue
            walk.pop()
            open_states.discard(state)
            bits = 0
            for step in after:
                bits |= reached[step.target]
                if step.target in places:
                    bits |= 1 << places[step.target]
            reached[state] = bits
    return reached


def _core(
    make: Callable[..., Any],
    clauses: Sequence[tuple[int, ...]],
    known: Sequence[Conflict],
    poll: Callable[..., None],
) -> list[Conflict]:
    """Return few of some cycles that leave no choice together."""
    alone = [conflict for conflict in known if not conflict.literals]
    if alone:
        return alone[:1]
    used = [literal for conflict in known for literal in conflict.literals]
    top = max(map(abs, [*used, *(literal for clause in clauses for literal in clause)]))
    with make(name=_SOLVER) as solver:
        for clause in clauses:
            solver.add_clause(clause)
        for place, conflict in enumerate(known, top + 1):
            solver.add_clause([-place, *(-literal for literal in conflict.literals)])
        _solve(solver, poll, range(top + 1, top + 1 + len(known)))
        core: list[int] = list(solver.get_core() or ())
        if len(core) <= _SMALL:
            for place in list(core):
                less = [other for other in core if other != place]
                if not _solve(solver, poll, less):
                    core = less
        return [known[place - top - 1] for place in sorted(core)]
