"""Versions of registers, and the dependencies and anomalies that they show; pure.

A value tells its writer, and nothing is before the beginning. A transaction that read a version and
wrote the key replaced that version or a later one, if no cycle of reads exists (G1c): an edge that
rests on this is enough against each level that forbids its cycle, for all of those forbid G1c too.
Overwrites alone (G0) are never claimed. Where a transaction wrote a key that it had not read, its
place among the versions is open. Source: Kingsbury and Alvaro 2020, section 5.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import (
    DIRECT_MAX,
    RW,
    WR,
    Anomaly,
    Dependencies,
    Edges,
    Nodes,
    called,
    has_happened,
)
from splitbrain.checker.transactions.micro_operations import Groups, Table, names_of
from splitbrain.checker.transactions.own_history import lost_update, note_internal

#: Version of a register before anybody wrote it.
_BEGINNING: Final = -1
#: Version of a value that nobody wrote.
_NOBODYS: Final = -2


def register_dependencies(table: Table, poll: Callable[[], None]) -> Dependencies:
    """Infer everything that the reads of a register history show."""
    inference = _Inference(table, poll)
    inference.note_reads()
    inference.note_replaced()
    inference.add_edges()
    note_internal(table, inference.anomalies)
    return Dependencies(
        table, inference.edges, inference.anomalies, inference.happened, inference.unordered()
    )


class _Inference:
    def __init__(self, table: Table, poll: Callable[[], None]) -> None:
        self._table, self._poll = table, poll
        self.anomalies: list[Anomaly] = []
        self.edges = Edges(len(table.operations))
        #: Write that each read shows, ``_BEGINNING`` or ``_NOBODYS``.
        self._shown = self._versions_read()
        self.happened = has_happened(table, self._shown[self._shown >= 0])
        #: Reads that show the version which a transaction replaced: of each transaction and key the
        #: first one before its first write.
        self._replaced = self._replaced_versions()
        #: The same of the version before, as places in ``_replaced``; -1 for none.
        self._before = self._replaced_before()

    def _versions_read(self) -> Nodes:
        table = self._table
        shown = np.empty(len(table.reads), dtype=np.int64)
        names = names_of(table.reads.values)
        for key in range(len(table.keys)):
            self._poll()
            reads = table.reads_by_key.of(key)
            writers = {**table.writers(key), None: _BEGINNING}
            shown[reads] = [writers.get(names[read], _NOBODYS) for read in reads.tolist()]
        return shown

    def _writers_of(self, versions: Nodes) -> Nodes:
        """Return the transactions that wrote versions; -1 for those without."""
        known = versions >= 0
        txns = np.full(len(versions), -1, dtype=np.int64)
        txns[known] = self._table.writes.txns[versions[known]]
        return txns

    def _replaced_versions(self) -> Nodes:
        reads = self._table.reads
        found = self._table.read_then_written[0]
        found = found[reads.external[found] & (self._shown[found] != _NOBODYS)]
        _, first = np.unique(self._pair(reads.txns[found], reads.keys[found]), return_index=True)
        return found[np.sort(first)]

    def _pair(self, txns: Nodes, keys: Nodes) -> Nodes:
        """Return a number for each pair of a transaction and a key."""
        return txns * len(self._table.keys) + keys

    def _replaced_before(self) -> Nodes:
        reads, replaced = self._table.reads, self._replaced
        writers = self._writers_of(self._shown[replaced])
        pairs = self._pair(reads.txns[replaced], reads.keys[replaced])
        order = np.argsort(pairs)
        wanted = self._pair(writers, reads.keys[replaced])
        at = np.searchsorted(pairs[order], wanted)
        before = np.append(order, -1)[at]
        is_there = (writers >= 0) & (writers != reads.txns[replaced]) & (before >= 0)
        is_there[is_there] = pairs[before[is_there]] == wanted[is_there]
        return np.where(is_there, before, -1)

    def note_reads(self) -> None:
        """Note what single reads show."""
        table, reads, shown = self._table, self._table.reads, self._shown
        writers = self._writers_of(shown)
        is_own = writers == reads.txns
        odd = shown == _NOBODYS
        known = np.flatnonzero(shown >= 0)
        write = shown[known]
        is_later = table.writes.places[write] > reads.places[known]
        is_settled = table.last_writes[write] == write
        is_wrong = table.has_failed[writers[known]] | ~is_settled
        odd[known] = np.where(is_own[known], is_later, is_wrong)
        for number in np.flatnonzero(odd).tolist():
            self._note(number, int(shown[number]))

    def _note(self, number: int, write: int) -> None:
        table, read = self._table, self._table.reads[number]
        key = table.keys[read.key]
        told = f"{called(table, read.txn)} read {text_of(read.value)} of key {text_of(key)}"
        if write == _NOBODYS:
            self._add(levels.PHANTOM_VALUE, (read.txn,), key, f"{told}, which nobody wrote.")
            return
        writer = table.writes[write]
        by = called(table, writer.txn)
        if writer.txn == read.txn:
            told = f"{told} before it wrote it itself."
            self._add(levels.FUTURE_READ, (read.txn,), key, told)
        elif table.operations[writer.txn].type == "fail":
            told = f"{told}, written by {by}, which certainly failed."
            self._add(levels.ABORTED_READ, (writer.txn, read.txn), key, told)
            self._note_dirty_update(number, writer.txn)
        else:
            told = f"{told}, which {by} wrote and then replaced itself."
            self._add(levels.INTERMEDIATE_READ, (writer.txn, read.txn), key, told)

    def _note_dirty_update(self, number: int, failed: int) -> None:
        table, read = self._table, self._table.reads[number]
        last = self._last_value(read.txn, read.key)
        if last is None or not read.external:
            return
        key = table.keys[read.key]
        told = (
            f"{called(table, read.txn)} wrote {text_of(last)} to key "
            f"{text_of(key)} after it had read {text_of(read.value)} of "
            f"{called(table, failed)}, which certainly failed."
        )
        self._add(levels.DIRTY_UPDATE, (failed, read.txn), key, told)

    def _last_value(self, txn: int, key: int) -> Any:
        """Return what a transaction wrote last to a key; None if nothing."""
        writes = self._table.writes_by_key.of(key)
        own = writes[self._table.writes.txns[writes] == txn]
        return self._table.writes.values[own[-1]] if len(own) else None

    def _add(self, name: str, txns: tuple[int, ...], key: Any, sentence: str) -> None:
        self.anomalies.append(Anomaly(name, txns, key, sentence))

    def _version_numbers(self, versions: Nodes, keys: Nodes) -> Nodes:
        """Return a number for each version; the beginnings of keys have their own."""
        return np.where(versions == _BEGINNING, keys, len(self._table.keys) + versions)

    def note_replaced(self) -> None:
        """Note versions that were replaced twice, and cycles of versions."""
        table, replaced = self._table, self._replaced
        keys = table.reads.keys[replaced]
        versions = self._version_numbers(self._shown[replaced], keys)
        _, first, counts = np.unique(versions, return_index=True, return_counts=True)
        for place in np.sort(first[counts > 1]).tolist():
            other = place + 1 + int(np.argmax(versions[place + 1 :] == versions[place]))
            read = table.reads[int(replaced[place])]
            second = int(table.reads.txns[replaced[other]])
            self.anomalies.append(lost_update(table, read.txn, second, read.key, read.value))
        ahead, steps = self._before, 1
        while steps < len(ahead) and np.any(ahead >= 0):
            ahead = np.where(ahead >= 0, ahead[ahead], -1)
            steps *= 2
        if np.any(ahead >= 0):
            self._note_cyclic_versions()

    def _note_cyclic_versions(self) -> None:
        """Go back from each version to the one that it replaced; a walk that returns is a cycle."""
        before: list[int] = self._before.tolist()
        done: set[int] = set()
        for start in range(len(before)):
            walk: list[int] = []
            at = start
            while at >= 0 and at not in done:
                done.add(at)
                walk.append(at)
                at = before[at]
            if at in walk:
                self._tell_cycle(walk[walk.index(at) :])

    def _tell_cycle(self, cycle: list[int]) -> None:
        table = self._table
        reads = [table.reads[int(self._replaced[place])] for place in cycle]
        key = table.keys[reads[0].key]
        steps = [
            f"{called(table, read.txn)} read {text_of(read.value)} "
            f"and wrote {text_of(self._last_value(read.txn, read.key))}"
            for read in reads
        ]
        told = f"Of key {text_of(key)}, {'; '.join(steps)}: each version is older than itself."
        self._add(levels.CYCLIC_VERSIONS, tuple(read.txn for read in reads), key, told)

    def add_edges(self) -> None:
        """Add reads-from edges, and those from readers to who replaced what they had read."""
        reads = self._table.reads
        writers = self._writers_of(self._shown)
        known = (writers >= 0) & self.happened[writers]
        others = np.flatnonzero(known & (writers != reads.txns))
        self.edges.add(writers[others], reads.txns[others], WR, others)
        usable = np.flatnonzero(known | (self._shown == _BEGINNING))
        versions = self._settled(usable)
        # Once for each version and transaction, and readers of a version one behind the other.
        order = np.lexsort((usable, reads.txns[usable], versions))
        again = np.diff(versions[order]) == 0
        again &= np.diff(reads.txns[usable[order]]) == 0
        order = np.sort(order[np.insert(~again, 0, [True] * (len(order) > 0))])
        usable, versions = usable[order], versions[order]
        _, first, number = np.unique(versions, return_index=True, return_inverse=True)
        order = np.argsort(first[number], kind="stable")
        self._add_replacing(usable[order], versions[order])

    def _settled(self, reads: Nodes) -> Nodes:
        """Return the numbers of versions; one behind an early write is behind the last one."""
        versions = self._shown[reads]
        written = versions >= 0
        versions[written] = self._table.last_writes[versions[written]]
        return self._version_numbers(versions, self._table.reads.keys[reads])

    def _add_replacing(self, readers: Nodes, versions: Nodes) -> None:
        """Add edges from reads, once for each transaction and version, to who replaced these."""
        table = self._table
        blind = self._writes_without_reading()
        targets = np.concatenate((table.reads.txns[self._replaced], table.writes.txns[blind]))
        replaced = np.concatenate((self._settled(self._replaced), table.writes.keys[blind]))
        count = len(table.keys) + len(table.writes)
        after, before = Groups(replaced, count), Groups(versions, count)
        targets = targets[after.order]
        sizes = np.diff(after.begins)
        products = sizes * np.diff(before.begins)
        direct = products[versions] <= DIRECT_MAX
        sources, repeats = readers[direct], sizes[versions[direct]]
        within: Nodes = np.arange(int(repeats.sum())) - np.repeat(
            np.cumsum(repeats) - repeats, repeats
        )
        target = targets[np.repeat(after.begins[versions[direct]], repeats) + within]
        proof = np.repeat(sources, repeats)
        source = table.reads.txns[proof]
        apart = source != target
        self.edges.add(source[apart], target[apart], RW, proof[apart])
        for version in np.flatnonzero(products > DIRECT_MAX).tolist():
            proofs = readers[before.of(version)]
            fan = zip(table.reads.txns[proofs].tolist(), proofs.tolist(), strict=True)
            several = targets[after.begins[version] : after.begins[version + 1]]
            self.edges.fan(fan, RW, several.tolist())

    def _writes_without_reading(self) -> Nodes:
        """Return first writes to a key that their transaction had not read."""
        writes, reads = self._table.writes, self._table.reads
        is_first = self.happened[writes.txns]
        is_first[self._table.successive[1]] = False
        replaced = self._pair(reads.txns[self._replaced], reads.keys[self._replaced])
        is_first &= ~np.isin(self._pair(writes.txns, writes.keys), replaced)
        return np.flatnonzero(is_first)

    def unordered(self) -> list[tuple[Any, list[int]]]:
        """Return transactions that wrote a key unread, where that leaves an order open."""
        table = self._table
        shown = self._shown[self._replaced]
        own = self._writers_of(shown) == table.reads.txns[self._replaced]
        from_beginning = table.reads.keys[self._replaced[own | (shown == _BEGINNING)]]
        known = np.bincount(from_beginning, minlength=len(table.keys))
        found: dict[int, list[int]] = {}
        blind = self._writes_without_reading()
        columns = table.writes.keys[blind].tolist(), table.writes.txns[blind].tolist()
        for key, txn in zip(*columns, strict=True):
            found.setdefault(key, []).append(txn)
        return [
            (table.keys[key], txns) for key, txns in found.items() if len(txns) + known[key] > 1
        ]
