"""Sentences on cycles: one for each edge, with the two transactions and what proves it; pure."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.cycles import Cycle
from splitbrain.checker.transactions.dependencies import (
    KIND_NAMES,
    NO_PROOF,
    PASS,
    PROCESS,
    REALTIME,
    RW,
    WR,
    called,
)
from splitbrain.checker.transactions.graph import Edge
from splitbrain.checker.transactions.micro_operations import Table, hashable, kind_of
from splitbrain.history.records import PairedOperation

_MS: Final = 1_000_000


class Teller:
    """Teller of the cycles of one history."""

    def __init__(
        self, table: Table, *, are_lists: bool, sight: Callable[[Edge], str] | None = None
    ) -> None:
        """``sight`` tells of edges of commit orders."""
        self._table, self._are_lists, self._sight = table, are_lists, sight

    def edge(self, edge: Edge) -> str:
        """Return the sentence on one edge, without its full stop."""
        first, second = called(self._table, edge.source), called(self._table, edge.target)
        if edge.kind == PROCESS:
            return f"{second} came after {first} in the same process"
        if edge.kind == REALTIME:
            return f"{first} had ended before {second} began{self._gap(edge)}"
        if edge.kind > PASS and self._sight is not None:
            return self._sight(edge)
        if edge.kind == RW:
            return self._replaced(edge, first, second)
        if edge.kind == WR:
            read = self._table.reads[edge.proof]
            key = self._key(read.key)
            value = self._last_of(edge.source, read.key, read.value)
            shows = f", which shows {value}" if self._are_lists else ", written"
            return f"{second} read {text_of(read.value)} of key {key}{shows} by {first}"
        if edge.proof == NO_PROOF:
            return f"{second} came behind {first} by that"
        return self._appended(edge, first, second)

    def _replaced(self, edge: Edge, first: str, second: str) -> str:
        read = self._table.reads[edge.proof]
        key = self._key(read.key)
        told = f"{first} read {text_of(read.value)} of key {key}"
        if not self._are_lists:
            value = text_of(self._written(edge.target, read.key)[-1])
            return f"{told}, which {second} replaced, writing {value}"
        behind = next(v for v in self._written(edge.target, read.key) if v not in read.value)
        return f"{told}, without {text_of(behind)}, which {second} appended"

    def _appended(self, edge: Edge, first: str, second: str) -> str:
        if edge.proof < 0:
            write = self._table.writes[-2 - edge.proof]
            key = self._key(write.key)
            behind = text_of(self._written(edge.target, write.key)[-1])
            return (
                f"{second} appended {behind} to key {key}, which no read shows, so it stands "
                f"behind {text_of(write.value)} of {first}"
            )
        write = self._table.writes[edge.proof]
        before = self._written(edge.source, write.key)
        what = f"{text_of(before[0])} of {first}" if len(before) == 1 else f"what {first} appended"
        return (
            f"{second} appended {text_of(write.value)} to key {self._key(write.key)} behind {what}"
        )

    def _last_of(self, txn: int, key: int, shown: list[Any]) -> str:
        if not self._are_lists:
            return ""
        values = [value for value in self._written(txn, key) if value in shown]
        return text_of(values[-1])

    def _written(self, txn: int, key: int) -> list[Any]:
        return written_by(self._table, txn, key)

    def _key(self, key: int) -> str:
        return text_of(self._table.keys[key])

    def _gap(self, edge: Edge) -> str:
        end = self._table.operations[edge.source].end
        start = self._table.operations[edge.target].start
        gap = 0 if end is None else start - end
        return f", {gap / _MS:,.0f} ms later" if gap >= _MS else ""

    def cycle(self, cycle: Cycle) -> str:
        """Return the sentence on a whole cycle."""
        steps = [self.edge(edge) for edge in cycle.edges]
        listed = f"{'; '.join(steps[:-1])}; and {steps[-1]}"
        return f"None of these {len(steps)} can be first: {listed}."

    def keys_of(self, cycle: Cycle) -> list[int]:
        """Return the keys that a cycle rests on."""
        found: dict[int, None] = {}
        for edge in cycle.edges:
            if edge.kind in (WR, RW) or edge.kind > PASS:
                found[self._table.reads[edge.proof].key] = None
            elif edge.kind not in (PROCESS, REALTIME):
                proof = edge.proof if edge.proof >= 0 else -2 - edge.proof
                found[self._table.writes[proof].key] = None
        return list(found)

    def shown(self, txn: int, keys: Collection[Any]) -> PairedOperation:
        """Return a transaction with those micro-operations alone that touch some keys."""
        return shown_with(self._table.operations[txn], keys)

    def edges(self, cycle: Cycle) -> list[dict[str, Any]]:
        """Return the edges of a cycle as data."""
        return edges_of(cycle, self._table.operations, self.edge)


def names_of(cycle: Cycle) -> list[str]:
    """Return the names of the anomalies that a cycle is, the most telling first.

    A long fork, by a plain cycle: two readers saw two writes in different orders.
    """
    kinds = [edge.kind for edge in cycle.edges]
    is_fork = cycle.name == levels.G_NONADJACENT and kinds in ([RW, WR, RW, WR], [WR, RW, WR, RW])
    return [levels.LONG_FORK, cycle.name] if is_fork else [cycle.name]


def edges_of(
    cycle: Cycle, operations: Sequence[PairedOperation], sentence_on: Callable[[Edge], str]
) -> list[dict[str, Any]]:
    """Return the edges of a cycle as data, each with its sentence."""
    return [
        {
            "from": operations[edge.source].index,
            "to": operations[edge.target].index,
            "kind": KIND_NAMES[edge.kind],
            "sentence": f"{sentence_on(edge)}.",
        }
        for edge in cycle.edges
    ]


def written_by(table: Table, txn: int, key: int) -> list[Any]:
    """Return the values that a transaction wrote to a key, in their order."""
    return [
        value
        for function, other, value in table.operations[txn].argument
        if kind_of(function) != "r" and hashable(other) == table.keys[key]
    ]


def shown_with(operation: PairedOperation, keys: Collection[Any]) -> PairedOperation:
    """Return a transaction for people, with those micro-operations alone that touch some keys."""
    parts = operation.result if operation.type == "ok" else operation.argument
    texts = [
        f"{kind_of(function)} {text_of(name)} {text_of(value)}"
        for function, name, value in parts
        if hashable(name) in keys
    ]
    return msgspec.structs.replace(operation, argument=", ".join(texts))
