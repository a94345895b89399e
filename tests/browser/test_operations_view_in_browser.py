"""The operations view in a real browser: drawn, zoomed, read aloud, within the window."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from splitbrain.harness.cli.bare_command import page_at
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.publishing import judge_and_publish as judge
from tests.browser.opened_reports import PATIENCE, Visit, assert_all_can_be_read, visit
from tests.synthetic_runs import write_run

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

#: Share of the canvas that is of a colour, within a tolerance that smooths edges.
SHARE = """([name]) => {
  const canvas = document.querySelector('#view-canvas');
  const probe = document.createElement('span');
  probe.style.color = getComputedStyle(document.documentElement).getPropertyValue('--' + name);
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let place = 0; place < data.length; place += 4)
    found += [0, 1, 2].every((part) => Math.abs(data[place + part] - wanted[part]) < 12);
  return found / (data.length / 4);
}"""


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("views")
    run = write_run(root / "run", operations_per_second=60, flaw="stale-read")
    judge(run, analyze=False)
    events = [
        {
            "process": process,
            "type": type_,
            "f": f,
            "key": key,
            "value": None if (f, type_) == ("read", "invoke") else value,
        }
        for key in ("a", "b")
        for process, f, value in ((0, "write", "<b>hostile</b>"), (1, "read", 7))
        for type_ in ("invoke", "ok")
    ]
    history = root / "h.jsonl"
    history.write_text("".join(json.dumps(event) + "\n" for event in events))
    judge_history(
        history, "register", None, Limits(30, 1024, 1), page=page_at(root / "bare.html", history)
    )
    return {"run": run / "report.html", "bare": root / "bare.html"}


def opened(browser: Browser, page: Path, *, width: int = 1280, dark: bool = False) -> Visit:
    found = visit(browser, page, width=width, dark=dark, charts=3 * (page.name == "report.html"))
    expect(found.page.locator("html")).to_have_attribute(
        "data-operations-view", re.compile(r"\S+ \S+"), timeout=PATIENCE
    )
    return found


def zoom(page: Page) -> tuple[float, float]:
    begin, end = (page.locator("html").get_attribute("data-operations-view") or "").split()
    return float(begin), float(end)


@pytest.mark.parametrize("name", ["run", "bare"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_drawn_within_the_window_without_a_complaint(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    found = opened(browser, pages[name], width=width, dark=dark)
    assert found.page.evaluate(SHARE, ["invalid"]) > 0.0005
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    assert found.complaints == []
    assert found.requests in ([pages[name].as_uri()], [pages[name].as_uri(), "data:,"])


def test_faults_and_leaders_are_bands(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["run"]).page
    page.click("[data-view=all]")
    assert any(page.evaluate(SHARE, [f"epoch-{number}"]) > 0.001 for number in range(1, 7))
    data = json.loads(page.locator("#operations-view-data").text_content() or "")
    assert data["views"][0]["faults"]


def test_it_begins_at_the_contradiction_and_zooms(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["run"]).page
    data = json.loads(page.locator("#operations-view-data").text_content() or "")["views"][0]
    first, last = data["focus"]
    begin, end = zoom(page)
    assert begin <= first <= last <= end
    page.click("[data-view=in]")
    nearer = zoom(page)
    assert nearer[1] - nearer[0] == pytest.approx((end - begin) / 2)
    page.click("[data-view=all]")
    assert zoom(page)[0] <= data["span"][0]
    assert zoom(page)[1] >= data["span"][1]
    page.click("[data-view=focus]")
    assert zoom(page) == (begin, end)
    page.locator("#view-frame").focus()
    page.keyboard.press("ArrowRight")
    assert zoom(page)[0] > begin
    page.keyboard.press("-")
    wider = zoom(page)
    assert wider[1] - wider[0] == pytest.approx((end - begin) * 2)


def test_dragging_moves_the_view(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["run"]).page
    begin, end = zoom(page)
    page.locator("#view-canvas").scroll_into_view_if_needed()
    box = page.locator("#view-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
    page.mouse.up()
    moved = zoom(page)
    assert moved[0] > begin
    assert moved[1] - moved[0] == pytest.approx(end - begin)


def test_a_bar_says_what_it_is_as_text(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["bare"]).page
    page.locator("#view-canvas").scroll_into_view_if_needed()
    box = page.locator("#view-canvas").bounding_box()
    data = json.loads(page.locator("#operations-view-data").text_content() or "")["views"][0]
    assert box is not None
    place = data["role"].index(2)
    begin, end = zoom(page)
    names = 14 + 7 * 7.3
    middle = (data["start"][place] + data["end"][place]) / 2
    x = names + (middle - begin) / (end - begin) * (box["width"] - names)
    page.mouse.move(box["x"] + x, box["y"] + 26 + 24 * data["row"][place] + 12)
    expect(page.locator("#view-told")).to_contain_text("read → 7 by process 1")
    expect(page.locator("#view-told")).to_contain_text("has no place")


def test_each_violation_has_its_view_and_its_table(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page = opened(browser, pages["bare"]).page
    tables = page.locator("table.violated")
    assert tables.count() == 2
    assert tables.nth(0).is_visible()
    page.select_option("#view-choice", "1")
    second = zoom(page)
    page.select_option("#view-choice", "0")
    assert zoom(page) != second
    page.click("#violation-2 > summary")
    assert tables.nth(1).is_visible()
    page.click("[data-show-view='1']")
    assert zoom(page) == second
    assert page.locator("#view-choice").input_value() == "1"
    assert page.locator("#view-frame").is_visible()


def test_leaders_of_one_moment_stand_below_each_other(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    text = pages["run"].read_text()
    data = re.search(r'id="operations-view-data">([^<]*)<', text)
    assert data is not None
    views = json.loads(data[1])
    begin, end = views["views"][0]["span"]
    views["views"][0]["leaders"] = [["n1", 1, begin, end], ["n2", 2, begin, end]]
    changed = tmp_path / "report.html"
    changed.write_text(text.replace(data[1], json.dumps(views)))
    page = opened(browser, changed).page
    assert page.evaluate(SHARE, ["epoch-2"]) > 0.01
    assert page.evaluate(SHARE, ["epoch-3"]) > 0.01
    assert_all_can_be_read(page)


def test_without_scripts_the_table_and_the_still_picture_are_there(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page = visit(browser, pages["run"], scripts=False).page
    assert page.locator("#operations-view .warn").is_visible()
    assert not page.locator("#view-frame").is_visible()
    assert page.locator("table.violated").first.is_visible()
    assert page.locator(".picture svg").first.is_visible()
