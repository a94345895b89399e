"""Sentences on dependencies between transactions on rows; pure."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions.cycles import Cycle
from splitbrain.checker.transactions.dependencies import (
    OF_PREDICATES,
    PREDICATE_RW_PROCESS,
    PREDICATE_RW_REALTIME,
    PROCESS,
    REALTIME,
    RW,
    WR,
)
from splitbrain.checker.transactions.graph import Edge
from splitbrain.checker.transactions.micro_operations import hashable, kind_of
from splitbrain.checker.transactions.row_anomalies import called_row, called_txn
from splitbrain.checker.transactions.row_choices import Variable
from splitbrain.checker.transactions.row_operations import NOBODY, RowTable
from splitbrain.checker.transactions.telling import edges_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

_MS: Final = 1_000_000


class RowTeller:
    """Teller of the cycles of one history; the proof of an edge is a row."""

    def __init__(self, table: RowTable) -> None:
        self._table = table

    def edge(self, edge: Edge, *, is_supposed: bool = False) -> str:
        """Return the sentence on one edge, without its full stop.

        A supposed edge is not told with its reason.
        """
        first, second = (called_txn(self._table, each) for each in (edge.source, edge.target))
        if edge.kind == PROCESS:
            return f"{second} came after {first} in the same process"
        if edge.kind == REALTIME:
            return f"{first} had ended before {second} began{self._gap(edge)}"
        row, found = self._table.rows[edge.proof], called_row(self._table, edge.proof)
        if edge.kind in OF_PREDICATES:
            met = "met no" if row.deleter == edge.source else "was not shown"
            why = "" if is_supposed else self._not_gone(edge)
            return f"{first} {met} {found}, which {second} inserted{why}"
        if edge.kind == RW:
            return f"{first} was shown {found}, which {second} deleted"
        if edge.kind == WR and row.inserter == edge.source:
            return f"{second} was shown {found}, which {first} inserted"
        if edge.kind == WR:
            return f"{second} was no longer shown {found}, which {first} had deleted"
        return f"{second} deleted {found}, which {first} had inserted"

    def _not_gone(self, edge: Edge) -> str:
        """Return why a missing row was not gone yet."""
        deleter = self._table.rows[edge.proof].deleter
        if deleter in (NOBODY, edge.source, edge.target):
            return ""
        told = called_txn(self._table, deleter)
        if edge.kind == PREDICATE_RW_PROCESS:
            return f" (and {told} deleted only after it, by the order of processes)"
        if edge.kind == PREDICATE_RW_REALTIME:
            return f" (and {told} deleted only after it, in time)"
        return f" (and {told} deleted only after it, by what was shown)"

    def _gap(self, edge: Edge) -> str:
        end = self._table.operations[edge.source].end
        gap = 0 if end is None else self._table.operations[edge.target].start - end
        return f", {gap / _MS:,.0f} ms later" if gap >= _MS else ""

    def cycle(self, cycle: Cycle) -> str:
        """Return the sentence on a whole cycle."""
        steps = [self.edge(edge) for edge in cycle.edges]
        listed = f"{'; '.join(steps[:-1])}; and {steps[-1]}"
        return f"None of these {len(steps)} can be first: {listed}."

    def supposition(self, variable: Variable, *, is_true: bool) -> str:
        """Return the sentence on one way of a variable, without its full stop."""
        txn = called_txn(self._table, variable.txn)
        if variable.way == "happened":
            return f"{txn}, which has no answer, {'happened' if is_true else 'never happened'}"
        row = called_row(self._table, variable.row)
        if variable.way == "missing":
            return f"{row} was {'not there yet' if is_true else 'gone already'} for {txn}"
        is_met = is_true == (variable.way == "met")
        met = "met" if is_met else "did not meet"
        return f"{txn}, which has no answer, {met} {row} to delete it"

    def groups_of(self, edges: Sequence[Edge]) -> list[Any]:
        """Return the groups that a cycle rests on."""
        rows = [edge.proof for edge in edges if edge.kind not in (PROCESS, REALTIME)]
        return [
            self._table.groups[group]
            for group in dict.fromkeys(self._table.rows[row].group for row in rows)
        ]

    def shown(self, txn: int, groups: Sequence[Any]) -> PairedOperation:
        """Return a transaction with those micro-operations alone that touch some groups."""
        operation = self._table.operations[txn]
        parts = operation.result if operation.type == "ok" else operation.argument
        texts = [
            f"{kind_of(function)} {text_of(name)} {'nothing' if row is None else shown(row)}"
            for function, name, row in parts
            if hashable(name) in groups
        ]
        return msgspec.structs.replace(operation, argument=", ".join(texts))

    def edges(self, cycle: Cycle) -> list[dict[str, Any]]:
        """Return the edges of a cycle as data."""
        return edges_of(cycle, self._table.operations, self.edge)
