"""Findings of the Spark analysis as sentences of ``summary.md`` and tables of the page. Pure.

``TABLES`` has one row for each finding: its sentence and its columns. Empty findings are not shown;
latency and throughput stand in the charts already. Verdicts are the checkers' alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.analysis.run import (
    ClientErrors,
    Divergences,
    Duplicates,
    LeaderOverlap,
    OkLatency,
    Reigns,
    RunAnalysis,
    StaleReads,
)
from splitbrain.contracts.words import counted
from splitbrain.harness.console.plain_text import value_text

_CLASSES_MAX: Final = 3
#: Rows of one table; the rest is counted.
ROWS_MAX: Final = 100
_AVAILABILITY_NOTE: Final = (
    "Availability is the share of 100 ms slots in which a write was acknowledged: it counts "
    "acknowledgements, not whether they lasted. Failover is the time from the fault to the "
    "acknowledgement of a write that was invoked after it, in a new epoch; none where the fault "
    "moved no leader. Recovery is the time from the heal to the next acknowledged write. The "
    "longest unavailability at the top is another figure: the longest time without any "
    "acknowledged write, whoever leads."
)


class AnalysisTable(msgspec.Struct, frozen=True):
    """One table: rows of text under a header."""

    title: str
    #: One sentence on the meaning of the figures.
    note: str
    header: list[str]
    rows: list[list[str]]
    #: Columns of text at the left; the others are figures.
    text_columns: int = 1
    #: Rows left out.
    more: int = 0


class ShownPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the analysis as it is shown."""

    #: Field of ``RunAnalysis``.
    part: str
    title: str
    #: Header to a field of a row, or to a function that makes the cell; times end in ``_ms``.
    columns: dict[str, str | Callable[[Any], str]]
    rows: Callable[[Any], Sequence[Any]] = list
    #: Sentence on the part, empty where there is nothing to say and no table; None: it has none.
    sentence: Callable[[Any], str] | None = None
    #: Below the title; braces stand for the sentence.
    note: str
    text_columns: int = 1
    count: Callable[[Any], int] | None = None

    def text(self, analysis: RunAnalysis) -> str:
        """Return the sentence, empty where there is nothing to say."""
        part = getattr(analysis, self.part)
        return "" if part is None or self.sentence is None else self.sentence(part)

    def table(self, analysis: RunAnalysis) -> AnalysisTable | None:
        """Return the table; None where it would be empty."""
        part = getattr(analysis, self.part)
        sentence = self.text(analysis)
        if part is None or (self.sentence is not None and not sentence):
            return None
        rows = self.rows(part)
        if not rows:
            return None
        shown = rows[:ROWS_MAX]
        return AnalysisTable(
            self.title,
            self.note.format(sentence),
            header=[*self.columns],
            rows=[[_cell(row, column) for column in self.columns.values()] for row in shown],
            text_columns=self.text_columns,
            more=max(0, (self.count(part) if self.count else len(rows)) - len(shown)),
        )


def analysis_tables(analysis: RunAnalysis | None, *, has_logs: bool = True) -> list[AnalysisTable]:
    """Return the tables of an analysis; none where there was none.

    Without ``has_logs`` nothing is said about committed logs.
    """
    if analysis is None:
        return []
    windows, *others = (part.table(analysis) for part in TABLES)
    tables = (windows, _commits(analysis) if has_logs else None, *others)
    return [table for table in tables if table is not None]


def finding_sentences(analysis: RunAnalysis | None) -> list[str]:
    """Return one sentence for each finding that has one."""
    if analysis is None:
        return []
    sentences = {part.part: part.text(analysis) for part in TABLES}
    return [sentence for part in analysis.__struct_fields__ if (sentence := sentences.get(part))]


def _commits(analysis: RunAnalysis) -> AnalysisTable | None:
    lost, phantom = analysis.lost, analysis.phantom
    if lost is None or phantom is None:
        return None
    rows = (
        ("acknowledged writes missing from the logs", lost.missing, lost.acknowledged),
        ("committed records that nobody wrote", phantom.unexplained, phantom.committed),
        ("nodes whose log was read", lost.logs, lost.nodes),
    )
    return AnalysisTable(
        title="Acknowledged writes and committed records",
        note="Counted by Spark over the logs that the nodes left; the verdict is the checker's.",
        header=["what", "counted", "of"],
        rows=[[what, _text(count), _text(of)] for what, count, of in rows],
    )


def _reigns(found: Reigns) -> str:
    if found.leaderless_max_ms is None:
        return ""
    ends = ", ".join(f"{count:,} {how}" for how, count in found.ended.items())
    return (
        f"{counted(found.count, 'reign')} ({ends}); the longest time without a leader was "
        f"{found.leaderless_max_ms:,.0f} ms."
    )


def _divergences(found: Divergences) -> str:
    if not found.pairs:
        return ""
    pairs = counted(found.pairs, "pair of committed logs differs", "pairs of committed logs differ")
    first = next(iter(found.examples), None)
    where = first and f": {first.node_a} and {first.node_b} from offset {first.offset} on"
    return f"{pairs}{where or ''}."


def _duplicates(found: Duplicates) -> str:
    written = "stands too often in a committed log", "stand too often in committed logs"
    read = "was returned twice by one read", "were returned twice by one read"
    clauses = [
        counted(count, f"{thing} {once}", f"{thing}s {often}")
        for count, thing, (once, often) in (
            (found.committed, "write", written),
            (found.read, "element", read),
        )
        if count
    ]
    return f"{', '.join(clauses)}." if clauses else ""


