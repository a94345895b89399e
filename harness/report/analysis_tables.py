"""Turns ``analysis/summary.json`` into tables for the page. Pure.

Shows availability and failover per fault, commits that are lost or unexplained, leaders at the same
time, and what the further jobs found (``finding_tables``); latency and throughput stand in the
charts already. Tolerates a summary that lacks a part: an analysis may be older than the report.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from splitbrain.harness.report.finding_tables import finding_tables
from splitbrain.harness.report.shown_table import ROWS_MAX, AnalysisTable, milliseconds, share, text


def analysis_tables(
    summary: Mapping[str, Any] | None, *, has_logs: bool = True
) -> list[AnalysisTable]:
    """The tables of an analysis; none where there was none.

    Args:
        summary: content of ``analysis/summary.json``.
        has_logs: whether the system leaves committed logs; else nothing is said about them.
    """
    if summary is None:
        return []
    commits = _commits(summary) if has_logs else None
    tables = (
        _windows(summary),
        commits,
        _overlaps(summary),
        *finding_tables(summary),
        _quantiles(summary),
    )
    return [table for table in tables if table is not None]


def _rows_of(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [
        cast("dict[str, Any]", row) for row in cast("list[object]", value) if isinstance(row, dict)
    ]


def _windows(summary: Mapping[str, Any]) -> AnalysisTable | None:
    windows = _rows_of(summary.get("windows"))
    if not windows:
        return None
    return AnalysisTable(
        title="Availability and failover per fault",
        note=(
            "Availability is the share of 100 ms slots in which a write was acknowledged: it "
            "counts acknowledgements, not whether they lasted. Failover is the time from the "
            "fault to the acknowledgement of a write that was invoked after it, in a new epoch; "
            "none where the fault moved no leader. Recovery is the time from the heal to the next "
            "acknowledged write. The longest unavailability at the top is another figure: the "
            "longest time without any acknowledged write, whoever leads."
        ),
        header=["#", "fault", "before", "during", "after", "failover", "recovery", "new epoch"],
        rows=[
            [
                text(row.get("index")),
                f"{row.get('kind')}:{row.get('target')}",
                share(row.get("availability_before")),
                share(row.get("availability_during")),
                share(row.get("availability_after")),
                milliseconds(row.get("failover_ms")),
                milliseconds(row.get("recovery_ms")),
                text(row.get("new_epoch")),
            ]
            for row in windows[:ROWS_MAX]
        ],
        text_columns=2,
        more=max(0, len(windows) - ROWS_MAX),
    )


def _commits(summary: Mapping[str, Any]) -> AnalysisTable | None:
    lost, phantom = summary.get("lost"), summary.get("phantom")
    if not isinstance(lost, dict) or not isinstance(phantom, dict):
        return None
    known = cast("dict[str, Any]", lost)
    unexplained = cast("dict[str, Any]", phantom)
    return AnalysisTable(
        title="Acknowledged writes and committed records",
        note="Counted by Spark over the logs that the nodes left; the verdict is the checker's.",
        header=["what", "counted", "of"],
        rows=[
            ["acknowledged writes missing from the logs", *_pair(known, "missing", "acknowledged")],
            [
                "committed records that nobody wrote",
                *_pair(unexplained, "unexplained", "committed"),
            ],
            ["nodes whose log was read", *_pair(known, "logs", "nodes")],
        ],
    )


def _overlaps(summary: Mapping[str, Any]) -> AnalysisTable | None:
    overlaps = _rows_of(summary.get("leader_overlaps"))
    if not overlaps:
        return None
    return AnalysisTable(
        title="Leaders at the same time",
        note="Of different epochs it is harmless by itself; of one epoch never.",
        header=["nodes", "epochs", "from", "for", "same epoch"],
        rows=[
            [
                f"{row.get('node_a')}, {row.get('node_b')}",
                f"{row.get('epoch_a')}, {row.get('epoch_b')}",
                milliseconds(row.get("start_ms")),
                milliseconds(_difference(row.get("end_ms"), row.get("start_ms"))),
                "yes" if row.get("same_epoch") else "no",
            ]
            for row in overlaps[:ROWS_MAX]
        ],
        text_columns=2,
        more=max(0, len(overlaps) - ROWS_MAX),
    )


def _quantiles(summary: Mapping[str, Any]) -> AnalysisTable | None:
    """The worst second of every kind of operation."""
    worst: dict[str, dict[str, Any]] = {}
    for row in _rows_of(summary.get("latency")):
        kind = str(row.get("f"))
        if (row.get("p99_ms") or 0) >= (worst.get(kind, {}).get("p99_ms") or 0):
            worst[kind] = row
    if not worst:
        return None
    return AnalysisTable(
        title="Latency in the slowest second of each operation",
        note="Of operations that succeeded.",
        header=["operation", "second", "operations", "p50", "p95", "p99", "max"],
        rows=[
            [
                kind,
                text(row.get("second")),
                text(row.get("count")),
                *(milliseconds(row.get(f"{name}_ms")) for name in ("p50", "p95", "p99", "max")),
            ]
            for kind, row in sorted(worst.items())
        ],
    )


def _pair(row: Mapping[str, Any], first: str, second: str) -> Sequence[str]:
    return text(row.get(first)), text(row.get(second))


def _difference(later: Any, earlier: Any) -> float | None:
    return None if later is None or earlier is None else later - earlier
