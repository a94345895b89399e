"""Orders that are known without any value: of each process, and of real time; pure.

Both are chains of stations, one for each moment at which something begins: whoever ends leads to
the next station, and a station leads to who begins there and to the next one. So a million
transactions have three million edges, and nothing is compared with everything. An ``info``
transaction never ended, so it comes before nobody; equal times are concurrent.

Where each transaction can be given a place between its begin and its end so that places rise along
every dependency, no cycle exists, and the stations are not needed at all.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import (
    PASS,
    PROCESS,
    REALTIME,
    Edges,
    Nodes,
)
from splitbrain.checker.transactions.graph import STEP, raised
from splitbrain.checker.transactions.timed import Times

#: Places between two moments, more than ``raised`` makes use of.
_PLACES: Final = 1 << 12


class Orders:
    """Both orders of the transactions that happened, and a place for each of them."""

    def __init__(self, table: Times, happened: NDArray[np.bool_], edges: Edges) -> None:
        self._edges = edges
        self._txns = np.flatnonzero(happened)
        start, end = table.starts[self._txns], table.ends[self._txns]
        self._moments, self._begins_at = np.unique(start, return_inverse=True)
        #: Moment before which each ended; behind all others for those that never did.
        after = np.searchsorted(self._moments, end, side="right")
        self._ended_by = np.where(table.is_ok[self._txns], after, len(self._moments))
        process = table.processes[self._txns]
        order = np.lexsort((table.indexes[self._txns], process))
        same = process[order[1:]] == process[order[:-1]]
        self._earlier, self._later = order[:-1][same], order[1:][same]
        #: Of each node of the edges.
        self.places = self._placed()

    def _placed(self) -> Nodes:
        source, target, _, _ = self._edges.columns()
        places = np.zeros(self._edges.nodes, dtype=np.int64)
        places[self._txns] = self._begins_at * _PLACES + STEP
        # Nearly always real time says this as well.
        apart = self._ended_by[self._earlier] > self._begins_at[self._later]
        source = np.concatenate((source, self._txns[self._earlier[apart]]))
        target = np.concatenate((target, self._txns[self._later[apart]]))
        self._all_rise = raised(places, source, target)
        return places

    @property
    def prove_no_cycle(self) -> bool:
        """Return whether places rise along every edge, and nobody's is behind its end."""
        in_time = self.places[self._txns] < self._ended_by * _PLACES
        is_open = self._ended_by == len(self._moments)
        return self._all_rise and bool(np.all(in_time | is_open))

    def add(self) -> Nodes:
        """Add the edges of both orders; return a place for each node, which most edges rise by."""
        processes = self._add_processes()
        moments = self._add_real_time()
        return np.concatenate((self.places, processes, moments))

    def _add_processes(self) -> Nodes:
        earlier, later = self._txns[self._earlier], self._txns[self._later]
        stations = self._edges.stations(len(later))
        self._edges.add(earlier, stations, PROCESS)
        self._edges.add(stations, later, PASS)
        # Two steps of one process in a row.
        goes_on = np.flatnonzero(earlier[1:] == later[:-1])
        self._edges.add(stations[goes_on], stations[goes_on + 1], PASS)
        return self.places[later] - 1

    def _add_real_time(self) -> Nodes:
        stations = self._edges.stations(len(self._moments))
        self._edges.add(stations[:-1], stations[1:], PASS)
        self._edges.add(stations[self._begins_at], self._txns, PASS)
        is_before = self._ended_by < len(self._moments)
        ended_by = self._ended_by[is_before]
        self._edges.add(self._txns[is_before], stations[ended_by], REALTIME)
        return np.arange(len(self._moments)) * _PLACES
