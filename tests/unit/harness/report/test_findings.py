"""Findings of Spark's jobs in summary.md and on the page, where there are any."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.analysis.run import (
    ClientErrors,
    Divergence,
    Divergences,
    Duplicate,
    Duplicates,
    ErrorClass,
    Reign,
    Reigns,
    RunAnalysis,
    StaleRead,
    StaleReads,
)
from splitbrain.harness.judge.analysis_process import analysis_of, read_analysis
from splitbrain.harness.report.findings import TABLES, analysis_tables, finding_sentences
from splitbrain.harness.report.summary import to_markdown
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.report.test_judge_summary import results

NOTHING = RunAnalysis(
    reigns=Reigns(1, {"run-ended": 1}, None, []),
    divergences=Divergences(0, []),
    duplicates=Duplicates(None, 0, []),
    stale_reads=StaleReads(0, None, None, []),
    client_errors=ClientErrors(0, []),
)
ERROR = ErrorClass("info", "timeout|", 34, 1200.0, 7800.0)
OTHERS = [ErrorClass("info", "e", 34, 1200.0, 7800.0)] * 4
FOUND = RunAnalysis(
    reigns=Reigns(
        *(3, {"killed": 2, "run-ended": 1}, 1204.4),
        [Reign(4, "n2", 5300.0, 9000.0, "killed", 1204.4, 1)],
    ),
    divergences=Divergences(2, [Divergence("n1", "n2", 7, 3, "aa", None, None)]),
    duplicates=Duplicates(1, 1, [Duplicate("read", "read", "s", "17", "n1", 2, 1, None, 40)]),
    stale_reads=StaleReads(
        *(1, 203.25, 3), [StaleRead(12, 3, "n3", "r1", 41, 2000.0, 2001.0, 203.25, 3)]
    ),
    client_errors=ClientErrors(40, [ERROR, *OTHERS]),
)
FINDINGS = ("reigns", "divergences", "duplicates", "stale_reads", "client_errors")
TIMES = "(info, 1.2 s to 7.8 s)"
SENTENCES = [
    "3 reigns (2 killed, 1 run-ended); the longest time without a leader was 1,204 ms.",
    "2 pairs of committed logs differ: n1 and n2 from offset 7 on.",
    "1 write stands too often in a committed log, 1 element was returned twice by one read.",
    "1 read of what was certainly overwritten, for up to 203 ms, by up to 3 versions.",
    f"Errors of clients: 34 timeout| {TIMES}, 34 e {TIMES}, 34 e {TIMES}, and 2 more classes.",
]


def test_each_finding_is_one_sentence() -> None:
    assert finding_sentences(FOUND) == SENTENCES


def test_summary_shows_them_and_nothing_where_nothing_was_found() -> None:
    shown = to_markdown(results(), FOUND)
    listed = shown.split("## Analysis by Spark\n\n")[1].splitlines()[:5]
    assert listed[:4] == [f"- {sentence}" for sentence in SENTENCES[:4]]
    assert "timeout\\|" in listed[4]
    for nothing in (None, RunAnalysis(), NOTHING):
        assert "Spark" not in to_markdown(results(), nothing)


def test_the_page_has_a_table_of_each() -> None:
    tables = {table.title: table for table in analysis_tables(FOUND)}
    assert list(tables) == [
        "Stale reads",
        "Committed logs that differ",
        "What is there more often than it may be",
        "Longest times without a leader",
        "Errors of clients by class",
    ]
    stale, logs, twice, reigns, errors = tables.values()
    assert stale.rows == [["read r1", "n3", "41", "12", "2,000.0 ms", "203.2 ms", "3"]]
    assert (logs.rows, logs.more) == ([["n1, n2", "7", "3, -"]], 1)
    assert (twice.rows, twice.more) == ([["read by n1", "read s", "17", "2", "1", "-"]], 1)
    assert reigns.rows == [["n2", "killed", "4", "5,300.0 ms", "1,204.4 ms"]]
    assert SENTENCES[0] in reigns.note
    assert errors.rows[0] == ["timeout|", "info", "34", "1,200.0 ms", "7,800.0 ms"]
    assert len(errors.rows) == 5
    assert all(len(row) == len(table.header) for table in tables.values() for row in table.rows)
    assert analysis_tables(NOTHING) == []


@pytest.mark.parametrize("broken", [3, "x", [], {"count": "many", "pairs": {}, "read": None}])
def test_a_finding_that_is_told_otherwise_costs_no_other(broken: object) -> None:
    summary = msgspec.to_builtins(FOUND)
    for name, sentence in zip(FINDINGS, SENTENCES, strict=True):
        told = finding_sentences(analysis_of({**summary, name: broken}))
        assert told == [one for one in SENTENCES if one != sentence]


def test_a_summary_of_before_is_read_whole_and_written_alike(tmp_path: Path) -> None:
    before = Path(__file__).parents[3] / "kept_runs" / "analysis" / "summary.json"
    told = msgspec.json.decode(before.read_bytes())
    place = RunFolder(tmp_path).analysis_summary
    place.parent.mkdir()
    place.write_bytes(before.read_bytes())
    analysis, problem = read_analysis(tmp_path)
    assert problem is None
    assert msgspec.to_builtins(analysis) == told
    assert len(analysis_tables(analysis)) == len(TABLES) + 1
