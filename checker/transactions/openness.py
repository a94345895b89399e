"""Orders of writes that nobody saw, and whether a verdict hangs on them; pure.

Without anomalies a history is of a level if the writes that nobody saw can be put in an order, too.

- Of lists they stand behind all that was read. For a level without anti-dependencies, and for one
  that forbids every cycle, any order that the edges allow does. Between them it matters only
  whether two of them lie on one cycle.
- Of registers they may stand anywhere. ``read-committed`` needs no more than an order of what was
  read; for the others a serial order is looked for that explains every read. Where none is found
  within the tries, the verdict stays open.
"""

from collections.abc import Callable, Sequence

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import PROCESS, REALTIME, Dependencies
from splitbrain.checker.transactions.graph import Edge, components, successors_of
from splitbrain.checker.transactions.levels import Kind, Level
from splitbrain.checker.transactions.serial_order import has_serial_order

#: Bases that are decided whatever the order of writes that nobody saw.
_DECIDED = ("read-uncommitted", "read-committed", *levels.COMMIT_ORDERS)
_EVERY_CYCLE = ("repeatable-read", "serializable")


def why_open(
    found: Dependencies,
    kind: Kind,
    level: Level,
    anomalies: Sequence[str],
    edges: Sequence[Edge],
    poll: Callable[[], None],
) -> str | None:
    """Return the reason why a level is neither ruled out nor proven, a sentence; else None."""
    if any(map(level.forbids, anomalies)):
        return None
    if level.base == "read-uncommitted" and levels.INCOMPATIBLE_ORDER in anomalies:
        return "Reads contradict each other, so nothing is known of the order of those versions."
    if not found.unordered or level.base in _DECIDED:
        return None
    key = text_of(found.unordered[0][0])
    open_sentence = (
        f"No anomaly was found, but the order of some writes stays open, of key {key} for one: "
        "they were neither read before, nor followed by a read that shows both."
    )
    kinds = {PROCESS: "process" in level.orders, REALTIME: "realtime" in level.orders}
    usable = [edge for edge in edges if kinds.get(edge.kind, True)]
    if kind == "list-append":
        if level.base in _EVERY_CYCLE:
            return None
        component = components(successors_of(usable), poll)
        for _, txns in found.unordered:
            on_cycles = [component[txn] for txn in txns if txn in component]
            if len(set(on_cycles)) < len(on_cycles):
                return open_sentence
        return None
    return None if has_serial_order(found, level, poll) else open_sentence
