"""Serial order of register transactions that explains every read; pure.

Nearly always it is the order of their places in time. Else one is found by carrying them out. The
next one carried out is one whose predecessors in the promised orders are done, that reads what
is there, and that replaces nothing which somebody has still to read; of several, the one that had
to be done first: before it and its readers ended, or at once where nobody read it. No step is taken
back, so none found proves nothing, and one found is a proof by itself.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from math import inf

import numpy as np

from splitbrain.checker.transactions.commit_orders import BEGINNING, reads_of
from splitbrain.checker.transactions.dependencies import (
    PASS,
    PROCESS,
    REALTIME,
    Dependencies,
    Nodes,
)
from splitbrain.checker.transactions.levels import Level
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.history.records import PairedOperation

#: Key and value; None for the beginning.
_Version = tuple[int, object]


def explains_reads(found: Dependencies, places: Nodes) -> bool:
    """Return whether each read shows the version that is there in the order of these places.

    They rise along all dependencies and orders, and the history has no anomaly.
    """
    table = found.table
    reads = reads_of(found, found.edges.columns())
    span = len(found.happened)
    rank = np.zeros(span, dtype=np.int64)
    rank[np.argsort(places[:span], kind="stable")] = np.arange(span)
    happened = found.happened[table.writes.txns]
    writers = table.writes.txns[happened]
    versions = table.writes.keys[happened] * span + rank[writers]
    order = np.argsort(versions)
    versions, writers = versions[order], np.append(writers[order], BEGINNING)
    before = np.searchsorted(versions, reads.key * span + rank[reads.txn]) - 1
    has_version = before >= 0
    has_version[has_version] = versions[before[has_version]] // span == reads.key[has_version]
    return np.array_equal(writers[np.where(has_version, before, -1)], reads.source)


def has_serial_order(found: Dependencies, level: Level, poll: Callable[[], None]) -> bool:
    """Return whether an order true to the level's orders was found."""
    replay = _Replay(found, level)
    while replay.step():
        poll()
    return replay.is_done


class _Replay:
    def __init__(self, found: Dependencies, level: Level) -> None:
        table = found.table
        self._operations = table.operations
        self._reads: list[dict[int, object]] = [{} for _ in table.operations]
        self._writes: list[dict[int, object]] = [{} for _ in table.operations]
        for read in table.reads:
            if read.external:
                value = None if read.value is None else hashable(read.value)
                self._reads[read.txn][read.key] = value
        for write in table.writes:
            if found.happened[write.txn]:
                self._writes[write.txn][write.key] = hashable(write.value)
        self._deadlines = self._deadlines_of()
        self._state: dict[int, object] = {}
        #: Transactions that have still to read each version.
        self._readers: Counter[_Version] = Counter(
            version for reads in self._reads for version in reads.items()
        )
        #: Those that wait for a version to be there, and for one to be read by all.
        self._for_version: dict[_Version, list[int]] = {}
        self._for_readers: dict[int, list[int]] = {}
        self._left = int(np.count_nonzero(found.happened))
        self._happened = found.happened
        self._follow_orders(found, level)

    @property
    def is_done(self) -> bool:
        """Return whether all was carried out."""
        return not self._left

    def _deadlines_of(self) -> list[float]:
        readers: dict[_Version, float] = {}
        ends = [_end(operation) for operation in self._operations]
        for txn, reads in enumerate(self._reads):
            for version in reads.items():
                readers[version] = min(readers.get(version, inf), ends[txn])
        deadlines: list[float] = []
        for txn, writes in enumerate(self._writes):
            met = [readers[version] for version in writes.items() if version in readers]
            is_unread = bool(writes) and not met and not self._reads[txn]
            start = float(self._operations[txn].start)
            deadlines.append(start if is_unread else min([ends[txn], *met]))
        return deadlines

    def _follow_orders(self, found: Dependencies, level: Level) -> None:
        source, target, kind, _ = found.edges.columns()
        kept = kind == PASS
        for order, number in (("process", PROCESS), ("realtime", REALTIME)):
            if order in level.orders:
                kept |= kind == number
        self._after: dict[int, list[int]] = {}
        for one, other in zip(source[kept].tolist(), target[kept].tolist(), strict=True):
            self._after.setdefault(one, []).append(other)
        self._waiting = np.bincount(target[kept], minlength=found.edges.nodes).tolist()
        self._ready: list[tuple[float, int]] = []
        for node in [node for node, number in enumerate(self._waiting) if not number]:
            self._free(node)

    def _free(self, node: int) -> None:
        """Make a node ready; a station lets those behind it go on at once."""
        free = [node]
        while free:
            node = free.pop()
            if node < len(self._operations):
                if self._happened[node]:
                    self._push(node)
                continue
            free += self._passed(node)

    def _passed(self, node: int) -> list[int]:
        freed: list[int] = []
        for other in self._after.get(node, ()):
            self._waiting[other] -= 1
            if not self._waiting[other]:
                freed.append(other)
        return freed

    def _push(self, txn: int) -> None:
        heapq.heappush(self._ready, (self._deadlines[txn], txn))

    def step(self) -> bool:
        """Carry out or put aside the next transaction; return whether there was one."""
        if not self._ready:
            return False
        _, txn = heapq.heappop(self._ready)
        for key, value in self._reads[txn].items():
            if self._state.get(key) != value:
                self._for_version.setdefault((key, value), []).append(txn)
                return True
        for key in self._writes[txn]:
            # All that it read itself is there.
            if self._readers[key, self._state.get(key)] > int(key in self._reads[txn]):
                self._for_readers.setdefault(key, []).append(txn)
                return True
        self._carry_out(txn)
        return True

    def _carry_out(self, txn: int) -> None:
        self._left -= 1
        freed: list[int] = []
        for version in self._reads[txn].items():
            self._readers[version] -= 1
            if self._readers[version] <= 1:
                freed += self._for_readers.pop(version[0], [])
        for key, value in self._writes[txn].items():
            self._state[key] = value
            freed += self._for_version.pop((key, value), [])
            freed += self._for_readers.pop(key, [])
        for other in freed:
            self._push(other)
        for other in self._passed(txn):
            self._free(other)


def _end(operation: PairedOperation) -> float:
    return inf if operation.end is None else float(operation.end)
