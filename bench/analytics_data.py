"""Tables of synthetic runs of any size, as the lake holds them, for ``bench.analytics_peers``.

Every run has the same number of operations; ten clients write and read a hundred registers of three
nodes while twenty faults come and go. The history is linearizable and the committed logs hold
what was acknowledged, but for the few lost and invented commits that are planted. A run is a
function of its number alone and is made and written by itself, so memory is bounded by one run.
"""

# pyright: standard

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from splitbrain.spark_analysis.schemas import COMMITTED, FAULTS, LOGS, OPERATIONS, Table

OPERATIONS_A_RUN: Final = 500_000
NODES: Final = ("n1", "n2", "n3")
CLIENTS: Final = 10
KEYS: Final = 100
FAULTS_A_RUN: Final = 20
#: Of each run, lost from all logs and invented on all.
PLANTED: Final = 2
_NS_PER_MS: Final = 1_000_000
_INFO_SHARE: Final = 0.01
_FAIL_SHARE: Final = 0.01
_READ_SHARE: Final = 0.4
_GROUP_ROWS: Final = 128_000
#: Sorts after every time and offset.
_LATE: Final = np.iinfo(np.int64).max
_KINDS: Final = ("write", "read")
_OUTCOMES: Final = ("ok", "fail", "info")
_KEY_NAMES: Final = tuple(f"k{number}" for number in range(KEYS))

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Load(NamedTuple):
    """Operations of one run in the order of their invocations; equal lengths."""

    process: Integers
    start: Integers
    end: Integers
    is_read: Flags
    #: 0 ok, 1 fail, 2 info.
    outcome: Integers
    key: Integers
    #: Took effect at ``point``, between start and end.
    effective: Flags
    point: Integers
    #: Of an effective write; -1 else.
    offset: Integers
    epoch: Integers
    #: Result of a read: the place of a write in this table; -1: nothing was written.
    seen: Integers
    fault_starts: Integers


def write_tables(folder: Path, events: int) -> int:
    """Write ``folder/TABLE/run-N.parquet`` for about so many events; how many there are."""
    runs = max(1, round(events / 2 / OPERATIONS_A_RUN))
    size = OPERATIONS_A_RUN if events >= 2 * OPERATIONS_A_RUN else events // 2
    for table in ("operations", "committed", "faults", "logs", "events"):
        (folder / table).mkdir(parents=True, exist_ok=True)
    written = 0
    for number in range(runs):
        load = make_load(number, size)
        name = f"run-{number:04}"
        _write(folder, OPERATIONS, name, _operations(load))
        _write(folder, COMMITTED, name, _committed(load))
        _write(folder, FAULTS, name, _faults(load))
        _write(folder, LOGS, name, _logs(load))
        history = _events(load, name)
        pq.write_table(history, folder / "events" / f"{name}.parquet", row_group_size=_GROUP_ROWS)
        written += history.num_rows
    return written


def make_load(number: int, size: int) -> Load:
    """Return the operations of run ``number``."""
    random = np.random.default_rng([17, number])
    client = np.arange(size) % CLIENTS
    latency = np.maximum(1, random.lognormal(1.5, 0.7, size) * _NS_PER_MS).astype(np.int64)
    pause = random.integers(0, 10 * _NS_PER_MS, size)
    outcome = random.choice(
        3, size, p=[1 - _INFO_SHARE - _FAIL_SHARE, _FAIL_SHARE, _INFO_SHARE]
    ).astype(np.int64)
    is_read = random.random(size) < _READ_SHARE
    # A read that was not answered is known not to matter.
    outcome[is_read & (outcome == 2)] = 1
    start = np.empty(size, dtype=np.int64)
    process = np.empty(size, dtype=np.int64)
    for one in range(CLIENTS):
        mine = client == one
        total = np.cumsum(latency[mine] + pause[mine])
        start[mine] = total - latency[mine]
        retired = np.cumsum(outcome[mine] == 2)
        process[mine] = one + CLIENTS * np.concatenate([[0], retired[:-1]])
    order = np.argsort(start, kind="stable")
    start, process, latency = start[order], process[order], latency[order]
    outcome, is_read = outcome[order], is_read[order]
    key = random.integers(0, KEYS, size)
    effective = (outcome == 0) | ((outcome == 2) & (random.random(size) < 0.5))
    point = start + (random.random(size) * latency).astype(np.int64)
    fault_starts = np.linspace(0, int(start[-1]), FAULTS_A_RUN + 2).astype(np.int64)[1:-1]
    writes = effective & ~is_read
    offset = np.full(size, -1, dtype=np.int64)
    by_point = np.argsort(point, kind="stable")
    offset[by_point[writes[by_point]]] = np.arange(int(writes.sum()))
    return Load(
        process,
        start,
        start + latency,
        is_read,
        outcome,
        key,
        effective,
        point,
        offset,
        1 + np.searchsorted(fault_starts, point),
        _seen(key, point, writes),
        fault_starts,
    )


def _seen(key: Integers, point: Integers, writes: Flags) -> Integers:
    """For each operation the last write of its key before its point; -1 where there is none."""
    order = np.lexsort((point, key))
    places = np.where(writes[order], np.arange(len(order)), -1)
    last = np.maximum.accumulate(places)
    first_of_key = np.searchsorted(key[order], np.arange(KEYS))[key[order]]
    seen = np.full(len(order), -1, dtype=np.int64)
    seen[order] = np.where(last >= first_of_key, order[np.maximum(last, 0)], -1)
    return seen


def _texts(numbers: Integers, nothing: Flags | None = None) -> Any:
    """Numbers as they stand in JSON, null where nothing is known."""
    return pa.array(numbers, mask=nothing).cast(pa.string())


