"""Small results of one run as one JSON object for reports, ``analysis/summary.json``.

Its keys, with times in milliseconds since the run's start:

- ``schema``: version of this layout; ``run_id``; ``damage``: what could not be read, one sentence
  each; ``seconds``: how long the jobs took
- ``latency``: ``f, second, count, p50_ms, p95_ms, p99_ms, max_ms`` of ok operations, ascending
- ``throughput``: ``second, ok, fail, info``, every second from the first to the last
- ``windows``: one per injected fault: ``index, kind, target, nodes, start_ms, end_ms, verified``,
  ``availability_before``, ``_during``, ``_after``, ``ok_ratio_before``, ``_during``, ``_after``,
  ``failover_ms``, ``recovery_ms``, ``new_epoch``; null where a figure has no meaning, as defined
  in ``jobs.availability``
- ``longest_unavailability_ms`` and ``unavailability`` (``start_ms, end_ms``), both null for a run
  without writes
- ``elections``: epochs in which a node led
- ``lost``: ``acknowledged`` writes, ``missing`` of them, ``examples``, ``nodes`` of the run,
  ``logs`` dumped of them; without any log ``missing`` is null: nothing can be said
- ``phantom``: ``committed`` records, ``unexplained`` of them (null as above), ``examples``
- ``leaders``: ``node, epoch, start_ms, end_ms``
- ``leader_overlaps``: ``epoch_a, epoch_b, node_a, node_b, start_ms, end_ms, same_epoch``; those of
  one epoch first
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_analysis.ingest import Ingested
from spark_analysis.schemas import (
    LATENCY,
    LEADER_OVERLAPS,
    LEADERS,
    LOST,
    PHANTOM,
    THROUGHPUT,
    UNAVAILABILITY,
    WINDOWS,
    Table,
)

SUMMARY_SCHEMA: Final = 1
#: Rows of a list in the summary; beyond it the Parquet files have the rest.
ROWS_MAX: Final = 20_000
#: Lost and phantom commits that are shown.
EXAMPLES_MAX: Final = 20
_NS_PER_MS: Final = 1e6


class Counts(NamedTuple):
    """How much there was to look at."""

    #: Acknowledged writes.
    acknowledged: int
    #: Different committed records of the workload, over all nodes.
    committed: int
    #: Nodes of the run.
    nodes: int
    #: Nodes whose log was dumped.
    logs: int


def summarize(
    ingested: Ingested, results: Mapping[Table, DataFrame], counts: Counts
) -> dict[str, Any]:
    """The summary, apart from ``seconds``, of the stored results of one run."""
    ok_latency = results[LATENCY].where(sql.col("type") == "ok").drop("type")
    gaps = _rows(_in_ms(_collect(results[UNAVAILABILITY], "run_id")))
    leaders = _in_ms(_collect(results[LEADERS], "start_ns", "epoch", "node"))
    overlaps = _in_ms(_collect(results[LEADER_OVERLAPS], "epoch_a", "epoch_b", "start_ns"))
    overlaps = overlaps.sort_values("same_epoch", ascending=False, kind="stable")
    return {
        "schema": SUMMARY_SCHEMA,
        "run_id": ingested.run_id,
        "damage": list(ingested.damage),
        "latency": _rows(_collect(ok_latency, "f", "second")),
        "throughput": _rows(_every_second(_collect(results[THROUGHPUT], "second"))),
        "windows": _rows(_in_ms(_collect(results[WINDOWS], "start_ns", "index"))),
        "longest_unavailability_ms": gaps[0]["gap_ms"] if gaps else None,
        "unavailability": {name: gaps[0][name] for name in ("start_ms", "end_ms")}
        if gaps
        else None,
        "elections": results[LEADERS].select("epoch").distinct().count(),
        "lost": {
            "acknowledged": counts.acknowledged,
            "missing": results[LOST].count() if counts.logs else None,
            "examples": _examples(results[LOST], "position_offset", "index"),
            "nodes": counts.nodes,
            "logs": counts.logs,
        },
        "phantom": {
            "committed": counts.committed,
            "unexplained": results[PHANTOM].count() if counts.logs else None,
            "examples": _examples(results[PHANTOM], "offset", "epoch"),
        },
        "leaders": _rows(leaders),
        "leader_overlaps": _rows(overlaps),
    }


def _collect(result: DataFrame, *order: str, limit: int = ROWS_MAX) -> pd.DataFrame:
    """The first rows of a result, without the run id; integers stay integers beside nulls."""
    table = result.drop("run_id").orderBy(*order).limit(limit).toArrow()
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _in_ms(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn the columns in nanoseconds into milliseconds, in their places."""
    names = [str(name) for name in frame.columns if str(name).endswith("_ns")]
    changed = frame.assign(**{name: frame[name] / _NS_PER_MS for name in names})
    return changed.rename(columns={name: f"{name.removesuffix('_ns')}_ms" for name in names})


def _every_second(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the seconds in which nothing ended."""
    if frame.empty:
        return frame
    seconds = pd.RangeIndex(frame["second"].min(), frame["second"].max() + 1, name="second")
    return frame.set_index("second").reindex(seconds, fill_value=0).reset_index()


def _examples(result: DataFrame, *order: str) -> list[dict[str, Any]]:
    """The first few rows, their values decoded from JSON again."""
    rows = _rows(_in_ms(_collect(result, *order, limit=EXAMPLES_MAX)))
    for row in rows:
        for name in ("argument", "value"):
            if row.get(name) is not None:
                row[name] = msgspec.json.decode(row[name])
    return rows


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Plain Python values, null as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    rows = cast("list[dict[str, Any]]", plain.to_dict("records"))
    if "nodes" in frame.columns:
        for row in rows:
            row["nodes"] = list(row["nodes"])
    return rows
