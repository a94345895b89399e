"""Versions of registers, and the dependencies and anomalies that they show; pure.

A value tells its writer, and nothing is before the beginning. A transaction that read a version and
wrote the key replaced that version or a later one, if no cycle of reads exists (G1c): an edge that
rests on this is enough against each level that forbids its cycle, for all of those forbid G1c too.
Overwrites alone (G0) are never claimed. Where a transaction wrote a key that it had not read, its
place among the versions is open. Source: Kingsbury and Alvaro 2020, section 5.
"""

from collections.abc import Callable
from typing import Any, Final

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import (
    RW,
    WR,
    Anomaly,
    Dependencies,
    Edges,
    called,
    has_happened,
)
from splitbrain.checker.transactions.micro_operations import Table, hashable
from splitbrain.checker.transactions.own_history import lost_update, note_internal

#: Version of a register before anybody wrote it.
_BEGINNING: Final = -1


def register_dependencies(table: Table, poll: Callable[[], None]) -> Dependencies:
    """Infer everything that the reads of a register history show."""
    inference = _Inference(table, poll)
    inference.read_versions()
    inference.follow_writes()
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
        #: Write that each read shows, ``_BEGINNING``, or None for a value that nobody wrote.
        self._shown: list[int | None] = []
        #: Last write of each transaction to each key.
        self._last: dict[tuple[int, int], int] = {
            (write.txn, write.key): number for number, write in enumerate(table.writes)
        }
        #: Read that shows the version which each transaction replaced, by key: a read before its
        #: first write to that key.
        self._replaced: dict[tuple[int, int], int] = {}
        self.happened = has_happened(table, ())

    def read_versions(self) -> None:
        """Find the write of each read, and note what single reads show."""
        table = self._table
        for number, read in enumerate(table.reads):
            self._poll()
            if read.value is None:
                self._shown.append(_BEGINNING)
                continue
            write = table.writers[read.key].get(hashable(read.value))
            self._shown.append(write)
            self._note(number, write)
        seen = {write for write in self._shown if write is not None and write != _BEGINNING}
        self.happened = has_happened(table, seen)

    def _note(self, number: int, write: int | None) -> None:
        table, read = self._table, self._table.reads[number]
        key = table.keys[read.key]
        told = f"{called(table, read.txn)} read {text_of(read.value)} of key {text_of(key)}"
        if write is None:
            self._add(levels.PHANTOM_VALUE, (read.txn,), key, f"{told}, which nobody wrote.")
            return
        writer = table.writes[write]
        by = called(table, writer.txn)
        if writer.txn == read.txn:
            if writer.place > read.place:
                told = f"{told} before it wrote it itself."
                self._add(levels.FUTURE_READ, (read.txn,), key, told)
        elif table.operations[writer.txn].type == "fail":
            told = f"{told}, written by {by}, which certainly failed."
            self._add(levels.ABORTED_READ, (writer.txn, read.txn), key, told)
            self._note_dirty_update(number, writer.txn)
        elif self._last[writer.txn, writer.key] != write:
            told = f"{told}, which {by} wrote and then replaced itself."
            self._add(levels.INTERMEDIATE_READ, (writer.txn, read.txn), key, told)

    def _note_dirty_update(self, number: int, failed: int) -> None:
        table, read = self._table, self._table.reads[number]
        last = self._last.get((read.txn, read.key))
        if last is None or not read.external:
            return
        key = table.keys[read.key]
        told = (
            f"{called(table, read.txn)} wrote {text_of(table.writes[last].value)} to key "
            f"{text_of(key)} after it had read {text_of(read.value)} of "
            f"{called(table, failed)}, which certainly failed."
        )
        self._add(levels.DIRTY_UPDATE, (failed, read.txn), key, told)

    def _add(self, name: str, txns: tuple[int, ...], key: Any, sentence: str) -> None:
        self.anomalies.append(Anomaly(name, txns, key, sentence))

    def follow_writes(self) -> None:
        """Find the version that each transaction replaced, and note cycles of versions."""
        table = self._table
        for read, _ in table.read_then_written:
            txn, _, key, _, external = table.reads[read]
            if external and self._shown[read] is not None:
                self._replaced.setdefault((txn, key), read)
        readers: dict[tuple[int, int], list[int]] = {}
        for (txn, key), read in self._replaced.items():
            version = self._shown[read]
            assert version is not None
            readers.setdefault((key, version), []).append(txn)
        for (key, _), txns in readers.items():
            if len(txns) > 1:
                read = self._replaced[txns[0], key]
                value = table.reads[read].value
                self.anomalies.append(lost_update(table, txns[0], txns[1], key, value))
        self._note_cyclic_versions()

    def _note_cyclic_versions(self) -> None:
        """Go back from each version to the one that it replaced; a walk that returns is a cycle."""
        done: set[tuple[int, int]] = set()
        for start in self._replaced:
            walk: list[tuple[int, int]] = []
            at: tuple[int, int] | None = start
            while at is not None and at not in done:
                done.add(at)
                walk.append(at)
                at = self._before(at)
            if at is not None and at in walk:
                self._tell_cycle(walk[walk.index(at) :])

    def _before(self, at: tuple[int, int]) -> tuple[int, int] | None:
        txn, key = at
        read = self._replaced.get(at)
        if read is None:
            return None
        version = self._shown[read]
        assert version is not None
        if version == _BEGINNING or self._table.writes[version].txn == txn:
            return None
        return self._table.writes[version].txn, key

    def _tell_cycle(self, cycle: list[tuple[int, int]]) -> None:
        table = self._table
        key = table.keys[cycle[0][1]]
        steps = [
            f"{called(table, txn)} read {text_of(table.reads[self._replaced[txn, number]].value)} "
            f"and wrote {text_of(table.writes[self._last[txn, number]].value)}"
            for txn, number in cycle
        ]
        told = f"Of key {text_of(key)}, {'; '.join(steps)}: each version is older than itself."
        self._add(levels.CYCLIC_VERSIONS, tuple(txn for txn, _ in cycle), key, told)

    def add_edges(self) -> None:
        """Add reads-from edges, and those from readers to who replaced what they had read."""
        table = self._table
        successors: dict[tuple[int, int], list[int]] = {}
        for (txn, key), read in self._replaced.items():
            version = self._shown[read]
            assert version is not None
            # A version behind an early write of a transaction is behind its last one.
            successors.setdefault((key, self._settled(version)), []).append(txn)
        firsts = self._writers_without_reading()
        readers: dict[tuple[int, int], dict[int, int]] = {}
        for number, read in enumerate(table.reads):
            self._poll()
            version = self._shown[number]
            if version is None:
                continue
            if version != _BEGINNING:
                writer = table.writes[version].txn
                if not self.happened[writer]:
                    continue
                if writer != read.txn:
                    self.edges.add_one(writer, read.txn, WR, number)
                version = self._settled(version)
            readers.setdefault((read.key, version), {}).setdefault(read.txn, number)
        for (key, version), by_txn in readers.items():
            after = successors.get((key, version), [])
            if version == _BEGINNING:
                after = [*after, *firsts.get(key, ())]
            if after:
                self.edges.fan([*by_txn.items()], RW, after)

    def _settled(self, version: int) -> int:
        if version == _BEGINNING:
            return version
        write = self._table.writes[version]
        return self._last[write.txn, write.key]

    def _writers_without_reading(self) -> dict[int, list[int]]:
        """Return who wrote a key that it had not read, by key."""
        found: dict[int, list[int]] = {}
        for txn, key in self._last:
            if self.happened[txn] and (txn, key) not in self._replaced:
                found.setdefault(key, []).append(txn)
        return found

    def unordered(self) -> list[tuple[Any, list[int]]]:
        """Return transactions that wrote a key unread, where that leaves an order open."""
        from_beginning: dict[int, int] = {}
        for txn, key in self._replaced:
            if self._before((txn, key)) is None:
                from_beginning[key] = from_beginning.get(key, 0) + 1
        return [
            (self._table.keys[key], txns)
            for key, txns in self._writers_without_reading().items()
            if len(txns) + from_beginning.get(key, 0) > 1
        ]