def _words(words: Sequence[str], codes: Integers) -> Any:
    return pa.array(words).take(pa.array(codes))


def _values(load: Load, places: Integers) -> Any:
    """Draw the values that each operation wrote or read."""
    is_read, seen = load.is_read[places], load.seen[places]
    texts = _texts(np.where(is_read, seen, places))
    return _either(pa.array(is_read & (seen < 0)), "null", texts)


def _nulled(values: Any, nothing: Flags) -> Any:
    return _either(pa.array(nothing), pa.scalar(None, pa.string()), values)


def _either(condition: Any, one: Any, other: Any) -> Any:
    return pc.call_function("if_else", [condition, one, other])


def _operations(load: Load) -> dict[str, Any]:
    size = len(load.start)
    ok = load.outcome == 0
    placed = ok & ~load.is_read
    order = np.argsort(np.where(load.outcome == 2, _LATE, load.end), kind="stable")
    every = np.arange(size)
    columns = {
        "index": every,
        "process": load.process,
        "f": _words(_KINDS, load.is_read.astype(np.int64)),
        "key": _words(_KEY_NAMES, load.key),
        "argument": _texts(every, load.is_read),
        "result": _nulled(_values(load, every), ~ok),
        "type": _words(_OUTCOMES, load.outcome),
        "start_ns": load.start,
        "end_ns": pa.array(load.end, mask=load.outcome == 2),
        "position_epoch": pa.array(load.epoch, mask=~placed),
        "position_offset": pa.array(load.offset, mask=~placed),
        "final": np.zeros(size, dtype=bool),
    }
    return {name: pa.array(column).take(order) for name, column in columns.items()}


def _committed(load: Load) -> dict[str, Any]:
    places = np.argsort(np.where(load.offset >= 0, load.offset, _LATE))
    places = places[: int((load.offset >= 0).sum())]
    answered = places[load.outcome[places] == 0]
    # Lost: acknowledged, in no log; the first of the last tenth, so that it is no tail.
    lost = answered[len(answered) * 9 // 10 :][:PLANTED]
    places = places[~np.isin(places, lost)]
    invented = load.offset.max() + 1 + np.arange(PLANTED)
    count = len(places) + PLANTED
    value = _texts(np.tile(np.concatenate([places, -1 - np.arange(PLANTED)]), len(NODES)))
    epoch = np.concatenate([load.epoch[places], np.full(PLANTED, FAULTS_A_RUN + 1)])
    key = np.concatenate([load.key[places], np.zeros(PLANTED, dtype=np.int64)])
    return {
        "node": _words(NODES, np.repeat(np.arange(len(NODES)), count)),
        "offset": np.tile(np.concatenate([load.offset[places], invented]), len(NODES)),
        "epoch": np.tile(epoch, len(NODES)),
        "f": pa.repeat("write", count * len(NODES)),
        "key": _words(_KEY_NAMES, np.tile(key, len(NODES))),
        "value": value,
        "digest": value,
    }


def _faults(load: Load) -> dict[str, Any]:
    starts = load.fault_starts
    ends = starts + (starts[1] - starts[0]) // 3
    count = len(starts)
    return {
        "index": np.arange(count),
        "kind": pa.repeat("partition", count),
        "target": pa.repeat("leader", count),
        "nodes": [["n1"]] * count,
        "leader": pa.repeat("n1", count),
        "invoked_ns": starts,
        "verified_ns": starts + _NS_PER_MS,
        "healing_ns": ends - _NS_PER_MS,
        "removed_ns": ends,
        "resumed_ns": ends,
        "verified": np.ones(count, dtype=bool),
        "applicable": np.ones(count, dtype=bool),
        "links": [["n1>n2"]] * count,
        "healed": np.ones(count, dtype=bool),
    }


def _logs(load: Load) -> dict[str, Any]:
    return {
        "node": list(NODES),
        "start_offset": [0] * len(NODES),
        "end_offset": [int(load.offset.max()) + 1 + PLANTED] * len(NODES),
    }


def _write(folder: Path, table: Table, name: str, columns: dict[str, Any]) -> None:
    """One table of one run, in its declared schema; columns that are not told are null."""
    schema = table.schema
    rows = len(next(iter(columns.values())))
    constant = {"run_id": name}
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(constant.get(field.name), type=field.type), rows)
        for field in schema
    ]
    path = folder / table.name / f"{name}.parquet"
    pq.write_table(pa.table(arrays, schema=schema), path, row_group_size=_GROUP_ROWS)


def _events(load: Load, name: str) -> pa.Table:
    """The history as clients wrote it: invocations and completions by time, not yet paired."""
    size = len(load.start)
    answered = np.flatnonzero(load.outcome != 2)
    time = np.concatenate([load.start, load.end[answered]])
    place = np.concatenate([np.arange(size), answered])
    is_end = np.concatenate([np.zeros(size, dtype=bool), np.ones(len(answered), dtype=bool)])
    # Of one moment, a completion comes first: its process invokes next.
    order = np.lexsort((~is_end, time))
    place, is_end, time = place[order], is_end[order], time[order]
    is_read = load.is_read[place]
    return pa.table(
        {
            "run_id": pa.repeat(name, len(place)),
            "index": np.arange(len(place)),
            "time": time,
            "process": load.process[place],
            "type": _words(("invoke", *_OUTCOMES), np.where(is_end, 1 + load.outcome[place], 0)),
            "f": _words(_KINDS, is_read.astype(np.int64)),
            "key": _words(_KEY_NAMES, load.key[place]),
            "value": _nulled(
                _values(load, place), is_read & ~(is_end & (load.outcome[place] == 0))
            ),
        }
    )
