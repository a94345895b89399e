"""Dependencies between the transactions of a history, as columns, and what they were found from.

A dependency is an edge: the second transaction comes after the first.

- ``ww``: it overwrote a version of the first, or appended behind it;
- ``wr``: it read a version of the first;
- ``rw``: the first had read a version that the second replaced, or a predicate before a row that
  the second inserted;
- ``process``, ``realtime``: it began after the first had ended, in its process or anywhere;
- ``commit``: a read showed a version of it with the first in sight (``commit_orders``).

Where each of many comes before each of many others, the edges go through *stations*: nodes that are
no transactions, which edges of kind ``PASS`` leave. So their number stays linear. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.micro_operations import Table

WW, WR, RW = range(3)
#: Anti-dependencies of predicate reads: by the reads alone, or by an order of transactions, too.
PREDICATE_RW, PREDICATE_RW_PROCESS, PREDICATE_RW_REALTIME = range(3, 6)
PROCESS, REALTIME, PASS = range(6, 9)
#: Edges of commit orders, by what was in sight: of earlier reads, all reads, or the past.
EARLIER_SIGHT, TXN_SIGHT, CAUSAL_SIGHT = range(9, 12)
KIND_NAMES: Final = (
    *("ww", "wr", "rw", *["rw"] * 3),
    *("process", "realtime", "pass", *["commit"] * 3),
)
OF_PREDICATES: Final = frozenset({PREDICATE_RW, PREDICATE_RW_PROCESS, PREDICATE_RW_REALTIME})
ANTI_DEPENDENCIES: Final = OF_PREDICATES | {RW}
#: No read and no write that an edge was found from.
NO_PROOF: Final = -1
#: Direct edges instead of stations up to so many.
DIRECT_MAX: Final = 64

Nodes = NDArray[np.int64]


def proof_of_earlier(write: int) -> int:
    """Return the proof of ww edges that go from one write to all that came later."""
    return -2 - write


class Edges:
    """Growing columns of edges.

    ``nodes`` is the number of transactions; stations are numbered from there on.
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._parts: list[tuple[Nodes, Nodes, Nodes, Nodes]] = []
        self._single: list[tuple[int, int, int, int]] = []

    def add(self, source: Nodes, target: Nodes, kind: int, proof: Nodes | None = None) -> None:
        """Add edges; ``proof`` is the read of a wr or rw edge, the later write of a ww edge."""
        kinds = np.full(len(source), kind, dtype=np.int64)
        proofs = np.full(len(source), NO_PROOF, dtype=np.int64) if proof is None else proof
        self._parts.append((source, target, kinds, proofs))

    def add_one(self, source: int, target: int, kind: int, proof: int = NO_PROOF) -> None:
        """Add one edge."""
        self._single.append((source, target, kind, proof))

    def stations(self, count: int) -> Nodes:
        """Return several new nodes that are no transactions."""
        self.nodes += count
        return np.arange(self.nodes - count, self.nodes)

    def fan(self, sources: Iterable[tuple[int, int]], kind: int, targets: Sequence[int]) -> None:
        """Add an edge from each source, with its proof, to each target but itself."""
        several = list(sources)
        if len(several) * len(targets) <= DIRECT_MAX:
            for source, proof in several:
                for target in targets:
                    if source != target:
                        self.add_one(source, target, kind, proof)
            return
        # From a station all targets up to it, and all from it on, can be reached.
        up_to, onwards = self.stations(len(targets)), self.stations(len(targets))
        ends = np.array(targets, dtype=np.int64)
        self.add(up_to, ends, PASS)
        self.add(onwards, ends, PASS)
        self.add(up_to[1:], up_to[:-1], PASS)
        self.add(onwards[:-1], onwards[1:], PASS)
        places = {target: place for place, target in enumerate(targets)}
        source, proof = np.array(several, dtype=np.int64).T
        place = np.array([places.get(txn, -1) for txn, _ in several], dtype=np.int64)
        # One that is no target comes before all of them.
        before, behind = place > 0, place < len(targets) - 1
        self.add(source[before], up_to[place[before] - 1], kind, proof[before])
        self.add(source[behind], onwards[place[behind] + 1], kind, proof[behind])

    def columns(self) -> tuple[Nodes, Nodes, Nodes, Nodes]:
        """Return sources, targets, kinds and proofs."""
        single = np.array(self._single, dtype=np.int64).reshape(-1, 4)
        parts = [*self._parts, tuple(single.T)]
        source, target, kind, proof = (
            np.concatenate([part[n] for part in parts]) for n in range(4)
        )
        return source, target, kind, proof


class Anomaly(NamedTuple):
    """One violation that is no cycle."""

    name: str
    #: Transactions, as places in ``Table.operations``.
    txns: tuple[int, ...]
    key: Any
    sentence: str


class Dependencies(NamedTuple):
    """Dependencies of a history by its versions, without orders of processes and of real time."""

    table: Table
    edges: Edges
    anomalies: list[Anomaly]
    #: Whether each transaction certainly happened: it is ok, or something that it wrote was read.
    happened: NDArray[np.bool_]
    #: Groups of transactions that wrote one key in an order that nobody saw.
    unordered: list[tuple[Any, list[int]]]


def has_happened(table: Table, read_writes: Nodes) -> NDArray[np.bool_]:
    """Return which transactions happened; ``read_writes`` are the writes that somebody read."""
    happened = table.is_ok | table.seen_elsewhere
    happened[table.writes.txns[read_writes]] = True
    return happened & ~table.has_failed


def called(table: Table, txn: int) -> str:
    """Return a transaction for a sentence."""
    operation = table.operations[txn]
    return f"transaction {operation.index} (process {operation.process})"
