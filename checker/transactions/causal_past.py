"""Causal past of transactions: who is before whom by processes and by reads; pure.

Positions count from zero within each process. A transaction's clock says of each process how many
of its transactions are in the past, the transaction itself included. Source: Mattern 1989.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import Dependencies, Nodes

#: Processes whose clocks are held at once.
_BLOCK: Final = 64


class CausalPast:
    """Processes and reads as a graph of transactions."""

    def __init__(self, found: Dependencies, readers: Nodes, sources: Nodes) -> None:
        process, index = found.table.processes, found.table.indexes
        count = len(process)
        happened = np.flatnonzero(found.happened)
        order = happened[np.lexsort((index[happened], process[happened]))]
        #: Number of the process of each transaction, and its place there.
        self.session = np.unique(process, return_inverse=True)[1].reshape(-1)
        self.position = np.zeros(count, dtype=np.int64)
        begins = np.flatnonzero(np.diff(self.session[order], prepend=-1))
        sizes = np.diff(np.append(begins, len(order)))
        self.position[order] = np.arange(len(order)) - np.repeat(begins, sizes)
        same = self.session[order][1:] == self.session[order][:-1]
        of_others = sources >= 0
        before = np.concatenate([order[:-1][same], sources[of_others]])
        after = np.concatenate([order[1:][same], readers[of_others]])
        edges = np.sort(after * count + before)
        self._after, self._before = np.divmod(edges, max(count, 1))
        self._begins = np.searchsorted(self._after, np.arange(count + 1))

    def is_before(self, txn: int) -> list[int]:
        """Return those that are directly before a transaction."""
        return self._before[self._begins[txn] : self._begins[txn + 1]].tolist()

    def order(self) -> list[int] | None:
        """Return all transactions, each behind its past; None where some are in their own."""
        count = len(self.position)
        by_before = np.argsort(self._before, kind="stable")
        afters: list[int] = self._after[by_before].tolist()
        begins: list[int] = np.searchsorted(self._before[by_before], np.arange(count + 1)).tolist()
        waiting: list[int] = np.diff(self._begins).tolist()
        found = [txn for txn, number in enumerate(waiting) if not number]
        for txn in found:
            for other in afters[begins[txn] : begins[txn + 1]]:
                waiting[other] -= 1
                if not waiting[other]:
                    found.append(other)
        return found if len(found) == count else None

    def clocks(
        self, sessions: Nodes, poll: Callable[[], None]
    ) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Yield how much of each of these processes is in the past of each transaction.

        Nothing is yielded where some transaction is in its own past.
        """
        order = self.order()
        if order is None:
            return
        begins: list[int] = self._begins.tolist()
        for start in range(0, len(sessions), _BLOCK):
            block = sessions[start : start + _BLOCK]
            column = np.full(int(self.session.max(initial=0)) + 1, -1, dtype=np.int64)
            column[block] = np.arange(len(block))
            columns: list[int] = column[self.session].tolist()
            counts: list[int] = (self.position + 1).tolist()
            clock = np.zeros((len(order), len(block)), dtype=np.int32)
            for txn in order:
                poll()
                begin, end = begins[txn], begins[txn + 1]
                if end - begin == 1:
                    clock[txn] = clock[self._before[begin]]
                elif end > begin:
                    clock[txn] = clock[self._before[begin:end]].max(axis=0)
                if columns[txn] >= 0:
                    clock[txn, columns[txn]] = counts[txn]
            by_session = np.ascontiguousarray(clock.T)
            for place, session in enumerate(block.tolist()):
                yield session, by_session[place]

    def way(self, first: int, last: int) -> list[int]:
        """Return a shortest chain of transactions from one to another in its past."""
        behind: dict[int, int] = {last: last}
        ahead = deque([last])
        while ahead and first not in behind:
            txn = ahead.popleft()
            for other in self.is_before(txn):
                if other not in behind:
                    behind[other] = txn
                    ahead.append(other)
        chain = [first]
        while chain[-1] != last:
            chain.append(behind[chain[-1]])
        return chain
