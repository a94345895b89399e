"""Sentences on writers in sight of reads that showed another version; pure."""

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions.commit_orders import BEGINNING, CommitOrders, Sight
from splitbrain.checker.transactions.dependencies import (
    CAUSAL_SIGHT,
    EARLIER_SIGHT,
    Dependencies,
    called,
)
from splitbrain.checker.transactions.micro_operations import Read
from splitbrain.checker.transactions.telling import written_by


class _Hop(NamedTuple):
    """Step from one transaction to the next one in a past; a read, or none for a process."""

    before: int
    after: int
    read: Read | None


class SightTeller:
    """Teller of the sights of one history."""

    def __init__(self, found: Dependencies, orders: CommitOrders) -> None:
        self._table, self._orders = found.table, orders

    @cached_property
    def _shown(self) -> dict[tuple[int, int], list[int]]:
        """Reads by the transactions that wrote and read."""
        reads = self._orders.reads
        found: dict[tuple[int, int], list[int]] = {}
        for source, txn, number in zip(
            reads.source.tolist(), reads.txn.tolist(), reads.number.tolist(), strict=True
        ):
            found.setdefault((source, txn), []).append(number)
        return found

    def sentence(self, sight: Sight) -> str:
        """Return the sentence on one sight, without its full stop."""
        table = self._table
        read = table.reads[sight.read]
        key = text_of(table.keys[read.key])
        writer, reader = called(table, sight.writer), called(table, read.txn)
        written = written_by(table, sight.writer, read.key)[-1]
        told = f"{reader} read {text_of(read.value)} of key {key}"
        seen = (
            f"with {writer} in sight, which wrote {text_of(written)} to it "
            f"({'; '.join(self._hop(hop) for hop in self._hops(sight))})"
        )
        if sight.source == BEGINNING:
            return f"{told}, {seen}"
        source = called(table, sight.source)
        return f"{writer} came before {source}, for {told} by {source}, {seen}"

    def involved(self, sight: Sight) -> tuple[list[int], list[int]]:
        """Return the transactions and the keys, by number, that a sight rests on."""
        hops = self._hops(sight)
        txns = [*(hop.before for hop in hops), self._table.reads[sight.read].txn]
        keys = [hop.read.key for hop in hops if hop.read is not None]
        return txns, [self._table.reads[sight.read].key, *keys]

    def _hops(self, sight: Sight) -> list[_Hop]:
        read = self._table.reads[sight.read]
        if sight.kind == CAUSAL_SIGHT:
            way = self._orders.past.way(sight.writer, read.txn)
        else:
            way = [sight.writer, read.txn]
        hops: list[_Hop] = []
        for before, after in pairwise(way):
            shown = [self._table.reads[n] for n in self._shown.get((before, after), ())]
            if sight.kind == EARLIER_SIGHT:
                shown = [each for each in shown if each.place < read.place]
            hops.append(_Hop(before, after, min(shown, key=lambda r: r.place, default=None)))
        return hops

    def _hop(self, hop: _Hop) -> str:
        before, after = called(self._table, hop.before), called(self._table, hop.after)
        if hop.read is None:
            return f"{after} came after {before} in the same process"
        key = text_of(self._table.keys[hop.read.key])
        return f"{after} read {text_of(hop.read.value)} of key {key} by {before}"
