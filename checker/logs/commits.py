"""Commits of transactions on logs: by when each was, and whether each can come after its sources.

Each commits at one moment between its ends, and behind all that it read. Once others have read of
it, everything else that it sent is committed, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import networkx as nx

from splitbrain.checker.evidence import describe_operation
from splitbrain.checker.findings import end_of
from splitbrain.history.records import PairedOperation

#: Without types, which say nothing of edges.
_NX: Final = cast("Any", nx)


class Commits:
    """Transactions of a history, and who read of them."""

    def __init__(self, by_index: Mapping[int, PairedOperation]) -> None:
        self._by_index = by_index
        #: From each transaction to whoever read of it.
        self._graph: nx.DiGraph[int] = nx.DiGraph()
        #: Operation by whose end a transaction was committed, where others read of it.
        self._committed_by: dict[int, PairedOperation] = {}

    def __bool__(self) -> bool:
        """Whether anybody read of a transaction."""
        return bool(self._committed_by)

    def note_read(self, sender: PairedOperation, reader: PairedOperation) -> None:
        """Note that an operation read what a transaction sent."""
        self._graph.add_edge(sender.index, reader.index)

    def bound(self) -> None:
        """Find by when each was committed, once all reads are noted."""
        for found in reversed([*self._in_order()]):
            known = [self._by_index[one] for one in found if self._by_index[one].end is not None]
            readers = {reader for one in found for reader in self._graph.successors(one)}
            known += [self._committed_by[one] for one in readers.difference(found)]
            self._committed_by.update(dict.fromkeys(found, min(known, key=end_of)))

    def committed_by(self, transaction: PairedOperation) -> PairedOperation | None:
        """Return by whose end a transaction was committed, where others read of it."""
        return self._committed_by.get(transaction.index)

    def contradictions(self) -> Iterator[tuple[list[PairedOperation], str]]:
        """Yield transactions that read in a circle, or of what began once they had ended."""
        earliest: dict[int, tuple[int, int]] = {}
        for found in self._in_order():
            if len(found) > 1:
                edges: list[tuple[int, int]] = _NX.find_cycle(self._graph.subgraph(found))
                cycle = [self._by_index[one] for one, _ in edges]
                texts = ", ".join(map(describe_operation, cycle))
                yield cycle, f"Each of these read what the one before sent: {texts}."
            for reader in found:
                own = self._by_index[reader]
                sources = (earliest[w] for w in self._graph.predecessors(reader) if w in earliest)
                earliest[reader] = max([(own.start, reader), *sources])
                start, of = earliest[reader]
                if own.end is not None and own.end < start:
                    sentence = (
                        f"The {own.f} of index {reader} read what rests on the txn of index {of}, "
                        "which began after it had ended."
                    )
                    yield [own, self._by_index[of]], sentence

    def _in_order(self) -> Iterator[list[int]]:
        """Yield those that read of each other, behind those that they read from."""
        condensed = nx.condensation(self._graph)
        for members in nx.topological_sort(condensed):
            yield sorted(condensed.nodes[members]["members"])
