"""Judging transactions key by key: what each key shows, and what follows from all of them; pure.

For histories that no longer fit one process. A dependency rests on one key, so keys are looked at
apart, each with the transactions that touch it and those of their micro-operations that do
(``touching``). Only whether an ``info`` transaction happened is known from all keys together. Their
findings are put together as numbers: edges, and the times of all transactions. An anomaly, or a
cycle of these edges, rests on a few keys; the history of those alone shows it, too, and the checker
tells it from that (``check``). Not looked at are levels of commit orders, and an order of blind
writes to registers, which needs all of their reads.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.cycles import Cycle, cycles_in
from splitbrain.checker.transactions.dependencies import Dependencies, Edges, Nodes
from splitbrain.checker.transactions.durability import lost_writes
from splitbrain.checker.transactions.graph import Edge, core_of
from splitbrain.checker.transactions.levels import Kind, Level
from splitbrain.checker.transactions.list_versions import list_dependencies
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.checker.transactions.openness import are_lists_open
from splitbrain.checker.transactions.orders import Orders
from splitbrain.checker.transactions.register_versions import register_dependencies
from splitbrain.checker.transactions.table_builder import table_of
from splitbrain.checker.transactions.telling import names_of
from splitbrain.checker.transactions.timed import Times
from splitbrain.history.records import PairedOperation

#: Anomalies and cycles of each name whose keys are told.
KEYS_TOLD: Final = 5


class KeyFindings(NamedTuple):
    """Findings of the reads of one key; transactions by their index in the history."""

    reads: int
    #: Edges; a negative source or target is a station of this key.
    sources: list[int]
    targets: list[int]
    kinds: list[int]
    #: Name of each anomaly that is no cycle.
    anomalies: list[str]
    #: Transactions whose writes here nobody read, where their order is open.
    unordered: list[int]
    #: Transactions without an answer that happened.
    seen: list[int]


def touching(
    operation: PairedOperation,
) -> Iterator[tuple[Hashable, PairedOperation]]:
    """Yield each key of a transaction that makes sense, with what it asked and read of that key."""
    told = operation.result if operation.type == "ok" else operation.argument
    asked: dict[Hashable, tuple[list[Any], list[Any]]] = {}
    for part, answered in zip(operation.argument, told, strict=True):
        of_key = asked.setdefault(hashable(part[1]), ([], []))
        of_key[0].append(part)
        of_key[1].append(answered)
    for key, (parts, answers) in asked.items():
        result = answers if operation.type == "ok" else None
        yield key, msgspec.structs.replace(operation, argument=parts, result=result)


def with_keys(
    operations: Iterable[PairedOperation], keys: Collection[Hashable]
) -> list[PairedOperation]:
    """Return transactions with those of their micro-operations alone that touch some keys."""
    found: list[PairedOperation] = []
    for operation in operations:
        kept = [n for n, part in enumerate(operation.argument) if hashable(part[1]) in keys]
        result = [operation.result[n] for n in kept] if operation.type == "ok" else None
        argument = [operation.argument[n] for n in kept]
        found.append(msgspec.structs.replace(operation, argument=argument, result=result))
    return found


def findings_of(
    operations: Sequence[PairedOperation],
    kind: Kind,
    poll: Callable[[], None],
    seen_elsewhere: Sequence[bool] | None = None,
) -> KeyFindings:
    """Return what the reads of one key show.

    Args:
        operations: all that touch it, in the order of their invocations, as ``touching`` gives
            them.
        kind: lists or registers.
        poll: called often.
        seen_elsewhere: of each, whether a read of another key shows that it happened.

    Raises:
        Undecided: one of them makes no sense, or writes a value that was written before.
    """
    table = table_of(operations, kind, poll)
    if seen_elsewhere is not None:
        table.seen_elsewhere = np.array(seen_elsewhere, dtype=bool)
    infer = list_dependencies if kind == "list-append" else register_dependencies
    found = infer(table, poll)
    indexes = np.append(table.indexes, -1)

    def named(nodes: Nodes) -> list[int]:
        is_station = nodes >= len(operations)
        own = indexes[np.where(is_station, -1, nodes)]
        return np.where(is_station, len(operations) - 1 - nodes, own).tolist()

    source, target, kinds, _ = found.edges.columns()
    return KeyFindings(
        reads=len(table.reads),
        sources=named(source),
        targets=named(target),
        kinds=kinds.tolist(),
        anomalies=[each.name for each in (*lost_writes(table, kind), *found.anomalies)],
        unordered=[int(indexes[txn]) for txn in _group(found)],
        seen=table.indexes[found.happened & ~table.is_ok].tolist(),
    )


def _group(found: Dependencies) -> list[int]:
    # There is one key, so there is one group at most.
    return found.unordered[0][1] if found.unordered else []


class Together(NamedTuple):
    """Findings of all keys together."""

    #: How often, by name; cycles among them.
    anomalies: Counter[str]
    #: Keys by number on which some of each name rest.
    keys: list[int]
    #: Why the level stays open although nothing that it rules out was found; None where it holds.
    undecided: str | None


def put_together(
    txns: Times, found: Iterable[KeyFindings], kind: Kind, level: Level, poll: Callable[[], None]
) -> Together:
    """Look for cycles of what all keys show, and say whether the level holds.

    Args:
        txns: all transactions of the history.
        found: of each key, the keys in the order of their numbers.
        kind: lists or registers.
        level: of no commit order.
        poll: called often.
    """
    anomalies: Counter[str] = Counter()
    keys: dict[str, list[int]] = {}
    edges = Edges(len(txns.indexes))
    happened = txns.is_ok.copy()
    unordered: list[list[int]] = []

    def note(name: str, *of_keys: int) -> None:
        anomalies[name] += 1
        told = keys.setdefault(name, [])
        if anomalies[name] <= KEYS_TOLD:
            told += of_keys

    def places(indexes: Sequence[int]) -> Nodes:
        return np.searchsorted(txns.indexes, np.array(indexes, dtype=np.int64))

    for number, each in enumerate(found):
        poll()
        for name in each.anomalies:
            note(name, number)
        happened[places(each.seen)] = True
        if each.unordered:
            unordered.append(places(each.unordered).tolist())
        _add(edges, each, number, places)
    happened &= ~txns.has_failed
    core = _core(txns, happened, edges)
    for cycle in cycles_in(core, len(txns.indexes), poll):
        for name in names_of(cycle):
            note(name, *_keys_of(cycle))
    undecided = None
    if not any(map(level.forbids, anomalies)):
        undecided = _why_open(anomalies, unordered, kind, level, core, poll)
    return Together(anomalies, sorted({key for told in keys.values() for key in told}), undecided)


def _add(
    edges: Edges, found: KeyFindings, number: int, places: Callable[[Sequence[int]], Nodes]
) -> None:
    source, target, kind = (
        np.array(column, dtype=np.int64) for column in (found.sources, found.targets, found.kinds)
    )
    count = -min(int(source.min(initial=0)), int(target.min(initial=0)))
    stations = edges.stations(count)

    def node(named: Nodes) -> Nodes:
        is_station = named < 0
        nodes = places(np.where(is_station, 0, named).tolist())
        nodes[is_station] = stations[-1 - named[is_station]]
        return nodes

    proof = np.full(len(kind), number, dtype=np.int64)
    for one in np.unique(kind).tolist():
        of_kind = kind == one
        edges.add(node(source[of_kind]), node(target[of_kind]), one, proof[of_kind])


def _core(txns: Times, happened: Any, edges: Edges) -> list[Edge]:
    orders = Orders(txns, happened, edges)
    if orders.prove_no_cycle:
        return []
    places = orders.add()
    columns = edges.columns()
    kept = core_of(columns[0], columns[1], places)
    rows = np.stack([column[kept] for column in columns], axis=1)
    return [Edge(*row) for row in rows.tolist()]


def _keys_of(cycle: Cycle) -> list[int]:
    return [edge.proof for edge in cycle.edges if edge.proof >= 0]


def _why_open(
    anomalies: Counter[str],
    unordered: Sequence[Sequence[int]],
    kind: Kind,
    level: Level,
    core: Sequence[Edge],
    poll: Callable[[], None],
) -> str | None:
    if level.base == "read-uncommitted":
        if levels.INCOMPATIBLE_ORDER in anomalies:
            return "Reads contradict each other, so nothing is known of the order of versions."
        return None
    if not unordered or level.base == "read-committed":
        return None
    if kind == "rw-register" or are_lists_open(unordered, level, core, poll):
        return (
            "No anomaly was found, but the order of some writes that nobody had read before stays "
            "open; one process that has all reads may decide it."
        )
    return None
