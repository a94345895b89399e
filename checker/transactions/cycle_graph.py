"""Cycles of transactions as data that a page can draw: operations in time, and a graph; pure."""

from collections.abc import Sequence
from typing import Any, Final, get_args

from splitbrain.checker.explanation import NODES_MAX, Relation, RelationKind, build_cycle, to_data
from splitbrain.checker.transactions.cycles import Cycle
from splitbrain.checker.transactions.dependencies import KIND_NAMES
from splitbrain.history.identity import operation_as_json
from splitbrain.history.records import PairedOperation

_KINDS: Final[dict[str, RelationKind]] = {
    **{kind: kind for kind in get_args(RelationKind)},
    "realtime": "real-time",
}


def drawn(
    cycle: Cycle, transactions: Sequence[PairedOperation], shown: Sequence[PairedOperation]
) -> dict[str, Any]:
    """Return ``core`` and ``graph`` of a cycle, for a violation's fields.

    Args:
        cycle: its edges lead from one of all ``transactions``, by their places, to another.
        transactions: all of the history.
        shown: those of the cycle, as people are to see them.
    """
    relations = [
        Relation(
            transactions[edge.source].index,
            transactions[edge.target].index,
            _KINDS[KIND_NAMES[edge.kind]],
        )
        for edge in cycle.edges
    ]
    graph = build_cycle(shown, relations, lambda operation: str(operation.argument))
    return {
        "core": [operation_as_json(each) for each in shown[:NODES_MAX]],
        "graph": to_data(graph),
    }
