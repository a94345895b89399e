"""The page of a night: the gate's verdict, the last night beside it, and links to all of it."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from splitbrain.harness.campaign.nightly.metrics import METRICS
from splitbrain.harness.campaign.nightly.steps import Steps
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly, gate_in_process
from tests.unit.harness.campaign.suite.fake_nights import does, matrix

CANARY = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
#: Of processes, of nobody's interest.
LOCKS = ("lock", "state.json")


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nightly:
    monkeypatch.setattr(Steps, "_command", gate_in_process)
    made = Nightly(tmp_path)
    made.write()
    return made


def of_night(nightly: Nightly, *matrices: str, code: int) -> tuple[Path, str]:
    """Carry out a night; return its page's path and content."""
    nightly.suites.write(CANARY, *matrices)
    assert nightly.run() == code, nightly.output
    page = nightly.folders()[-1] / "index.html"
    assert nightly.output.rstrip().endswith(str(page))
    return page, unescape(page.read_text())


def good(nightly: Nightly) -> str:
    return matrix("good", seeds=[2, 3], setting=nightly.sets("valid"))


def bad() -> str:
    return matrix("bad", seeds=[4], setting=does("invalid"))


def links_of(page: Path) -> list[Path]:
    found = [unquote(unescape(href)) for href in re.findall(r'href="([^"#:]+)"', page.read_text())]
    assert not any(href.startswith("/") for href in found), "a link holds on this machine alone"
    return [(page.parent / href).resolve() for href in found]


def test_all_that_a_night_leaves_is_reachable_and_no_link_is_broken(nightly: Nightly) -> None:
    page, _ = of_night(nightly, good(nightly), bad(), code=1)
    (page.parent / "all-runs").mkdir()
    (page.parent / "all-runs" / "index.html").write_text("")
    second, _ = of_night(nightly, good(nightly), bad(), code=1)
    links = links_of(second)
    assert [link for link in links if not link.exists()] == []
    night = second.parent.name
    left = [
        path
        for top in (second.parent, nightly.folder / "suites" / "unit" / night)
        for path in top.resolve().rglob("*")
        if path.is_file() and path.name not in LOCKS and path != second.resolve()
    ]
    assert len(left) > 15
    assert [path for path in left if not {*links} & {path, *path.parents}] == []
    assert page.resolve() in links
    assert (second.parent.parent / METRICS).resolve() in links


def test_the_gate_s_verdict_stands_above_all_and_a_violation_with_its_reproduce_line(
    nightly: Nightly,
) -> None:
    _, text = of_night(nightly, good(nightly), code=0)
    assert '<span class="badge">GREEN</span>' in text
    assert "no earlier night of this suite that proved something" in text
    _, text = of_night(nightly, good(nightly), bad(), code=1)
    head = text.partition("<main")[0]
    assert '<span class="badge">RED</span>' in head
    assert "violations == 0 is violated: 1" in head
    (violation,) = re.findall(r'<li id="run-\d+" data-verdict="invalid".*?</li>', text, re.DOTALL)
    assert "bad, seed 4" in violation
    assert re.search(r'<details open>.*<pre class="command">again</pre>', violation, re.DOTALL)
    assert text.count('data-verdict="expected violation found"') == 1


@pytest.mark.parametrize("kept", [True, False])
def test_a_valid_run_is_linked_by_its_report_where_that_is_kept(
    nightly: Nightly, *, kept: bool
) -> None:
    with nightly.file.open("a") as file:
        file.write(f"keep_valid = {str(kept).lower()}\n")
    sets = nightly.sets("valid", pages="report.html summary.md")
    page, text = of_night(nightly, matrix("good", seeds=[2, 3], setting=sets), code=0)
    valid = re.findall(r'<li id="run-\d+" data-verdict="valid".*?</li>', text, re.DOTALL)
    assert len(valid) == 2
    for run in valid:
        title, report, summary = (
            re.search(pattern, run)
            for pattern in (r'<h3><a href="([^"]+)"', r">report</a>", r">summary</a>")
        )
        assert summary
        assert bool(report) is kept
        assert title
        assert title[1].endswith("report.html" if kept else "summary.md")
    assert [link for link in links_of(page) if not link.exists()] == []


def test_new_gone_and_changed_are_told_from_the_last_night_that_proved_something(
    nightly: Nightly,
) -> None:
    first, _ = of_night(nightly, good(nightly), code=0)
    # A void night in between is passed over.
    nightly.suites.write(matrix("canary", seeds=[1], setting=does("valid"), expect="invalid"))
    nightly.run()
    second, text = of_night(nightly, good(nightly), bad(), code=1)
    beside = text.partition('id="last-night"')[2].partition("</section>")[0]
    assert f'<a href="../{first.parent.name}/index.html">' in beside
    assert re.search(r'<li class="no">.*<code>f\d-\w+</code>', beside)
    assert "Nothing that failed last night is gone" in beside
    assert 'violations</td><td class="number">0</td><td class="number">1</td>' in beside
    _, text = of_night(nightly, good(nightly), code=0)
    beside = text.partition('id="last-night"')[2].partition("</section>")[0]
    assert f'<a href="../{second.parent.name}/index.html">' in beside
    assert "No new failure" in beside
    assert re.search(r"<code>f\d-\w+</code> did not occur again", beside)


def test_a_night_whose_gate_did_not_answer_says_so_and_shows_its_runs(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Steps, "_command", lambda *_: (3, "it broke."))
    _, text = of_night(nightly, good(nightly), code=3)
    assert "NO ANSWER" in text.partition("<main")[0]
    assert text.count('data-verdict="valid"') == 2
    assert "it broke." in text
