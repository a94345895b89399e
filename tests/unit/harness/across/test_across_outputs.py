"""The page and the summary over all runs: new first, changes marked, hostile text harmless."""

import re

from harness.across.markdown import to_markdown
from harness.across.page import across_page
from harness.across.words import flake_text, headline
from tests.unit.harness.across.across_findings import HOSTILE, failure, findings

ALL = (failure("new"), failure("known", shape="x"), failure("resolved", shape="y"))


def test_what_is_new_comes_first_and_is_counted() -> None:
    for text in (across_page(findings(*ALL)), to_markdown(findings(*ALL))):
        assert text.index("1 new failure since 2026-11-01 22:00") < text.index("Trends")
        assert text.index("1 trend change for the worse") < text.index("Trends")


def test_planted_bugs_and_better_trends_are_no_news() -> None:
    planted = failure("new", planted=True)
    assert headline(findings(planted, step=0.0)) == "No new failure, and no trend became worse."


def test_every_trend_has_a_plot_with_its_changes() -> None:
    page = across_page(findings(*ALL))
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="trend"') == 3
    assert page.count('class="point"') == 180
    assert page.count('class="change worse"') == page.count('class="change better"') == 1
    assert page.count('class="level"') == 5
    # The one that became worse stands first.
    assert page.index("register · docker") < page.index("queue · docker")
    assert "From 300 ms to 340 ms (+13%), for the worse; p = 0.001" in page


def test_hostile_text_cannot_act() -> None:
    page = across_page(findings(failure("new", shape=HOSTILE, example=HOSTILE)))
    assert "<script" not in page
    assert "script-src ;" in page
    summary = to_markdown(findings(failure("new", shape=HOSTILE)))
    assert "<script" not in re.sub(r"\\.", "", summary)
    rows = [line for line in summary.splitlines() if "alert" in line]
    assert rows
    assert all(not line.replace("\\|", "").startswith("||") for line in rows)


def test_flakes_are_told_by_how_often_they_failed() -> None:
    (flake,) = findings().flakes.rows
    assert flake_text(flake) == "deterministic: 3 of 3"


def test_nothing_at_all_is_said_plainly() -> None:
    page = across_page(findings(step=0.0))
    assert "<p>None.</p>" in page
