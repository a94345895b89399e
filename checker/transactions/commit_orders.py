"""Commit orders in which nobody reads a version although a later one is in sight; pure.

A commit order holds all transactions, is true to processes, to reads and to the versions of lists,
and puts each transaction in sight of a read, if it wrote the key, before the one that was read. So
each read adds edges to what is certain, and an order exists if and only if there is no cycle. By
what is in sight there are three levels (``levels``), each with the edges of the ones before:

- *monotonic atomic view*: who was read from earlier in the reading transaction. Of each pair the
  smaller set of keys is gone through, so n operations cost n^1.5 at most;
- *read atomic*: also who was read from later, and the last writer of the key in the process;
- *causal*: all from which reads and processes lead there. A clock for each transaction counts how
  much of each process that is, and the last writer of the key among it is enough.

The beginning is before everything: in sight of a read of the beginning nobody may have written.
Sources: Biswas and Enea 2019, "On the complexity of checking transactional consistency"; Møldrup
and others 2025, "AWDIT: an optimal weak database isolation tester".
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.causal_past import CausalPast
from splitbrain.checker.transactions.cycles import Cycle, cycles_through
from splitbrain.checker.transactions.dependencies import (
    CAUSAL_SIGHT,
    EARLIER_SIGHT,
    PASS,
    PROCESS,
    TXN_SIGHT,
    WR,
    WW,
    Dependencies,
    Nodes,
)
from splitbrain.checker.transactions.graph import Edge, core_of

BEGINNING: Final = -1
#: Candidates that are looked at together.
_CHUNK: Final = 4_000_000
#: Sessions times transactions up to which pasts are looked at unasked.
_PAST_MAX: Final = 50_000_000
#: Kinds of edges, and the anomaly that a cycle with one is.
STAGES: Final = {
    EARLIER_SIGHT: levels.VANISHED,
    TXN_SIGHT: levels.FRACTURED,
    CAUSAL_SIGHT: levels.CAUSALITY,
}


class Sight(NamedTuple):
    """A writer in sight of a read of its key that showed another version."""

    kind: int
    writer: int
    #: Place in ``Table.reads``.
    read: int
    #: Transaction that was read from, or ``BEGINNING``.
    source: int


def sight_of(edge: Edge) -> Sight:
    """Return what an edge of a commit order stands for."""
    return Sight(edge.kind, edge.source, edge.proof, edge.target)


class Reads(NamedTuple):
    """Reads of others' versions, sorted by transaction, key and place."""

    txn: Nodes
    key: Nodes
    place: Nodes
    source: Nodes
    #: Place in ``Table.reads``.
    number: Nodes

    def __getitem__(self, rows: Nodes) -> "Reads":  # type: ignore[override]
        """Return some of them."""
        return Reads(*(column[rows] for column in self.columns()))

    def columns(self) -> tuple[Nodes, ...]:
        """Return the columns."""
        return (self.txn, self.key, self.place, self.source, self.number)


