"""The page over all runs in a real browser: trends drawn, changes marked, nothing hostile acts."""

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from splitbrain.contracts.analysis.across import Findings, Point, Shown
from splitbrain.harness.report.across.page import across_page
from splitbrain.harness.report.across.trends import trends_of
from splitbrain.history.run_folder import RunFolder
from tests.browser.opened_reports import PATIENCE, Visit, assert_all_can_be_read, visit
from tests.lake_runs import make_run
from tests.synthetic_runs import HOSTILE
from tests.unit.harness.report.across.across_findings import NIGHT, failure, findings

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: Share of each chart's pixels that are not transparent.
INKED = """() => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let inked = 0;
  for (let place = 3; place < data.length; place += 4) inked += data[place] > 0;
  return inked / (data.length / 4);
})"""
#: Whether each chart has pixels of the colour of its dots.
DOTTED = """() => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--kind-1').trim();
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) return true;
  return false;
})"""
#: Whether each chart has ink in its last columns, where a label would be cut.
CUT = """() => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(canvas.width - 6, 0, 6, canvas.height);
  return data.some((value, place) => place % 4 === 3 && value > 0);
})"""
NIGHTS = 18
CHANGED_AT = 9


@pytest.fixture(scope="session")
def of_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``analyze`` wrote: the later runs took twice as long for everything."""
    root = tmp_path_factory.mktemp("nights")
    for night in range(NIGHTS):
        run = make_run(
            root / "runs" / f"run-{night:02}",
            seed=night,
            verdict="invalid" if night == NIGHTS - 1 else "valid",
            run_id=f"night-{night:02}",
            started_at=f"2026-11-{night + 1:02}T22:00:00Z",
        )
        if night >= CHANGED_AT:
            _slow_down(RunFolder(run).history)
    _splitbrain(root, "ingest", "runs", "--lake", "lake")
    _splitbrain(root, "analyze", "--lake", "lake", "--report", "page")
    return root / "page"


@pytest.fixture(scope="session")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three trends, one worse and one better, and hostile text wherever a lake could have it."""
    found = findings(failure("new", shape=HOSTILE, example=HOSTILE), failure("known"))
    points = [*found.points.rows, _lonely_point()]
    found = msgspec.structs.replace(
        found,
        lake=HOSTILE,
        points=msgspec.structs.replace(found.points, rows=points, count=len(points), trends=4),
    )
    page = tmp_path_factory.mktemp("made-up") / "index.html"
    page.write_text(across_page(found), encoding="utf-8")
    return page


def _slow_down(history: Path) -> None:
    events = [json.loads(line) for line in history.read_text().splitlines()]
    slower = ({**event, "time": 2 * event["time"]} for event in events)
    history.write_text("".join(json.dumps(event) + "\n" for event in slower))


def _splitbrain(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "splitbrain.harness.cli", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _lonely_point() -> Point:
    """The only run of its trend."""
    name = {"system": HOSTILE, "workload": HOSTILE, "runtime": HOSTILE}
    return Point(
        **name, measure="availability", started_at=NIGHT, run_id=HOSTILE, version=None, value=1.0
    )


def _opened(browser: Browser, page: Path, charts: int, *, width: int = 1280) -> Visit:
    opened = visit(browser, page, width=width, charts=charts)
    assert opened.complaints == []
    assert opened.requests in ([page.as_uri()], [page.as_uri(), "data:,"])
    return opened


def _point_beside(mark: Locator) -> None:
    """Move the mouse just behind the line of a change."""
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    mark.page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2)


@pytest.mark.spark
def test_the_page_of_a_lake_draws_every_trend_and_marks_where_it_became_worse(
    browser: Browser, of_lake: Path
) -> None:
    found = msgspec.json.decode((of_lake / "across.json").read_bytes(), type=Findings)
    trends = trends_of(found)
    (slower,) = [one for one in trends if one.measure == "failover_ms"]
    (change,) = slower.changes
    assert change.run_id.startswith(f"night-{CHANGED_AT:02}.")
    assert change.worse
    page = _opened(browser, of_lake / "index.html", len(trends)).page
    assert found.points.trends == len(trends) == 3
    assert all(share > 0.01 for share in page.evaluate(INKED))
    assert page.evaluate(DOTTED) == [True] * len(trends)
    figure = page.locator("figure", has_text="Failover")
    _point_beside(figure.locator(".change-mark.worse"))
    told = figure.locator(".tip")
    expect(told).to_contain_text(change.run_id, timeout=PATIENCE)
    expect(told).to_contain_text("The level changed here. Before")
    expect(told).to_contain_text("for the worse")
    assert page.locator("h1").inner_text().startswith("1 new failure")


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_drawn_in_light_and_dark(
    browser: Browser, made_up: Path, dark: bool
) -> None:
    page = visit(browser, made_up, dark=dark, charts=4).page
    shares = page.evaluate(INKED)
    assert len(shares) == 4
    assert all(share > 0.01 for share in shares)
    assert page.evaluate(DOTTED) == [True] * 4


