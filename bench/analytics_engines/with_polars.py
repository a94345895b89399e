"""The jobs in polars' lazy frames, run by its streaming engine."""

# pyright: standard

from pathlib import Path
from typing import Final

import pandas as pd
import polars as pl

from bench.analytics_engines.jobs import CONTEXT_NS, SLOT_NS

_QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_NS_PER_MS: Final = 1e6
_FAULT: Final = ("run_id", "index")
_RECORD: Final = ("run_id", "epoch", "offset", "f", "key", "value")


class Polars:
    """Frames that are read by every job; threads are set by ``POLARS_MAX_THREADS``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, job: str, output: Path) -> pd.DataFrame:
        """See ``bench.analytics_engines.jobs.Engine``."""
        frame = {
            "pair": lambda: self._pair(output / "operations.parquet"),
            "latency": self._latency,
            "throughput": self._throughput,
            "windows": self._windows,
            "lost": self._lost,
            "phantom": self._phantom,
        }[job]()
        return frame.collect(engine="streaming").to_pandas()

    def close(self) -> None:
        """Nothing is held."""

    def _table(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(self._folder / name / "*.parquet")

    def _load(self) -> pl.LazyFrame:
        return self._table("operations").filter(~pl.col("final"))

    def _pair(self, written: Path) -> pl.LazyFrame:
        answer = {
            name: pl.col(name).shift(-1).over("run_id", "process", order_by="index")
            for name in ("type", "time", "value")
        }
        paired = (
            self._table("events")
            .with_columns(answer[name].alias(f"answer_{name}") for name in answer)
            .filter(pl.col("type") == "invoke")
            .select(
                *("run_id", "index", "process", "f", "key"),
                pl.col("value").alias("argument"),
                pl.col("answer_value").alias("result"),
                pl.col("answer_type").fill_null("info").alias("type"),
                pl.col("time").alias("start_ns"),
                pl.col("answer_time").alias("end_ns"),
            )
        )
        paired.sink_parquet(written)
        return (
            pl.scan_parquet(written)
            .group_by("run_id", "type")
            .agg(
                pl.len().alias("operations"),
                pl.col("index").sum().alias("indexes"),
                (pl.col("end_ns") - pl.col("start_ns")).sum().alias("latency_ns"),
            )
        )

    def _latency(self) -> pl.LazyFrame:
        latency = pl.col("end_ns") - pl.col("start_ns")
        return (
            self._load()
            .with_columns(second=pl.col("start_ns") // 1_000_000_000, latency=latency)
            .group_by("run_id", "f", "second", "type")
            .agg(
                pl.len().alias("count"),
                *(
                    (pl.col("latency").quantile(share, "linear") / _NS_PER_MS).alias(name)
                    for name, share in _QUANTILES.items()
                ),
                (pl.col("latency").max() / _NS_PER_MS).alias("max_ms"),
            )
        )

    def _throughput(self) -> pl.LazyFrame:
        second = pl.coalesce("end_ns", "start_ns") // 1_000_000_000
        counts = [(pl.col("type") == name).sum().alias(name) for name in ("ok", "fail", "info")]
        return self._load().group_by("run_id", second.alias("second")).agg(counts)

    def _acknowledged(self) -> pl.LazyFrame:
        return self._load().filter((pl.col("type") == "ok") & (pl.col("f") != "read"))

    def _windows(self) -> pl.LazyFrame:
        bounds = (
            self._load()
            .group_by("run_id")
            .agg(
                load_start=pl.col("start_ns").min(),
                load_end=pl.coalesce("end_ns", "start_ns").max(),
            )
        )
        windows = (
            self._table("faults")
            .join(bounds, on="run_id")
            .sort("run_id", "invoked_ns")
            .select(
                *_FAULT,
                pl.col("invoked_ns").alias("start"),
                pl.col("removed_ns").alias("end"),
                "load_start",
                "load_end",
                pl.col("removed_ns").shift(1).over("run_id").alias("free_from"),
                pl.col("invoked_ns").shift(-1).over("run_id").alias("free_until"),
            )
            # Few rows that everything below begins with.
            .collect()
            .lazy()
        )
        acknowledged = self._acknowledged().select(
            "run_id",
            pl.col("start_ns").alias("asked"),
            pl.col("end_ns").alias("told"),
            pl.col("position_epoch").alias("epoch"),
        )
        result = windows.select(_FAULT)
        for phase, frame in _spans(windows).items():
            result = result.join(_served(frame, acknowledged, phase), on=_FAULT, how="left")
        return result.join(_moved(windows, acknowledged), on=_FAULT, how="left").join(
            _back(windows, acknowledged), on=_FAULT, how="left"
        )

    def _lost(self) -> pl.LazyFrame:
        writes = self._acknowledged().rename(
            {"position_epoch": "epoch", "position_offset": "offset", "argument": "value"}
        )
        holders = self._table("committed").group_by(_RECORD).agg(pl.col("node").n_unique())
        nodes = self._table("logs").group_by("run_id").agg(pl.len().alias("nodes"))
        return (
            writes.select("index", *_RECORD)
            .join(holders, on=_RECORD, how="left")
            .join(nodes, on="run_id")
            .with_columns(holders=pl.col("node").fill_null(0))
            .filter(pl.col("holders") < pl.col("nodes") // 2 + 1)
            .rename({"epoch": "position_epoch", "offset": "position_offset"})
        )

    def _phantom(self) -> pl.LazyFrame:
        writes = self._table("operations").filter(pl.col("f") != "read")
        named = writes.rename(
            {"position_epoch": "epoch", "position_offset": "offset", "argument": "value"}
        )
        placed = named.filter(pl.col("type") == "ok").select(_RECORD)
        unplaced = self._table("committed").select(_RECORD).unique()
        unplaced = unplaced.join(placed, on=_RECORD, how="anti")
        content = ("run_id", "f", "key", "value")
        explaining = named.group_by(content).agg(
            (pl.col("type") == name).sum().alias(name) for name in ("ok", "fail", "info")
        )
        rank = pl.col("offset").rank("ordinal").over(content)
        return (
            unplaced.with_columns(rank=rank)
            .join(explaining, on=content, how="left")
            .filter(pl.col("rank") > pl.col("info").fill_null(0))
            .with_columns(
                reason=pl.when(pl.col("fail") > 0)
                .then(pl.lit("failed"))
                .when(pl.col("ok") > 0)
                .then(pl.lit("duplicate"))
                .otherwise(pl.lit("never-invoked"))
            )
        )


def _spans(windows: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Return the first and the last moment of each phase of each window."""
    start, end = pl.col("start"), pl.col("end")
    bounds = {
        "before": (pl.max_horizontal(start - CONTEXT_NS, "load_start", "free_from"), start),
        "during": (start, end),
        "after": (end, pl.min_horizontal(end + CONTEXT_NS, "load_end", "free_until")),
    }
    return {
        phase: windows.select(
            *_FAULT,
            (-((-first) // SLOT_NS)).alias("first_slot"),
            (last // SLOT_NS).alias("end_slot"),
        )
        for phase, (first, last) in bounds.items()
    }


def _served(spans: pl.LazyFrame, acknowledged: pl.LazyFrame, phase: str) -> pl.LazyFrame:
    slots = acknowledged.select("run_id", (pl.col("told") // SLOT_NS).alias("slot")).unique()
    # Slots that served, up to each bound: their difference is what lies between.
    ranked = slots.sort("run_id", "slot").with_columns(
        served=pl.col("slot").cum_count().over("run_id")
    )

    def until(bound: str) -> pl.LazyFrame:
        return (
            spans.with_columns(before=pl.col(bound) - 1)
            .sort("before")
            .join_asof(
                ranked.sort("slot"),
                left_on="before",
                right_on="slot",
                by="run_id",
                check_sortedness=False,
            )
            .select(*_FAULT, pl.col("served").fill_null(0).alias(bound))
        )

    slots_inside = pl.col("end_slot") - pl.col("first_slot")
    return (
        spans.join(until("first_slot"), on=_FAULT, suffix="_served")
        .join(until("end_slot"), on=_FAULT, suffix="_served")
        .select(
            *_FAULT,
            pl.when(slots_inside > 0)
            .then((pl.col("end_slot_served") - pl.col("first_slot_served")) / slots_inside)
            .alias(f"availability_{phase}"),
        )
    )


def _moved(windows: pl.LazyFrame, acknowledged: pl.LazyFrame) -> pl.LazyFrame:
    epochs = acknowledged.group_by("run_id", "epoch").agg(first=pl.col("told").min())
    known = (
        windows.join(epochs, on="run_id")
        .filter(pl.col("first") <= pl.col("start"))
        .group_by(_FAULT)
        .agg(known=pl.col("epoch").max())
    )
    before_next = (pl.col("told") < pl.col("free_until")).fill_null(value=True)
    return (
        windows.join(known, on=_FAULT)
        .join(acknowledged, on="run_id")
        .filter((pl.col("asked") > pl.col("start")) & (pl.col("epoch") > pl.col("known")))
        .filter(before_next)
        .group_by(_FAULT)
        .agg(
            failover_ms=(pl.col("told").min() - pl.col("start").first()) / _NS_PER_MS,
            new_epoch=pl.col("epoch").sort_by("told").first(),
        )
    )


def _back(windows: pl.LazyFrame, acknowledged: pl.LazyFrame) -> pl.LazyFrame:
    before_next = (pl.col("told") < pl.col("free_until")).fill_null(value=True)
    return (
        windows.join(acknowledged, on="run_id")
        .filter((pl.col("asked") >= pl.col("end")) & before_next)
        .group_by(_FAULT)
        .agg(recovery_ms=(pl.col("told").min() - pl.col("end").first()) / _NS_PER_MS)
    )
