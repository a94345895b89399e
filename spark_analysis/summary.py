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
- what ``finding_summary`` tells: ``reigns, divergences, duplicates, stale_reads, client_errors``
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.spark_analysis.collected import collect, in_ms, plain_rows
from splitbrain.spark_analysis.finding_summary import EXAMPLES_MAX, summarize_findings
from splitbrain.spark_analysis.ingest import Ingested
from splitbrain.spark_analysis.schemas import (
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
    gaps = plain_rows(in_ms(_collect(results[UNAVAILABILITY], "run_id")))
    leaders = in_ms(_collect(results[LEADERS], "start_ns", "epoch", "node"))
    overlaps = in_ms(_collect(results[LEADER_OVERLAPS], "epoch_a", "epoch_b", "start_ns"))
    overlaps = overlaps.sort_values("same_epoch", ascending=False, kind="stable")
    return {
        "schema": SUMMARY_SCHEMA,
        "run_id": ingested.run_id,
        "damage": list(ingested.damage),
        "latency": plain_rows(_collect(ok_latency, "f", "second")),
        "throughput": plain_rows(_every_second(_collect(results[THROUGHPUT], "second"))),
        "windows": plain_rows(in_ms(_collect(results[WINDOWS], "start_ns", "index"))),
        "longest_unavailability_ms": gaps[0]["gap_ms"] if gaps else None,
        "unavailability": {name: gaps[0][name] for name in ("start_ms", "end_ms")}
        if gaps
        else None,
        "elections": results[LEADERS].select("epoch").distinct().count(),
        "lost": {
            "acknowledged": counts.acknowledged,
            "missing": results[LOST].count() if counts.logs else None,
            "examples": _examples(results[LOST], "position_offset", "index", decoded="argument"),
            "nodes": counts.nodes,
            "logs": counts.logs,
        },
        "phantom": {
            "committed": counts.committed,
            "unexplained": results[PHANTOM].count() if counts.logs else None,
            "examples": _examples(results[PHANTOM], "offset", "epoch", decoded="value"),
        },
        "leaders": plain_rows(leaders),
        "leader_overlaps": plain_rows(overlaps),
        **summarize_findings(results, logs=counts.logs),
    }


def _collect(result: DataFrame, *order: str) -> pd.DataFrame:
    return collect(result, *order, limit=ROWS_MAX)


def _every_second(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the seconds in which nothing ended."""
    if frame.empty:
        return frame
    seconds = pd.RangeIndex(frame["second"].min(), frame["second"].max() + 1, name="second")
    return frame.set_index("second").reindex(seconds, fill_value=0).reset_index()


def _examples(result: DataFrame, *order: str, decoded: str) -> list[dict[str, Any]]:
    """The first few rows, their values decoded from JSON again."""
    first = in_ms(collect(result, *order, limit=EXAMPLES_MAX))
    return plain_rows(first, decoded=(decoded,))
