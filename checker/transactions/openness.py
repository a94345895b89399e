"""Orders of writes that nobody saw, and whether a verdict hangs on them; pure.

Without anomalies a history is of a level if the writes that nobody saw can be put in an order, too.

- Of lists they stand behind all that was read. For a level without anti-dependencies, and for one
  that forbids every cycle, any order that the edges allow does. Between them it matters only
  whether two of them lie on one cycle.
- Of registers they may stand anywhere. ``read-committed`` and levels of commit orders need no more
  than an order of what was read; for the others a serial order is looked for that explains every
  read (``serial_order``).

Where that leaves a level open a solver looks for an order (``order_search``).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import (
    PROCESS,
    REALTIME,
    Anomaly,
    Dependencies,
    called,
)
from splitbrain.checker.transactions.graph import Edge, components, successors_of
from splitbrain.checker.transactions.levels import Kind, Level
from splitbrain.checker.transactions.serial_order import has_serial_order
from splitbrain.checker.transactions.telling import Teller, written_by
from splitbrain.history.records import PairedOperation

#: Bases that are decided whatever the order of writes that nobody saw.
_DECIDED = ("read-uncommitted", "read-committed", *levels.COMMIT_ORDERS)
_EVERY_CYCLE = ("repeatable-read", "serializable")
_NAMES: Final = {
    "serializable": levels.NO_SERIAL_ORDER,
    "repeatable-read": levels.NO_SERIAL_ORDER,
    "snapshot-isolation": levels.NO_SNAPSHOT_ORDER,
    "parallel-snapshot-isolation": levels.NO_PARALLEL_ORDER,
}
#: Pairs of chains up to which the solver is asked, and cycles that are told.
_PAIRS_MAX: Final = 1_000_000
_TOLD_MAX: Final = 4


def is_open(
    found: Dependencies,
    kind: Kind,
    level: Level,
    edges: Sequence[Edge],
    poll: Callable[[], None],
) -> bool:
    """Return whether no anomaly, and no order that is easily found, decides about a level."""
    if not found.unordered or level.base in _DECIDED:
        return False
    if kind == "rw-register":
        return not has_serial_order(found, level, poll)
    return are_lists_open([txns for _, txns in found.unordered], level, edges, poll)


def are_lists_open(
    unordered: Sequence[Sequence[int]],
    level: Level,
    edges: Sequence[Edge],
    poll: Callable[[], None],
) -> bool:
    """Return whether a level hangs on the order of appends that nobody read.

    ``unordered`` has the transactions of each group of them.
    """
    if level.base in _EVERY_CYCLE or level.base in _DECIDED:
        return False
    kinds = {PROCESS: "process" in level.orders, REALTIME: "realtime" in level.orders}
    component = components(successors_of(e for e in edges if kinds.get(e.kind, True)), poll)
    for txns in unordered:
        on_cycles = [component[txn] for txn in txns if txn in component]
        if len(set(on_cycles)) < len(on_cycles):
            return True
    return False


def open_sentence(found: Dependencies) -> str:
    """Return the sentence on a level that is neither ruled out nor proven, without its end."""
    key = text_of(found.unordered[0][0])
    return (
        f"No anomaly was found, but the order of some writes stays open, of key {key} for one: "
        "they were neither read before, nor followed by a read that shows both"
    )


def decide_open(
    found: Dependencies, kind: Kind, level: Level, poll: Callable[..., None]
) -> Anomaly | str | None:
    """Ask the solver: return what contradicts the level, why that stays open, or None if nothing.

    Raises:
        Undecided: the budget ended.
    """
    # The solver's modules are loaded where a history needs them.
    from splitbrain.checker.transactions.open_orders import open_graph
    from splitbrain.checker.transactions.order_search import MissingSolver, contradiction

    are_lists = kind == "list-append"
    if _pairs_at_most(found) > _PAIRS_MAX:
        return f"{open_sentence(found)}; there are too many of them to try their orders."
    graph = open_graph(found, level, are_lists=are_lists, poll=poll)
    moments = [_moment(operation) for operation in found.table.operations]
    likely = [
        number if moments[pair.one.last] <= moments[pair.other.first] else -number
        for number, pair in enumerate(graph.pairs, 1)
    ]
    try:
        conflicts = contradiction(graph, likely, poll)
    except MissingSolver:
        return (
            f"{open_sentence(found)}; a solver would decide, which is not installed: "
            "python -m pip install 'splitbrain[sat]'."
        )
    if conflicts is None:
        return None
    teller = Teller(found.table, are_lists=are_lists)
    used = {edge.kind for conflict in conflicts for edge in conflict.edges}
    order = "realtime" if REALTIME in used else "process" if PROCESS in used else ""
    told = list(_told(found, teller, graph.pairs, conflicts))
    more = f" There are {len(told) - _TOLD_MAX} more of these." if len(told) > _TOLD_MAX else ""
    first = next(literal for conflict in conflicts for literal in (*conflict.literals, 1))
    txns = dict.fromkeys(edge.source for conflict in conflicts for edge in conflict.edges)
    return Anomaly(
        levels.with_order(_NAMES[level.base], order),
        tuple(txns),
        found.table.keys[graph.pairs[abs(first) - 1].key],
        f"No order of the writes that no read shows is left. {' '.join(told[:_TOLD_MAX])}{more}",
    )


def _pairs_at_most(found: Dependencies) -> int:
    return sum(len(txns) ** 2 // 2 for _, txns in found.unordered)


def _moment(operation: PairedOperation) -> int:
    return operation.start + (operation.start if operation.end is None else operation.end)


def _told(
    found: Dependencies, teller: Teller, pairs: Sequence[Any], conflicts: Sequence[Any]
) -> Iterator[str]:
    table = found.table
    for conflict in conflicts:
        suppositions: list[str] = []
        for literal in conflict.literals:
            pair = pairs[abs(literal) - 1]
            chains = (pair.one, pair.other) if literal > 0 else (pair.other, pair.one)
            before, behind = chains[0].last, chains[1].first
            values = [text_of(written_by(table, txn, pair.key)[-1]) for txn in (before, behind)]
            suppositions.append(
                f"{values[0]} of {called(table, before)} came before {values[1]} of "
                f"{called(table, behind)} in key {text_of(table.keys[pair.key])}"
            )
        supposed = f"If {' and '.join(suppositions)}, then " if suppositions else ""
        steps = "; ".join(teller.edge(edge) for edge in conflict.edges)
        steps = steps if supposed else f"{steps[0].upper()}{steps[1:]}"
        yield f"{supposed}{steps}: none of them can be first."
