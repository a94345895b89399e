"""Versions of lists, and the dependencies and anomalies that they show; pure.

The longest read of a key is its version order as far as it goes; what nobody read comes behind. A
key whose reads contradict each other gives no edges. Source: Kingsbury and Alvaro 2020, section 4.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import (
    RW,
    WR,
    WW,
    Anomaly,
    Dependencies,
    Edges,
    Nodes,
    called,
    has_happened,
    proof_of_earlier,
)
from splitbrain.checker.transactions.micro_operations import Table, hashable
from splitbrain.checker.transactions.own_history import lost_update, note_internal
from splitbrain.history.list_texts import Beginnings

_UNKNOWN = -1


class _Order(NamedTuple):
    """Versions of one key."""

    #: Writes in their order, ``_UNKNOWN`` for values that nobody wrote.
    writes: list[int]
    is_broken: bool


def list_dependencies(table: Table, poll: Callable[[], None]) -> Dependencies:
    """Infer everything that the reads of a list-append history show."""
    anomalies: list[Anomaly] = []
    seen: list[int] = []
    lengths = _lengths(table.reads.values)
    orders = [
        _order_of(table, key, lengths, anomalies, seen, poll) for key in range(len(table.keys))
    ]
    read_writes = np.array(seen, dtype=np.int64)
    happened = has_happened(table, read_writes[read_writes != _UNKNOWN])
    edges = Edges(len(table.operations))
    columns = _Columns(table, orders, lengths, happened)
    columns.note(anomalies)
    columns.add_edges(edges)
    unordered = _add_unread(table, orders, columns, edges)
    note_internal(table, anomalies)
    return Dependencies(table, edges, anomalies, happened, unordered)


def _lengths(values: Sequence[list[Any]]) -> Nodes:
    if isinstance(values, Beginnings):
        return values.lengths
    return np.fromiter(map(len, values), dtype=np.int64, count=len(values))


def _order_of(
    table: Table,
    key: int,
    lengths: Nodes,
    anomalies: list[Anomaly],
    seen: list[int],
    poll: Callable[[], None],
) -> _Order:
    reads = table.reads_by_key.of(key)
    poll()
    if not len(reads):
        return _Order([], is_broken=False)
    values = table.reads.values
    longest_read = int(reads[np.argmax(lengths[reads])])
    longest = values[longest_read]
    writers = table.writers(key)
    writes = _writes_in(writers, longest)
    seen += writes
    is_broken = _note_elements(table, longest_read, writes, anomalies)
    if isinstance(values, Beginnings) and values.agree(reads):
        return _Order(writes, is_broken)
    for read in reads.tolist():
        value = values[read]
        if longest[: len(value)] == value:
            continue
        poll()
        is_broken = True
        others = _writes_in(writers, value)
        seen += others
        _note_elements(table, read, others, anomalies)
        anomalies.append(
            Anomaly(
                levels.INCOMPATIBLE_ORDER,
                (table.reads[longest_read].txn, table.reads[read].txn),
                table.keys[key],
                f"{_reader(table, longest_read)} read {text_of(longest)} of key "
                f"{text_of(table.keys[key])}, and {_reader(table, read)} read {text_of(value)}: "
                "neither is the beginning of the other.",
            )
        )
    return _Order(writes, is_broken)


def _writes_in(writers: dict[Hashable, int], value: list[Any]) -> list[int]:
    try:
        return [writers.get(element, _UNKNOWN) for element in value]
    except TypeError:
        return [writers.get(hashable(element), _UNKNOWN) for element in value]


def _note_elements(table: Table, read: int, writes: list[int], anomalies: list[Anomaly]) -> bool:
    """Note elements that are there twice, or that nobody appended; return whether one is twice."""
    _, _, key, value, _ = table.reads[read]
    where = f"of key {text_of(table.keys[key])}"
    if _UNKNOWN in writes:
        element = value[writes.index(_UNKNOWN)]
        anomalies.append(
            Anomaly(
                levels.PHANTOM_VALUE,
                (table.reads[read].txn,),
                table.keys[key],
                f"{_reader(table, read)} read {text_of(element)} {where}, which no transaction "
                "of the history appends.",
            )
        )
    known = [write for write in writes if write != _UNKNOWN]
    if len(set(known)) == len(known):
        return False
    twice = next(write for place, write in enumerate(known) if write in known[:place])
    element = table.writes[twice].value
    anomalies.append(
        Anomaly(
            levels.DUPLICATE_ELEMENTS,
            (table.writes[twice].txn, table.reads[read].txn),
            table.keys[key],
            f"{_reader(table, read)} read {text_of(element)} {where} twice, which "
            f"{called(table, table.writes[twice].txn)} appended once.",
        )
    )
    return True


def _reader(table: Table, read: int) -> str:
    return called(table, table.reads[read].txn)


class _Columns:
    """Versions and reads of all keys that are not broken, one behind the other."""

    def __init__(
        self, table: Table, orders: list[_Order], lengths: Nodes, happened: NDArray[np.bool_]
    ) -> None:
        self._table = table
        self.happened = happened
        sizes = np.array([0 if o.is_broken else len(o.writes) for o in orders], dtype=np.int64)
        #: First version of each key, and the one behind its last.
        self.begins = np.concatenate(([0], np.cumsum(sizes)))
        usable = (order.writes for order in orders if not order.is_broken)
        self.writes = np.fromiter(chain.from_iterable(usable), dtype=np.int64, count=sizes.sum())
        self.keys = np.repeat(np.arange(len(orders)), sizes)
        self.is_usable = np.array([not order.is_broken for order in orders], dtype=bool)
        self.read_keys, self.lengths = table.reads.keys, lengths
        by_key = table.reads_by_key.order
        self.reads = by_key[self.is_usable[self.read_keys[by_key]]]
        self.write_txns, self.read_txns = table.writes.txns, table.reads.txns
        #: Place behind the last version that each read shows.
        self.behind = self.begins[self.read_keys] + lengths
        #: Place of each write, ``_UNKNOWN`` where nobody read it.
        self.place_of = np.full(len(table.writes), _UNKNOWN, dtype=np.int64)
        known = np.flatnonzero(self.writes >= 0)
        self.place_of[self.writes[known]] = known
        committed = self.writes >= 0
        committed[committed] = happened[self.write_txns[self.writes[committed]]]
        self.committed = committed
        places = np.arange(len(self.writes))
        #: Nearest committed version at or before each place, and at or behind it, in its key; else
        #: ``_UNKNOWN``.
        before = np.maximum.accumulate(np.where(committed, places, _UNKNOWN))
        self.before = np.where(before >= self.begins[self.keys], before, _UNKNOWN)
        after = np.where(committed, places, len(places))[::-1]
        after = np.minimum.accumulate(after)[::-1]
        self.after = np.where(after < self.begins[self.keys + 1], after, _UNKNOWN)

    def txn_at(self, places: Nodes) -> Nodes:
        """Return the transactions that wrote the versions at these places."""
        return self.write_txns[self.writes[places]]

    def shown_last(self) -> tuple[Nodes, Nodes]:
        """Return reads and the place of the last committed version that each shows."""
        reads = self.reads[self.lengths[self.reads] > 0]
        places = self.before[self.behind[reads] - 1]
        return reads[places >= 0], places[places >= 0]

    def replaced_by(self) -> tuple[Nodes, Nodes]:
        """Return reads and the place of the first committed version behind, or ``_UNKNOWN``."""
        behind = self.behind[self.reads]
        has_next = behind < self.begins[self.read_keys[self.reads] + 1]
        places = np.full(len(behind), _UNKNOWN, dtype=np.int64)
        places[has_next] = self.after[behind[has_next]]
        return self.reads, places

    def add_edges(self, edges: Edges) -> None:
        """Add the dependencies between what was read."""
        committed = np.flatnonzero(self.committed)
        first, second = committed[:-1], committed[1:]
        follows = self.keys[first] == self.keys[second]
        first, second = first[follows], second[follows]
        self._add(edges, self.txn_at(first), self.txn_at(second), WW, self.writes[second])
        reads, places = self.shown_last()
        self._add(edges, self.txn_at(places), self.read_txns[reads], WR, reads)
        reads, places = self.replaced_by()
        reads, places = reads[places >= 0], places[places >= 0]
        self._add(edges, self.read_txns[reads], self.txn_at(places), RW, reads)

    def _add(self, edges: Edges, source: Nodes, target: Nodes, kind: int, proof: Nodes) -> None:
        apart = source != target
        edges.add(source[apart], target[apart], kind, proof[apart])

    def note(self, anomalies: list[Anomaly]) -> None:
        """Note what single versions and pairs of reads show."""
        self._note_aborted(anomalies)
        self._note_out_of_order(anomalies)
        self._note_intermediate(anomalies)
        self._note_future(anomalies)
        self._note_lost_updates(anomalies)

    def _note_aborted(self, anomalies: list[Anomaly]) -> None:
        table = self._table
        known = np.flatnonzero(self.writes >= 0)
        for place in known[table.has_failed[self.txn_at(known)]].tolist():
            write = table.writes[int(self.writes[place])]
            key = table.keys[write.key]
            shows = self.reads[
                (self.read_keys[self.reads] == write.key) & (self.behind[self.reads] > place)
            ]
            reader = int(self.read_txns[shows[0]])
            told = f"{text_of(write.value)} of key {text_of(key)}"
            anomalies.append(
                Anomaly(
                    levels.ABORTED_READ,
                    (write.txn, reader),
                    key,
                    f"{called(table, reader)} read {told}, appended by "
                    f"{called(table, write.txn)}, which certainly failed.",
                )
            )
            after = int(self.after[place])
            if after >= 0:
                other = table.writes[int(self.writes[after])]
                anomalies.append(
                    Anomaly(
                        levels.DIRTY_UPDATE,
                        (write.txn, other.txn),
                        key,
                        f"{called(table, other.txn)} appended {text_of(other.value)} to key "
                        f"{text_of(key)} behind {text_of(write.value)} of "
                        f"{called(table, write.txn)}, which certainly failed.",
                    )
                )

    def _note_out_of_order(self, anomalies: list[Anomaly]) -> None:
        """Note appends of one transaction that are there without an earlier one before them."""
        table = self._table
        first, second = table.successive
        at, behind = self.place_of[first], self.place_of[second]
        wrong = (behind >= 0) & ((at < 0) | (at >= behind)) & self.happened[self.write_txns[second]]
        for pair in np.flatnonzero(wrong).tolist():
            write = table.writes[int(second[pair])]
            key = table.keys[write.key]
            shows = self.reads[
                (self.read_keys[self.reads] == write.key) & (self.behind[self.reads] > behind[pair])
            ]
            reader = int(self.read_txns[shows[0]])
            missing = text_of(table.writes.values[int(first[pair])])
            anomalies.append(
                Anomaly(
                    levels.INCOMPATIBLE_ORDER,
                    (write.txn, reader),
                    key,
                    f"{called(table, reader)} read {text_of(write.value)} of key "
                    f"{text_of(key)} without {missing} before it, which "
                    f"{called(table, write.txn)} had appended first.",
                )
            )

    def _note_intermediate(self, anomalies: list[Anomaly]) -> None:
        table = self._table
        reads = self.reads[self.lengths[self.reads] > 0]
        places = self.behind[reads] - 1
        reads, places = reads[self.committed[places]], places[self.committed[places]]
        foreign = self.txn_at(places) != self.read_txns[reads]
        shown = self.writes[places]
        wrong = foreign & (table.last_writes[shown] != shown)
        for read_place, place in zip(reads[wrong], places[wrong], strict=True):
            read = int(read_place)
            write = table.writes[int(self.writes[place])]
            key = table.keys[write.key]
            anomalies.append(
                Anomaly(
                    levels.INTERMEDIATE_READ,
                    (write.txn, table.reads[read].txn),
                    key,
                    f"{_reader(table, read)} read key {text_of(key)} up to {text_of(write.value)}, "
                    f"behind which {called(table, write.txn)} appended more.",
                )
            )

    def _note_future(self, anomalies: list[Anomaly]) -> None:
        table = self._table
        reads, writes = table.read_then_written
        place = self.place_of[writes]
        shows = (place >= 0) & (place < self.behind[reads])
        for pair in np.flatnonzero(shows | ~self.is_usable[self.read_keys[reads]]).tolist():
            _, _, key, value, _ = table.reads[int(reads[pair])]
            write = table.writes[int(writes[pair])]
            if write.value in value:
                anomalies.append(
                    Anomaly(
                        levels.FUTURE_READ,
                        (write.txn,),
                        table.keys[key],
                        f"{called(table, write.txn)} read {text_of(write.value)} of key "
                        f"{text_of(table.keys[key])} before it appended it itself.",
                    )
                )

    def _note_lost_updates(self, anomalies: list[Anomaly]) -> None:
        table = self._table
        reads = table.read_then_written[0]
        reads = reads[table.reads.external[reads] & self.is_usable[self.read_keys[reads]]]
        # Two keys may share a place, behind the last version of the one.
        version = self.behind[reads] + self.read_keys[reads]
        order = np.lexsort((self.read_txns[reads], version))
        again = np.diff(version[order]) == 0
        again &= np.diff(self.read_txns[reads][order]) != 0
        several = np.isin(version, version[order[1:][again]])
        readers: dict[tuple[int, int], dict[int, int]] = {}
        for read in reads[several].tolist():
            txn, _, key, value, _ = table.reads[read]
            readers.setdefault((key, len(value)), {}).setdefault(txn, read)
        for (key, _), found in readers.items():
            if len(found) > 1:
                first, second, *_ = found
                value = table.reads[found[first]].value
                anomalies.append(lost_update(table, first, second, key, value))


def _add_unread(
    table: Table, orders: list[_Order], columns: _Columns, edges: Edges
) -> list[tuple[Any, list[int]]]:
    """Add the edges to appends that nobody read: they come behind all that was read."""
    reads, places = columns.replaced_by()
    at_the_end = np.zeros(len(table.reads), dtype=bool)
    at_the_end[reads[places < 0]] = True
    unread = (columns.place_of < 0) & columns.happened[table.writes.txns]
    unread &= columns.is_usable[table.writes.keys]
    unordered: list[tuple[Any, list[int]]] = []
    keys: list[int] = np.unique(table.writes.keys[unread]).tolist()
    for key in keys:
        order = orders[key]
        writes = table.writes_by_key.of(key)
        targets = [*dict.fromkeys(table.writes.txns[writes[unread[writes]]].tolist())]
        end = int(columns.begins[key + 1])
        last = int(columns.before[end - 1]) if order.writes else _UNKNOWN
        if last >= 0:
            write = int(columns.writes[last])
            edges.fan([(table.writes[write].txn, proof_of_earlier(write))], WW, targets)
        last_reads = table.reads_by_key.of(key)
        last_reads = last_reads[at_the_end[last_reads]]
        readers = dict(zip(table.reads.txns[last_reads].tolist(), last_reads.tolist(), strict=True))
        edges.fan(readers.items(), RW, targets)
        if len(targets) > 1:
            unordered.append((table.keys[key], targets))
    return unordered