@pytest.mark.parametrize("runs", [9, 11, 13])
@pytest.mark.parametrize("width", [400, 1000])
def test_the_edge_of_a_chart_cuts_no_label(
    browser: Browser, tmp_path: Path, width: int, runs: int
) -> None:
    found = findings()
    # Minutes apart, so that labels have the time of day and the last run may have one.
    rows = [
        msgspec.structs.replace(point, started_at=NIGHT + dt.timedelta(minutes=number))
        for number, point in enumerate(found.points.rows[:runs])
    ]
    shown = msgspec.structs.replace(found.points, rows=rows, count=runs, trends=1)
    page = tmp_path / "index.html"
    found = msgspec.structs.replace(found, points=shown, changes=Shown([], 0))
    page.write_text(across_page(found), encoding="utf-8")
    assert visit(browser, page, width=width, charts=1).page.evaluate(CUT) == [False]


@pytest.mark.parametrize("width", [400, 1280])
def test_a_change_is_marked_between_the_two_runs(
    browser: Browser, made_up: Path, width: int
) -> None:
    page = _opened(browser, made_up, 4, width=width).page
    words = page.locator(".change-mark").all_inner_texts()
    assert words == ["worse", "better"]
    for mark in page.locator(".change-mark").all():
        plot, line = mark.locator("xpath=..").bounding_box(), mark.bounding_box()
        assert plot is not None
        assert line is not None
        assert line["height"] > 100
        # Thirty runs on either side.
        assert abs(line["x"] - plot["x"] - plot["width"] / 2) < 2


def test_pointing_at_a_run_tells_its_id_and_leaving_it_nothing(
    browser: Browser, made_up: Path
) -> None:
    page = visit(browser, made_up, charts=4).page
    figure = page.locator("figure").first
    tip = figure.locator(".tip")
    assert not tip.is_visible()
    _point_beside(figure.locator(".change-mark"))
    expect(tip).to_contain_text("register-failover_ms-30", timeout=PATIENCE)
    expect(tip).to_contain_text("Before 300 ms, after 340 ms (+13%): for the worse")
    page.mouse.move(1, 1)
    expect(tip).to_be_hidden(timeout=PATIENCE)


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_is_wider_than_the_window(
    browser: Browser, made_up: Path, width: int, scripts: bool
) -> None:
    page = visit(browser, made_up, width=width, scripts=scripts, charts=4).page
    for summary in page.locator("summary").all():
        summary.click()
    assert page.locator("details[open]").count() == 4
    for part in page.locator("main > section, .trends figure, .plot, svg.trend").all():
        box = part.bounding_box()
        if box is not None:
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
    if scripts:
        assert_all_can_be_read(page)


def test_charts_follow_a_window_that_becomes_narrow(browser: Browser, made_up: Path) -> None:
    page = visit(browser, made_up, charts=4).page
    page.set_viewport_size({"width": 400, "height": 900})
    plot = page.locator("#trend-0")
    box = plot.bounding_box()
    assert box is not None
    expect(plot.locator("canvas")).to_have_css("width", f"{box['width']:g}px", timeout=PATIENCE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, made_up: Path) -> None:
    page = _opened(browser, made_up, 4).page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert "<script>window.hacked=1</script>" in page.inner_text("body")


def test_without_scripts_the_trends_stand_still_and_are_tables(
    browser: Browser, made_up: Path
) -> None:
    page = visit(browser, made_up, scripts=False).page
    _stands_still(page)
    figure = page.locator("figure").first
    figure.locator("summary").click()
    assert figure.locator("tbody tr").count() == 25
    assert figure.locator("tbody tr", has_text="register-failover_ms-59").is_visible()


def test_on_paper_stand_the_pictures_that_need_no_screen(browser: Browser, made_up: Path) -> None:
    page = visit(browser, made_up, charts=4).page
    assert not page.locator("svg.trend").first.is_visible()
    page.emulate_media(media="print")
    _stands_still(page)


def _stands_still(page: Page) -> None:
    assert [one.is_visible() for one in page.locator("svg.trend").all()] == [True] * 4
    assert [one.is_visible() for one in page.locator(".plot").all()] == [False] * 4
