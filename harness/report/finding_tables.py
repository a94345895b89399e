"""What Spark's jobs found in a run, as tables for the page; nothing where it is empty. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from splitbrain.harness.judge.analysis_findings import (
    Row,
    RunFindings,
    divergence_sentence,
    duplicate_sentence,
    findings_of,
    reign_sentence,
    stale_sentence,
)
from splitbrain.harness.report.shown_table import ROWS_MAX, AnalysisTable, milliseconds, text

#: Header, and what stands below it in a row.
_Column = tuple[str, Callable[[Row], str]]


def finding_tables(summary: Mapping[str, Any]) -> list[AnalysisTable]:
    """The tables of the findings in a summary."""
    findings = findings_of(summary)
    makers = (_stale_reads, _divergences, _duplicates, _reigns, _client_errors)
    return [table for make in makers if (table := make(findings)) is not None]


def _reigns(findings: RunFindings) -> AnalysisTable | None:
    found = findings.reigns
    if found is None or not found.examples:
        return None
    return _table(
        "Longest times without a leader",
        f"{reign_sentence(found)} Told by the nodes themselves: a leader that is cut off reigns "
        "until it knows.",
        (
            ("leader", _plain("leader")),
            ("how its reign ended", _plain("ended")),
            ("epoch", _plain("epoch")),
            ("elected at", _time("start_ms")),
            ("without a leader before", _time("leaderless_ms")),
        ),
        found.examples,
        text_columns=2,
    )


def _divergences(findings: RunFindings) -> AnalysisTable | None:
    found = findings.divergences
    sentence = divergence_sentence(found)
    if found is None or not sentence:
        return None
    return _table(
        "Committed logs that differ",
        f"{sentence} The first offset of each pair; the verdict is the checker's.",
        (
            ("nodes", lambda row: f"{text(row.get('node_a'))}, {text(row.get('node_b'))}"),
            ("offset", _plain("offset")),
            ("epochs there", lambda row: f"{text(row.get('epoch_a'))}, {text(row.get('epoch_b'))}"),
        ),
        found.examples,
        count=found.pairs,
    )


def _duplicates(findings: RunFindings) -> AnalysisTable | None:
    found = findings.duplicates
    sentence = duplicate_sentence(found)
    if found is None or not sentence:
        return None
    return _table(
        "What is there more often than it may be",
        sentence,
        (
            ("where", lambda row: f"{text(row.get('kind'))} by {text(row.get('node'))}"),
            ("operation", lambda row: _named(row.get("f"), row.get("key"))),
            ("value", _plain("value")),
            ("times", _plain("count")),
            ("expected", _plain("expected")),
            ("offset", _plain("first_offset")),
        ),
        found.examples,
        text_columns=3,
        count=(found.committed or 0) + found.read,
    )


def _stale_reads(findings: RunFindings) -> AnalysisTable | None:
    found = findings.stale_reads
    sentence = stale_sentence(found)
    if found is None or not sentence:
        return None
    return _table(
        "Stale reads",
        f"{sentence} Only of values that tell their write; the verdict is the checker's.",
        (
            ("read", lambda row: _named("read", row.get("key"))),
            ("node", _plain("node")),
            ("returned", _plain("result")),
            ("operation", _plain("index")),
            ("at", _time("start_ms")),
            ("overwritten for", _time("age_ms")),
            ("versions behind", _plain("age_versions")),
        ),
        found.examples,
        text_columns=3,
        count=found.count,
    )


def _client_errors(findings: RunFindings) -> AnalysisTable | None:
    found = findings.client_errors
    if found is None or not found.classes:
        return None
    shown = found.classes[:ROWS_MAX]
    return AnalysisTable(
        "Errors of clients by class",
        "Operations that failed (fail) or whose end nobody knows (info).",
        header=["class", "ended", "operations", "first at", "last at"],
        rows=[
            [
                text(one.error),
                text(one.type),
                text(one.count),
                milliseconds(one.first_ms),
                milliseconds(one.last_ms),
            ]
            for one in shown
        ],
        text_columns=2,
        more=len(found.classes) - len(shown),
    )


def _table(
    title: str,
    note: str,
    columns: Sequence[_Column],
    examples: Sequence[Row],
    *,
    text_columns: int = 1,
    count: int | None = None,
) -> AnalysisTable:
    shown = examples[:ROWS_MAX]
    return AnalysisTable(
        title,
        note,
        header=[name for name, _ in columns],
        rows=[[cell(row) for _, cell in columns] for row in shown],
        text_columns=text_columns,
        more=0 if count is None else max(0, count - len(shown)),
    )


def _plain(name: str) -> Callable[[Row], str]:
    return lambda row: text(row.get(name))


def _time(name: str) -> Callable[[Row], str]:
    def shown(row: Row) -> str:
        value = row.get(name)
        return milliseconds(value) if isinstance(value, int | float) else text(value)

    return shown


def _named(f: object, key: object) -> str:
    return text(f) if key is None else f"{text(f)} {text(key)}"