class CommitOrders:
    """Finder of what no commit order allows, by each of the three levels."""

    def __init__(self, found: Dependencies, poll: Callable[[], None]) -> None:
        self._found, self._poll = found, poll
        table = found.table
        self._columns = found.edges.columns()
        self._keys = len(table.keys)
        self.reads = reads_of(found, self._columns)
        self._places = int(self.reads.place.max(initial=0)) + 2
        happened = found.happened
        written = table.writes.txns * self._keys + table.writes.keys
        #: Writers and their keys, both as one number, sorted.
        self._written = distinct(written[happened[table.writes.txns]])
        self.past = CausalPast(found, self.reads.txn, self.reads.source)

    def _sights(self, kind: int) -> tuple[Nodes, Nodes]:
        """Return the writers in sight, and rows of ``reads``, that one kind adds; some twice."""
        if kind == EARLIER_SIGHT:
            parts = [*self._read_from(is_earlier=True), self._read_again()]
        elif kind == TXN_SIGHT:
            parts = [*self._read_from(is_earlier=False), self._of_process()]
        else:
            parts = list(self._of_past())
        nothing = np.zeros(0, dtype=np.int64)
        writer = np.concatenate([nothing, *(writers for writers, _ in parts)])
        row = np.concatenate([nothing, *(rows for _, rows in parts)])
        other = writer != self.reads.source[row]
        return writer[other], row[other]

    def _read_from(self, *, is_earlier: bool) -> Iterator[tuple[Nodes, Nodes]]:
        """Yield writers that were read from, and rows of reads of keys that they wrote.

        Of each key it is the next read that counts; a later one has the source of that in sight
        (``_read_again``).
        """
        reads = self.reads
        of_others = np.flatnonzero(reads.source != BEGINNING)
        order = of_others[np.lexsort((reads.place[of_others], reads.txn[of_others]))]
        pairs = reads.txn[order] * len(self._found.happened) + reads.source[order]
        _, first = np.unique(pairs, return_index=True)
        order = order[first]
        writers, txns, places = reads.source[order], reads.txn[order], reads.place[order]
        if not is_earlier:
            places = np.full(len(places), -1, dtype=np.int64)
        by_place = (reads.txn * self._keys + reads.key) * self._places + reads.place
        read = distinct(reads.txn * self._keys + reads.key)
        for pair, key in self._shared_keys(writers, txns, read):
            here = txns[pair] * self._keys + key
            row = np.searchsorted(by_place, here * self._places + places[pair], side="right")
            there = row < len(by_place)
            there[there] = by_place[row[there]] // self._places == here[there]
            yield writers[pair][there], row[there]

    def _read_again(self) -> tuple[Nodes, Nodes]:
        """Return the source of each read after which its transaction read the key again."""
        reads = self.reads
        again = (reads.txn[1:] == reads.txn[:-1]) & (reads.key[1:] == reads.key[:-1])
        row = np.flatnonzero(again & (reads.source[:-1] != BEGINNING))
        return reads.source[row], row + 1

    def _shared_keys(
        self, writers: Nodes, readers: Nodes, read: Nodes
    ) -> Iterator[tuple[Nodes, Nodes]]:
        """Yield pairs by number, and keys that the first of the two wrote and the second read.

        A few that the second did not read are among them.
        """
        count = len(self._found.happened) + 1
        bounds = np.arange(count) * self._keys
        written_at = np.searchsorted(self._written, bounds)
        read_at = np.searchsorted(read, bounds)
        writes = written_at[writers + 1] - written_at[writers]
        reads = read_at[readers + 1] - read_at[readers]
        for fewer, at, start, size in (
            (writes <= reads, self._written, written_at[writers], writes),
            (writes > reads, read, read_at[readers], reads),
        ):
            for chunk in in_chunks(np.flatnonzero(fewer), size):
                self._poll()
                pair, offset = expanded(chunk, size[chunk])
                key = at[start[pair] + offset] % self._keys
                has = np.ones(len(key), dtype=bool)
                if at is read:
                    has = np.isin(writers[pair] * self._keys + key, self._written)
                yield pair[has], key[has]

    def _of_process(self) -> tuple[Nodes, Nodes]:
        """Return the last writer of each read's key before it in its process."""
        reads, past = self.reads, self.past
        span = len(past.position) + 1
        txn, key = np.divmod(self._written, max(self._keys, 1))
        at = (past.session[txn] * self._keys + key) * span + past.position[txn]
        order = np.argsort(at)
        at, txn = at[order], txn[order]
        here = past.session[reads.txn] * self._keys + reads.key
        found = np.searchsorted(at, here * span + past.position[reads.txn]) - 1
        row = np.flatnonzero(found >= 0)
        row = row[at[found[row]] // span == here[row]]
        return txn[found[row]], row

    @cached_property
    def _writing_sessions(self) -> Nodes:
        """Processes that wrote anything."""
        return np.unique(self.past.session[self._written // max(self._keys, 1)])

    def _of_past(self) -> Iterator[tuple[Nodes, Nodes]]:
        """Yield the last writers of each read's key in its past, unless its source knew them."""
        reads, past = self.reads, self.past
        by_key = np.argsort(reads.key, kind="stable")
        reads = reads[by_key]
        span = len(past.position) + 1
        txn, key = np.divmod(self._written, max(self._keys, 1))
        for session, clock in past.clocks(self._writing_sessions, self._poll):
            own = past.session[txn] == session
            at = key[own] * span + past.position[txn[own]]
            order = np.argsort(at)
            at, writers = at[order], txn[own][order]
            seen = clock[reads.txn]
            mine = past.session[reads.txn] == session
            seen[mine] = past.position[reads.txn[mine]]
            found = np.searchsorted(at, reads.key * span + seen) - 1
            row = np.flatnonzero(found >= 0)
            row = row[at[found[row]] // span == reads.key[row]]
            writer, source = writers[found[row]], reads.source[row]
            unknown = (source == BEGINNING) | (clock[source] <= past.position[writer])
            yield writer[unknown], by_key[row[unknown]]

    @property
    def is_past_costly(self) -> bool:
        """Return whether the pasts of all sessions take minutes; an open one each is one, too."""
        return len(self._writing_sessions) * len(self._found.happened) > _PAST_MAX

    def violations(self, kinds: Collection[int] = tuple(STAGES)) -> Iterator[Sight | Cycle]:
        """Yield writers in sight of reads of the beginning, and cycles of commit orders."""
        source, target, kind, proof = self._columns
        certain = np.isin(kind, (WW, WR, PROCESS, PASS))
        columns = [column[certain] for column in (source, target, kind, proof)]
        stages = [(kind, *self._sights(kind)) for kind in kinds]
        if not self._is_any(columns, stages):
            return
        known = np.zeros(0, dtype=np.int64)
        for stage, writers, rows in stages:
            writer, row, known = self._not_known(writers, rows, known)
            behind = self.reads.source[row]
            number = self.reads.number[row]
            # One for each key is enough.
            of_beginning = np.flatnonzero(behind == BEGINNING)
            _, first = np.unique(self.reads.key[row[of_beginning]], return_index=True)
            for place in of_beginning[first].tolist():
                yield Sight(stage, int(writer[place]), int(number[place]), BEGINNING)
            firm = behind != BEGINNING
            kinds = np.full(int(firm.sum()), stage, dtype=np.int64)
            new = (writer[firm], behind[firm], kinds, number[firm])
            columns = [np.concatenate(pair) for pair in zip(columns, new, strict=True)]
            kept = core_of(columns[0], columns[1])
            edges = [Edge(*each) for each in np.stack(columns, axis=1)[kept].tolist()]
            transactions = len(self._found.happened)
            yield from cycles_through(STAGES[stage], stage, edges, transactions, self._poll)

    def _is_any(self, certain: Sequence[Nodes], stages: Sequence[tuple[int, Nodes, Nodes]]) -> bool:
        """Return whether there is a violation of any of the levels, or a cycle without sights."""
        writer = np.concatenate([writers for _, writers, _ in stages])
        behind = self.reads.source[np.concatenate([rows for _, _, rows in stages])]
        if bool((behind == BEGINNING).any()):
            return True
        source = np.concatenate([certain[0], writer])
        target = np.concatenate([certain[1], behind])
        return bool(core_of(source, target).any())

    def _not_known(self, writer: Nodes, row: Nodes, known: Nodes) -> tuple[Nodes, Nodes, Nodes]:
        """Return each sight once that is not known yet, and what is known with them."""
        count = max(len(self.reads.txn), 1)
        both = distinct(writer * count + row)
        both = both[~np.isin(both, known)]
        return *np.divmod(both, count), np.concatenate([known, both])


def distinct(values: Nodes) -> Nodes:
    """Return each value once, sorted; faster than ``numpy.unique``, which hashes."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def reads_of(found: Dependencies, columns: tuple[Nodes, Nodes, Nodes, Nodes]) -> Reads:
    """Return the reads of others' versions, and of the beginning."""
    table = found.table
    writer, _, kind, proof = columns
    is_read = kind == WR
    empty = np.flatnonzero(table.reads.external & table.reads.are_empty)
    number = np.concatenate([proof[is_read], empty])
    source = np.concatenate(
        [writer[is_read], np.full(len(empty), BEGINNING, dtype=np.int64)],
    )
    txn, key, place = (
        column[number] for column in (table.reads.txns, table.reads.keys, table.reads.places)
    )
    order = np.lexsort((place, key, txn))
    return Reads(txn, key, place, source, number)[order]


def expanded(items: Nodes, sizes: Nodes) -> tuple[Nodes, Nodes]:
    """Return each item as often as its size says, and a count from zero beside it."""
    ends = np.cumsum(sizes)
    offset = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    return np.repeat(items, sizes), offset


def in_chunks(items: Nodes, size: Nodes) -> Iterator[Nodes]:
    """Cut items so that the sizes of each part make no more than ``_CHUNK``, or it is one item."""
    total = np.cumsum(size[items])
    begin = 0
    while begin < len(items):
        before = total[begin - 1] if begin else 0
        end = max(int(np.searchsorted(total, before + _CHUNK, side="right")), begin + 1)
        yield items[begin:end]
        begin = end