def _stale_reads(found: StaleReads) -> str:
    if not found.count or found.age_max_ms is None:
        return ""
    versions = found.age_max_versions
    behind = "" if versions is None else f", by up to {counted(versions, 'version')}"
    return (
        f"{counted(found.count, 'read')} of what was certainly overwritten, for up to "
        f"{found.age_max_ms:,.0f} ms{behind}."
    )


def _client_errors(found: ClientErrors) -> str:
    classes = [
        f"{error.count:,} {error.error} ({error.type}, {error.first_ms / 1000:,.1f} s to "
        f"{error.last_ms / 1000:,.1f} s)"
        for error in found.classes[:_CLASSES_MAX]
    ]
    more = len(found.classes) - len(classes)
    others = f", and {counted(more, 'more class', 'more classes')}" if more > 0 else ""
    return f"Errors of clients: {', '.join(classes)}{others}." if classes else ""


def _slowest(latency: Sequence[OkLatency]) -> list[OkLatency]:
    worst: dict[str, OkLatency] = {}
    for row in latency:
        if row.f not in worst or (row.p99_ms or 0) >= (worst[row.f].p99_ms or 0):
            worst[row.f] = row
    return [worst[f] for f in sorted(worst)]


def _text(value: Any) -> str:
    return "-" if value is None else value_text(value)


def _percent(value: Any) -> str:
    return "-" if value is None else f"{value:.0%}"


def _milliseconds(value: Any) -> str:
    return "-" if value is None else f"{value:,.1f} ms"


def _cell(row: Any, column: str | Callable[[Any], str]) -> str:
    if not isinstance(column, str):
        return column(row)
    value = getattr(row, column)
    return _milliseconds(value) if column.endswith("_ms") else _text(value)


def _share(field: str) -> Callable[[Any], str]:
    return lambda row: _percent(getattr(row, field))


def _both(field: str) -> Callable[[Any], str]:
    return lambda row: f"{_text(getattr(row, f'{field}_a'))}, {_text(getattr(row, f'{field}_b'))}"


def _named(f: object, key: object) -> str:
    return _text(f) if key is None else f"{_text(f)} {_text(key)}"


def _overlap_ms(row: LeaderOverlap) -> str:
    return _milliseconds(row.end_ms - row.start_ms)


def _examples(part: Any) -> Sequence[Any]:
    return part.examples


#: In the order of the page.
TABLES: tuple[ShownPart, ...] = (
    ShownPart(
        part="windows",
        title="Availability and failover per fault",
        note=_AVAILABILITY_NOTE,
        columns={
            "#": "index",
            "fault": lambda row: f"{row.kind}:{row.target}",
            "before": _share("availability_before"),
            "during": _share("availability_during"),
            "after": _share("availability_after"),
            "failover": "failover_ms",
            "recovery": "recovery_ms",
            "new epoch": "new_epoch",
        },
        text_columns=2,
    ),
    ShownPart(
        part="leader_overlaps",
        title="Leaders at the same time",
        note="Of different epochs it is harmless by itself; of one epoch never.",
        columns={
            "nodes": _both("node"),
            "epochs": _both("epoch"),
            "from": "start_ms",
            "for": _overlap_ms,
            "same epoch": lambda row: "yes" if row.same_epoch else "no",
        },
        text_columns=2,
    ),
    ShownPart(
        part="stale_reads",
        title="Stale reads",
        sentence=_stale_reads,
        note="{} Only of values that tell their write; the verdict is the checker's.",
        rows=_examples,
        columns={
            "read": lambda row: _named("read", row.key),
            "node": "node",
            "returned": "result",
            "operation": "index",
            "at": "start_ms",
            "overwritten for": "age_ms",
            "versions behind": "age_versions",
        },
        text_columns=3,
        count=lambda part: part.count,
    ),
    ShownPart(
        part="divergences",
        title="Committed logs that differ",
        sentence=_divergences,
        note="{} The first offset of each pair; the verdict is the checker's.",
        rows=_examples,
        columns={"nodes": _both("node"), "offset": "offset", "epochs there": _both("epoch")},
        count=lambda part: part.pairs,
    ),
    ShownPart(
        part="duplicates",
        title="What is there more often than it may be",
        sentence=_duplicates,
        note="{}",
        rows=_examples,
        columns={
            "where": lambda row: f"{_text(row.kind)} by {_text(row.node)}",
            "operation": lambda row: _named(row.f, row.key),
            "value": "value",
            "times": "count",
            "expected": "expected",
            "offset": "first_offset",
        },
        text_columns=3,
        count=lambda part: (part.committed or 0) + part.read,
    ),
    ShownPart(
        part="reigns",
        title="Longest times without a leader",
        sentence=_reigns,
        note="{} Told by the nodes themselves: a leader that is cut off reigns until it knows.",
        rows=_examples,
        columns={
            "leader": "leader",
            "how its reign ended": "ended",
            "epoch": "epoch",
            "elected at": "start_ms",
            "without a leader before": "leaderless_ms",
        },
        text_columns=2,
    ),
    ShownPart(
        part="client_errors",
        title="Errors of clients by class",
        sentence=_client_errors,
        note="Operations that failed (fail) or whose outcome is unknown (info).",
        rows=lambda part: part.classes,
        columns={
            "class": "error",
            "ended": "type",
            "operations": "count",
            "first at": "first_ms",
            "last at": "last_ms",
        },
        text_columns=2,
    ),
    ShownPart(
        part="latency",
        title="Latency in the slowest second of each operation",
        note="Of operations that succeeded.",
        rows=_slowest,
        columns={
            "operation": "f",
            "second": "second",
            "operations": "count",
            **{name: f"{name}_ms" for name in ("p50", "p95", "p99", "max")},
        },
    ),
)
