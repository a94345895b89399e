"""Orders that are known without any value: of each process, and of real time; pure.

Both are chains of stations, one for each moment at which something begins: whoever ends leads to
the next station, and a station leads to who begins there and to the next one. So a million
transactions have three million edges, and nothing is compared with everything. An ``info``
transaction never ended, so it comes before nobody; equal times are concurrent.
"""

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.transactions.dependencies import (
    PASS,
    PROCESS,
    REALTIME,
    Edges,
    Nodes,
)
from splitbrain.checker.transactions.micro_operations import Table

_OK = "ok"


def add_orders(table: Table, happened: NDArray[np.bool_], edges: Edges) -> None:
    """Add the edges of both orders."""
    places = np.flatnonzero(happened)
    if not len(places):
        return
    _add_processes(table, places, edges)
    _add_real_time(table, places, edges)


def _add_processes(table: Table, places: Nodes, edges: Edges) -> None:
    operations = [table.operations[int(place)] for place in places]
    process = np.array([operation.process for operation in operations], dtype=np.int64)
    index = np.array([operation.index for operation in operations], dtype=np.int64)
    order = np.lexsort((index, process))
    in_order, process = places[order], process[order]
    same = process[1:] == process[:-1]
    earlier, later = in_order[:-1][same], in_order[1:][same]
    stations = edges.stations(len(later))
    edges.add(earlier, stations, PROCESS)
    edges.add(stations, later, PASS)
    # Two steps of one process in a row.
    goes_on = np.flatnonzero(earlier[1:] == later[:-1])
    edges.add(stations[goes_on], stations[goes_on + 1], PASS)


def _add_real_time(table: Table, places: Nodes, edges: Edges) -> None:
    operations = [table.operations[int(place)] for place in places]
    start = np.array([operation.start for operation in operations], dtype=np.int64)
    moments = np.unique(start)
    stations = edges.stations(len(moments))
    edges.add(stations[:-1], stations[1:], PASS)
    edges.add(stations[np.searchsorted(moments, start)], places, PASS)
    ended = np.array([operation.type == _OK for operation in operations], dtype=bool)
    ends = [operation.end or 0 for operation in operations if operation.type == _OK]
    end = np.array(ends, dtype=np.int64)
    after = np.searchsorted(moments, end, side="right")
    is_before = after < len(moments)
    edges.add(places[ended][is_before], stations[after[is_before]], REALTIME)
