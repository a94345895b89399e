"""What Spark's jobs found stands in summary.md and on the page where there is something to say."""

from typing import Any

import pytest

from splitbrain.harness.judge.analysis_findings import finding_sentences, findings_of
from splitbrain.harness.report.analysis_tables import analysis_tables
from splitbrain.harness.report.summary import to_markdown
from tests.unit.harness.report.test_judge_summary import results

NOTHING: dict[str, Any] = {
    "reigns": {"count": 1, "ended": {"run-ended": 1}, "leaderless_max_ms": None, "examples": []},
    "divergences": {"pairs": 0, "examples": []},
    "duplicates": {"committed": None, "read": 0, "examples": []},
    "stale_reads": {"count": 0, "age_max_ms": None, "age_max_versions": None, "examples": []},
    "client_errors": {"count": 0, "classes": []},
}
REIGN = {
    "epoch": 4,
    "leader": "n2",
    "start_ms": 5300.0,
    "end_ms": 9000.0,
    "ended": "killed",
    "leaderless_ms": 1204.4,
    "epoch_leaders": 1,
}
SIDES = {"epoch_a": 3, "digest_a": "aa", "epoch_b": None, "digest_b": None}
DUPLICATE = {
    "kind": "read",
    "f": "read",
    "key": "s",
    "value": "17",
    "node": "n1",
    "count": 2,
    "expected": 1,
    "first_offset": None,
    "index": 40,
}
STALE = {
    "index": 12,
    "process": 3,
    "node": "n3",
    "key": "r1",
    "result": 41,
    "start_ms": 2000.0,
    "end_ms": 2001.0,
    "age_ms": 203.25,
    "age_versions": 3,
}
ERROR = {"type": "info", "error": "timeout|", "count": 34, "first_ms": 1200.0, "last_ms": 7800.0}
FOUND: dict[str, Any] = {
    "reigns": {
        "count": 3,
        "ended": {"killed": 2, "run-ended": 1},
        "leaderless_max_ms": 1204.4,
        "examples": [REIGN],
    },
    "divergences": {
        "pairs": 2,
        "examples": [{"node_a": "n1", "node_b": "n2", "offset": 7, **SIDES}],
    },
    "duplicates": {"committed": 1, "read": 1, "examples": [DUPLICATE]},
    "stale_reads": {"count": 1, "age_max_ms": 203.25, "age_max_versions": 3, "examples": [STALE]},
    "client_errors": {"count": 40, "classes": [ERROR, *[{**ERROR, "error": "e"}] * 4]},
}
TIMES = "(info, 1.2 s to 7.8 s)"
SENTENCES = [
    "3 reigns (2 killed, 1 run-ended); the longest time without a leader was 1,204 ms.",
    "2 pairs of committed logs differ: n1 and n2 from offset 7 on.",
    "1 write stands too often in a committed log, 1 element was returned twice by one read.",
    "1 read of what was certainly overwritten, for up to 203 ms, by up to 3 versions.",
    f"Errors of clients: 34 timeout| {TIMES}, 34 e {TIMES}, 34 e {TIMES}, and 2 more classes.",
]


def test_each_finding_is_one_sentence() -> None:
    assert finding_sentences(findings_of(FOUND)) == SENTENCES


def test_summary_shows_them_and_nothing_where_nothing_was_found() -> None:
    shown = to_markdown(results(), FOUND)
    listed = shown.split("## Analysis by Spark\n\n")[1].splitlines()[:5]
    assert listed[:4] == [f"- {sentence}" for sentence in SENTENCES[:4]]
    assert "timeout\\|" in listed[4]
    for nothing in (None, {}, NOTHING):
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
    for name in FOUND:
        told = finding_sentences(findings_of({**FOUND, name: broken}))
        assert told == [one for one in SENTENCES if one != SENTENCES[list(FOUND).index(name)]]
