"""Isolation levels of transactions on rows by their definitions; slow on purpose.

Shares no code with the checker. Serializability carries out every order, snapshot isolation every
order of begins and commits; the others try every version that a missing row may have had, and look
at the graph of direct dependencies of Adya's thesis. Each tries every choice of the ``info``
transactions that happened.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.brute_force import (
    Before,
    Transactions,
    before,
    choices,
    closure,
    parts,
)

State = frozenset[tuple[str, Any]]
#: Row with its group.
Named = tuple[str, Any]
UNBORN, THERE, GONE = "unborn", "there", "gone"


def is_of_level(history: Sequence[PairedOperation], level: str) -> bool:
    """Whether some choice of what happened makes the history one of this level."""
    base, order = level, ""
    if level == "strict-serializable":
        base, order = "serializable", "realtime"
    elif level.startswith("strong-session-"):
        base, order = level.removeprefix("strong-session-"), "process"
    elif level.startswith("strong-"):
        base, order = level.removeprefix("strong-"), "realtime"
    holds = {
        "serializable": _is_serial,
        "snapshot-isolation": _is_snapshot,
        "parallel-snapshot-isolation": lambda c, o: _has_graph(c, o, _is_parallel, own=True),
        "repeatable-read": lambda c, o: _has_graph(c, o, _is_repeatable, own=True),
        "read-committed": lambda c, o: _has_graph(c, o, _is_committed, own=False),
    }[base]
    return any(holds(chosen, before(chosen, order)) for chosen in choices(history))


def _after(operation: PairedOperation, state: State) -> State | None:
    """Rows after a transaction alone; None where it answers something else."""
    rows = set(state)
    for asked, (_, _, told) in zip(operation.argument, parts(operation), strict=True):
        f, group, row = asked
        if f == "insert":
            rows.add((group, row))
        elif f == "delete":
            is_there = (group, row) in rows
            if operation.type == "ok" and is_there != (told is not None):
                return None
            rows.discard((group, row))
        elif operation.type == "ok":
            there = {other for name, other in rows if name == group}
            if len(told) != len(there) or set(told) != there:
                return None
    return frozenset(rows)


def _is_serial(chosen: Transactions, ordered: Before) -> bool:
    def go_on(left: frozenset[int], state: State) -> bool:
        if not left:
            return True
        for place in left:
            if any((other, place) in ordered for other in left):
                continue
            after = _after(chosen[place], state)
            if after is not None and go_on(left - {place}, after):
                return True
        return False

    return go_on(frozenset(range(len(chosen))), frozenset())


def _is_snapshot(chosen: Transactions, ordered: Before) -> bool:
    def go_on(
        waiting: frozenset[int], running: dict[int, tuple[State, State, State]], state: State
    ) -> bool:
        """``running`` has what each adds and takes, and what others changed since it began."""
        if not waiting and not running:
            return True
        for place in waiting:
            if any((other, place) in ordered for other in waiting | running.keys()):
                continue
            after = _after(chosen[place], state)
            if after is None:
                continue
            changes = (after - state, state - after, frozenset())
            if go_on(waiting - {place}, {**running, place: changes}, state):
                return True
        for place, (added, taken, over) in running.items():
            if over & (added | taken):
                continue
            rest = {
                other: (more, less, met | added | taken)
                for other, (more, less, met) in running.items()
                if other != place
            }
            if go_on(waiting, rest, (state | added) - taken):
                return True
        return False

    return go_on(frozenset(range(len(chosen))), {}, frozenset())


class Graph:
    """Direct dependencies: what must come before, and anti-dependencies of items and predicates."""

    def __init__(self) -> None:
        self.firm: Before = set()
        self.items: Before = set()
        self.predicates: Before = set()


def _has_graph(chosen: Transactions, ordered: Before, holds: Any, *, own: bool) -> bool:
    return any(holds(graph, ordered, len(chosen)) for graph in _graphs(chosen, own=own))


def _graphs(chosen: Transactions, *, own: bool) -> Iterator[Graph]:
    """Every graph that explains what was shown; none if nothing can."""
    inserted: dict[Named, tuple[int, int]] = {}
    deletes: dict[Named, tuple[int, int]] = {}
    for txn, operation in enumerate(chosen):
        for place, (f, group, row) in enumerate(operation.argument):
            if f != "range":
                of = inserted if f == "insert" else deletes
                of[group, row] = (txn, place)
    open_ones = [row for row, (txn, _) in deletes.items() if chosen[txn].type == "info"]
    for met in product((True, False), repeat=len(open_ones)):
        effective: dict[Named, int] = {}
        is_wrong = False
        for row, (txn, place) in deletes.items():
            if chosen[txn].type == "info":
                is_met = met[open_ones.index(row)]
            else:
                is_met = chosen[txn].result[place][2] is not None
            if is_met:
                effective[row] = txn
            mine = inserted.get(row)
            if is_met and (mine is None or (mine[0] == txn and mine[1] > place)):
                is_wrong = True
            missed = not is_met and mine is not None and mine[0] == txn and mine[1] < place
            # Without an answer a transaction sees itself.
            if missed and (own or chosen[txn].type == "info"):
                is_wrong = True
        if not is_wrong:
            yield from _explained(chosen, inserted, deletes, effective, own=own)


#: Reader, row, and the versions that it may have read.
Sight = tuple[int, Named, tuple[str, ...]]


def _explained(
    chosen: Transactions,
    inserted: dict[Named, tuple[int, int]],
    deletes: dict[Named, tuple[int, int]],
    effective: dict[Named, int],
    *,
    own: bool,
) -> Iterator[Graph]:
    """Every graph for certain effects of all deletes."""
    sights: list[Sight] = []
    for txn, operation in enumerate(chosen):
        if operation.type != "ok":
            continue
        for place, (f, group, told) in enumerate(operation.result):
            if f != "range":
                continue
            shown = [(group, row) for row in told]
            if len(set(shown)) != len(shown) or any(row not in inserted for row in shown):
                return
            for row, (inserter, at) in inserted.items():
                if row[0] != group:
                    continue
                mine_gone = effective.get(row) == txn and deletes[row][1] < place
                if own and inserter == txn and (at < place and not mine_gone) != (row in shown):
                    return
                if own and mine_gone and row in shown:
                    return
                if inserter == txn and row in shown and at > place:
                    return
                if inserter == txn or (mine_gone and row not in shown):
                    continue
                if row in shown and effective.get(row) == inserter:
                    return
                may = row not in shown and effective.get(row, txn) != txn
                if row in shown:
                    sights.append((txn, row, (THERE,)))
                elif effective.get(row) != inserter:
                    sights.append((txn, row, (UNBORN, GONE) if may else (UNBORN,)))
    yield from _graphs_of(sights, inserted, deletes, effective)


def _graphs_of(
    sights: Sequence[Sight],
    inserted: dict[Named, tuple[int, int]],
    deletes: dict[Named, tuple[int, int]],
    effective: dict[Named, int],
) -> Iterator[Graph]:
    """One graph for each choice of the versions that were read."""
    firm: Before = set()
    predicates: Before = set()
    for row, (txn, _) in deletes.items():
        if row not in inserted or inserted[row][0] == txn:
            continue
        if effective.get(row) == txn:
            firm.add((inserted[row][0], txn))
        else:
            predicates.add((txn, inserted[row][0]))
    for versions in product(*(ways for _, _, ways in sights)):
        graph = Graph()
        graph.firm |= firm
        graph.predicates |= predicates
        for (txn, row, _), version in zip(sights, versions, strict=True):
            if version == UNBORN:
                graph.predicates.add((txn, inserted[row][0]))
            elif version == GONE:
                graph.firm.add((effective[row], txn))
            else:
                graph.firm.add((inserted[row][0], txn))
                if effective.get(row, txn) != txn:
                    graph.items.add((txn, effective[row]))
        yield graph


def _cyclic(edges: Before, count: int) -> bool:
    reached = closure(edges, count)
    return any((place, place) in reached for place in range(count))


def _is_committed(graph: Graph, ordered: Before, count: int) -> bool:
    return not _cyclic(graph.firm | ordered, count)


def _is_repeatable(graph: Graph, ordered: Before, count: int) -> bool:
    return not _cyclic(graph.firm | graph.items | ordered, count)


def _is_parallel(graph: Graph, ordered: Before, count: int) -> bool:
    reached = closure(graph.firm | ordered, count)
    if any((place, place) in reached for place in range(count)):
        return False
    return not any((other, one) in reached for one, other in graph.items | graph.predicates)
