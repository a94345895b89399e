"""The page and the summary over all runs: new first, changes marked, hostile text harmless."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.analysis.across import ShownPoints
from splitbrain.harness.report.across.markdown import to_markdown
from splitbrain.harness.report.across.matrix import FAULTS_MAX, matrix_of, worst_first
from splitbrain.harness.report.across.page import CHARTS_MAX, across_page
from splitbrain.harness.report.across.trends import Trend, levels_of, shown_range
from splitbrain.harness.report.across.words import flake_text, headline
from tests.unit.harness.report.across.across_findings import HOSTILE, failure, findings, trend

ALL = (failure("new"), failure("known", shape="x"), failure("resolved", shape="y"))


def test_what_is_new_comes_first_and_is_counted() -> None:
    for text in (across_page(findings(*ALL)), to_markdown(findings(*ALL))):
        assert text.index("1 new failure since 2026-11-01 22:00") < text.index("Trends")
        assert text.index("1 trend change for the worse") < text.index("Trends")


def test_expected_violations_and_better_trends_are_no_news() -> None:
    expected = failure("new", expected=True)
    quiet = "no trend became worse."
    assert headline(findings(step=0.0)) == f"No new failure, and {quiet}"
    assert (
        headline(findings(expected, step=0.0)) == f"No new failure but expected ones, and {quiet}"
    )


def test_every_trend_has_a_plot_with_its_changes() -> None:
    page = across_page(findings(*ALL))
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="trend"') == 3
    assert page.count("h0M") == 180 - 3
    assert page.count('class="change worse"') == page.count('class="change better"') == 1
    assert page.count('class="level"') == 5
    # The one that became worse stands first.
    assert page.index("register · docker") < page.index("queue · docker")
    assert "Before 300 ms, after 340 ms (+13%): for the worse; p = 0.001" in page


def test_the_live_charts_have_the_same_data() -> None:
    charts = charts_in(across_page(findings(*ALL)))
    assert [len(chart["values"]) for chart in charts] == [60, 60, 60]
    first = charts[0]
    assert first["unit"] == "ms"
    assert first["run_ids"][30] == "register-failover_ms-30"
    assert first["started_s"][1] - first["started_s"][0] == 24 * 3600
    assert [(level["begin"], level["end"]) for level in first["levels"]] == [(0, 30), (30, 60)]
    assert first["low"] < min(first["values"]) < max(first["values"]) < first["high"]


def test_a_lake_of_planted_bugs_alone_says_why_it_has_no_trend() -> None:
    none = msgspec.structs.replace(findings(step=0.0), points=ShownPoints([], 0, 0))
    assert "those with a planted bug or an expected violation are left out" in across_page(none)


def test_no_share_has_an_axis_above_one() -> None:
    points, _ = trend("register", 0.0, measure="availability")
    full = [msgspec.structs.replace(point, value=1.0) for point in points]
    assert shown_range(Trend("availability", "full", full, [])) == (0.9, 1.0)
    assert shown_range(Trend("failover_ms", "flat", full, [])) == (0.9, 1.1)


def test_a_change_before_what_is_shown_is_no_level_of_it() -> None:
    points, change = trend("register", 40.0)
    (level,) = levels_of(Trend("failover_ms", "late", points[30:], [change]))
    assert (level.begin, level.end, level.change) == (0, 30, None)


def test_what_is_left_out_is_told_and_the_page_stays_small() -> None:
    many = [trend(f"w{number:02}-{'x' * 300}", 0.0)[0] * 4 for number in range(60)]
    points = [
        msgspec.structs.replace(point, run_id=f"{place}-{'é' * 900}")
        for found in many
        for place, point in enumerate(found[:200])
    ]
    found = msgspec.structs.replace(findings(*ALL), points=ShownPoints(points, len(points), 64))
    page = across_page(found)
    assert page.count('class="plot"') == CHARTS_MAX == 30
    assert "30 trends more, without a picture" in page
    assert "4 trends more of this lake left out" in page
    assert "The last 25 of 200 runs as a table" in page
    assert len(page.encode()) < 3_000_000
    summary = to_markdown(found)
    assert "\n4 more.\n" in summary
    assert len(summary) < 200_000


def test_a_missing_chart_library_is_said_and_the_plots_stand_still(tmp_path: Path) -> None:
    page = across_page(findings(*ALL), vendor=tmp_path)
    assert "make setup" in page
    assert page.count("<svg") == 3
    assert "make setup" not in across_page(findings(*ALL))


def test_the_matrix_says_in_words_what_its_colours_say() -> None:
    expected = [msgspec.structs.replace(cell, expected=True) for cell in findings().matrix.rows[:1]]
    fine = msgspec.structs.replace(
        findings().matrix.rows[0], workload="bank", fault="none", invalid=0, vacuous=0
    )
    matrix = matrix_of([*expected, fine, *findings().matrix.rows])
    assert matrix.faults == ["none", HOSTILE, "kill", "pause"]
    assert [(row.workload, row.expected) for row in matrix.rows] == [
        ("register", False),
        ("bank", False),
        ("register", True),
    ]
    kill = matrix.rows[0].cells[2]
    assert kill is not None
    assert (kill.worst, kill.counts) == ("invalid", ["1 invalid", "1 vacuous", "7 valid"])
    assert matrix.rows[0].cells[0] is None
    assert [cell.expected for cell in worst_first([*expected, fine])] == [False, True]


def test_the_matrix_has_a_width_and_says_so() -> None:
    one = findings().matrix.rows[0]
    matrix = matrix_of(
        [msgspec.structs.replace(one, fault=f"f{n:03}", runs=n) for n in range(FAULTS_MAX + 7)]
    )
    assert len(matrix.faults) == FAULTS_MAX
    assert matrix.more_faults == 7
    assert matrix.faults[0] == "f007"


def test_hostile_text_cannot_act() -> None:
    page = across_page(findings(failure("new", shape=HOSTILE, example=HOSTILE)))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    # Data, library, what pages with charts share, and the trends.
    assert page.count("<script") == 4
    assert page.count("&#39;sha256-") == 3
    summary = to_markdown(findings(failure("new", shape=HOSTILE)))
    assert "<script" not in re.sub(r"\\.", "", summary)
    rows = [line for line in summary.splitlines() if "alert" in line]
    assert rows
    assert all(not line.replace("\\|", "").startswith("||") for line in rows)


def test_what_faults_met_is_a_table_with_zeros() -> None:
    page, summary = across_page(findings()), to_markdown(findings())
    cells = "<td>kraft</td><td>register</td><td>kill</td><td>leader</td>"
    assert cells + '<td class="number soft">0</td>' * 2 + '<td class="number">7</td>' in page
    assert "| kraft | register | kill | leader | 0 | 0 | 7 | 0 |" in summary
    assert "| kraft | register | kill | follower | 0 | 0 | 0 | 0 |" in summary
    assert "7 (6 took effect)" in page
    assert "the 2 most frequent of 9 meetings" in page


def test_flakes_are_told_by_how_often_they_failed() -> None:
    (flake,) = findings().flakes.rows
    assert flake_text(flake) == "deterministic: 3 of 3"


def test_nothing_at_all_is_said_plainly() -> None:
    page = across_page(findings(step=0.0))
    assert "<p>None.</p>" in page


def charts_in(page: str) -> list[dict[str, Any]]:
    """The data of the page's script."""
    found = re.search(r'<script type="application/json" id="trend-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])
