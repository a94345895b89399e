"""The jobs in pandas, in one thread and wholly in memory."""

# pyright: standard

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from bench.analytics_engines.jobs import CONTEXT_NS, SLOT_NS

_NS_PER_MS: Final = 1e6
_NS_PER_SECOND: Final = 1_000_000_000
_RECORD: Final = ["run_id", "epoch", "offset", "f", "key", "value"]
_CONTENT: Final = ["run_id", "f", "key", "value"]
_QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_TYPES: Final = ("ok", "fail", "info")


class Pandas:
    """Frames that are read by every job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, job: str, output: Path) -> pd.DataFrame:
        """See ``bench.analytics_engines.jobs.Engine``."""
        if job == "pair":
            return self._pair(output / "operations.parquet")
        return {
            "latency": self._latency,
            "throughput": self._throughput,
            "windows": self._windows,
            "lost": self._lost,
            "phantom": self._phantom,
        }[job]()

    def close(self) -> None:
        """Nothing is held."""

    def _table(self, name: str, *columns: str) -> pd.DataFrame:
        return pd.read_parquet(self._folder / name, columns=list(columns), dtype_backend="pyarrow")

    def _pair(self, written: Path) -> pd.DataFrame:
        events = pd.read_parquet(self._folder / "events", dtype_backend="pyarrow")
        events = events.sort_values(["run_id", "process", "index"], ignore_index=True)
        answers = events.groupby(["run_id", "process"], sort=False)[["type", "time", "value"]]
        events[["answer_type", "end_ns", "result"]] = answers.shift(-1)
        paired = events[events["type"] == "invoke"].drop(columns="type")
        paired = paired.rename(
            columns={"value": "argument", "time": "start_ns", "answer_type": "type"}
        )
        paired["type"] = paired["type"].fillna("info")
        paired.to_parquet(written)
        paired["latency_ns"] = paired["end_ns"] - paired["start_ns"]
        grouped = paired.groupby(["run_id", "type"])
        return grouped.agg(
            operations=("index", "size"), indexes=("index", "sum"), latency_ns=("latency_ns", "sum")
        ).reset_index()

    def _latency(self) -> pd.DataFrame:
        load = self._table("operations", "run_id", "f", "type", "start_ns", "end_ns", "final")
        load = load[~load["final"]]
        load["second"] = load["start_ns"] // _NS_PER_SECOND
        load["latency"] = (load["end_ns"] - load["start_ns"]).astype("float64")
        grouped = load.groupby(["run_id", "f", "second", "type"])["latency"]
        columns = {name: grouped.quantile(share) / _NS_PER_MS for name, share in _QUANTILES.items()}
        columns |= {"count": grouped.size(), "max_ms": grouped.max() / _NS_PER_MS}
        return pd.DataFrame(columns).reset_index()

    def _throughput(self) -> pd.DataFrame:
        load = self._table("operations", "run_id", "type", "start_ns", "end_ns", "final")
        load = load[~load["final"]]
        load["second"] = load["end_ns"].fillna(load["start_ns"]) // _NS_PER_SECOND
        return _counted(load, ["run_id", "second"])

    def _windows(self) -> pd.DataFrame:
        load = self._table(
            "operations", "run_id", "f", "type", "start_ns", "end_ns", "position_epoch", "final"
        )
        load = load[~load["final"]]
        finish = load["end_ns"].fillna(load["start_ns"])
        begins = load.groupby("run_id")["start_ns"].min().to_dict()
        ends = finish.groupby(load["run_id"]).max().to_dict()
        faults = self._table("faults", "run_id", "index", "invoked_ns", "removed_ns")
        acknowledged = load[(load["type"] == "ok") & (load["f"] != "read")]
        rows: list[dict[str, object]] = []
        for run_id, group in faults.groupby("run_id"):
            span = (int(begins[run_id]), int(ends[run_id]))
            rows += _run_windows(
                str(run_id), group, acknowledged[acknowledged["run_id"] == run_id], span
            )
        return pd.DataFrame(rows)

    def _lost(self) -> pd.DataFrame:
        writes = self._named(self._table("operations", *_COLUMNS))
        writes = writes[(writes["type"] == "ok") & (writes["f"] != "read")]
        committed = self._table("committed", "node", *_RECORD)
        holders = committed.groupby(_RECORD)["node"].nunique().rename("holders").reset_index()
        nodes = self._table("logs", "run_id").groupby("run_id").size().rename("nodes")
        held = writes.merge(holders, on=_RECORD, how="left").merge(nodes, on="run_id")
        held["holders"] = held["holders"].fillna(0)
        lost = held[held["holders"] < held["nodes"] // 2 + 1]
        return lost.rename(columns={"epoch": "position_epoch", "offset": "position_offset"})

    def _phantom(self) -> pd.DataFrame:
        writes = self._named(self._table("operations", *_COLUMNS))
        writes = writes[writes["f"] != "read"]
        records = self._table("committed", *_RECORD).drop_duplicates()
        placed = writes.loc[writes["type"] == "ok", _RECORD]
        joined = records.merge(placed, on=_RECORD, how="left", indicator=True)
        unplaced = joined[joined["_merge"] == "left_only"].sort_values("offset")
        counted = _counted(writes, _CONTENT)
        unplaced["rank"] = unplaced.groupby(_CONTENT).cumcount() + 1
        ranked = unplaced.merge(counted, on=_CONTENT, how="left")
        phantom = ranked[ranked["rank"] > ranked["info"].fillna(0)]
        reason = np.where(phantom["ok"].fillna(0) > 0, "duplicate", "never-invoked")
        return phantom.assign(reason=np.where(phantom["fail"].fillna(0) > 0, "failed", reason))

    def _named(self, operations: pd.DataFrame) -> pd.DataFrame:
        return operations.rename(
            columns={"position_epoch": "epoch", "position_offset": "offset", "argument": "value"}
        )


_COLUMNS: Final = (
    *("run_id", "index", "type", "f", "key", "argument", "position_epoch", "position_offset"),
)


def _counted(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """How many rows of each group ended how."""
    ended = {name: frame["type"] == name for name in _TYPES}
    return frame.assign(**ended).groupby(by)[list(_TYPES)].sum().reset_index()


def _run_windows(
    run_id: str, faults: pd.DataFrame, acknowledged: pd.DataFrame, load: tuple[int, int]
) -> list[dict[str, object]]:
    """Return the windows of one run, from sorted arrays."""
    invoked = acknowledged["start_ns"].to_numpy("int64")
    ends = acknowledged["end_ns"].to_numpy("int64")
    epochs = acknowledged["position_epoch"].to_numpy("int64")
    slots = np.unique(ends // SLOT_NS)
    faults = faults.sort_values("invoked_ns")
    starts = faults["invoked_ns"].to_numpy("int64")
    stops = faults["removed_ns"].to_numpy("int64")
    rows: list[dict[str, object]] = []
    for place, index in enumerate(faults["index"]):
        start, stop = int(starts[place]), int(stops[place])
        begin = int(stops[place - 1]) if place else load[0]
        last = place + 1 == len(starts)
        finish = load[1] if last else int(starts[place + 1])
        in_time = np.ones(len(ends), dtype=bool) if last else ends < finish
        known = epochs[ends <= start].max(initial=-1)
        moved = in_time & (invoked > start) & (epochs > known) & (known >= 0)
        back = in_time & (invoked >= stop)
        first = int(np.where(moved, ends, np.iinfo(np.int64).max).argmin())
        spans = {
            "before": (max(start - CONTEXT_NS, load[0], begin), start),
            "during": (start, stop),
            "after": (stop, min(stop + CONTEXT_NS, load[1], finish)),
        }
        row: dict[str, object] = {"run_id": run_id, "index": index}
        for phase, (a, b) in spans.items():
            row[f"availability_{phase}"] = _share(slots, -(-a // SLOT_NS), b // SLOT_NS)
        row["failover_ms"] = (ends[first] - start) / _NS_PER_MS if moved.any() else None
        row["new_epoch"] = epochs[first] if moved.any() else None
        row["recovery_ms"] = (ends[back].min() - stop) / _NS_PER_MS if back.any() else None
        rows.append(row)
    return rows


def _share(slots: np.ndarray, first: int, end: int) -> float | None:
    if end <= first:
        return None
    inside = np.searchsorted(slots, end) - np.searchsorted(slots, first)
    return float(inside) / (end - first)
