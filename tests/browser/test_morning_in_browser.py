"""The page of a night in a real browser: search, filters, and no width that does not fit."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from splitbrain.harness.campaign.nightly.steps import Steps
from tests.browser.opened_reports import PATIENCE, Visit, visit
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly, gate_in_process
from tests.unit.harness.campaign.suite.fake_nights import does, matrix

pytestmark = pytest.mark.browser

LONG = "a-very-long-name-of-a-cell-that-has-no-room-on-a-telephone"


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a second night, with a violation that the first had not."""
    nightly = Nightly(tmp_path_factory.mktemp("morning"))
    nightly.write()
    canary = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
    good = matrix(LONG, seeds=[2, 3], setting=nightly.sets("valid"), nemesis=["pause", "kill"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_command", gate_in_process)
        for more, code in (((), 0), ((matrix("bad", seeds=[4], setting=does("invalid")),), 1)):
            nightly.suites.write(canary, good, *more)
            assert nightly.run() == code, nightly.output
    return nightly.folders()[-1] / "index.html"


def opened(
    browser: Browser, page: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True
) -> Visit:
    found = visit(browser, page, charts=0, width=width, dark=dark, scripts=scripts)
    assert found.complaints == []
    return found


def shown(page: Page) -> list[str]:
    return page.locator("ul.runs > li:visible h3").all_inner_texts()


def test_runs_are_searched_and_filtered(browser: Browser, morning: Path) -> None:
    page = opened(browser, morning).page
    count = page.locator("#shown")
    expect(count).to_have_text("6 of 6 runs", timeout=PATIENCE)
    assert shown(page)[0] == "bad, seed 4"
    page.get_by_label("Verdict").select_option("valid")
    expect(count).to_have_text("4 of 6 runs")
    page.get_by_label("Fault").select_option("kill")
    expect(count).to_have_text("2 of 6 runs")
    page.get_by_label("Search runs").fill("kill SEED 3")
    expect(count).to_have_text("1 of 6 runs")
    (only,) = shown(page)
    assert only.endswith("seed 3")
    page.get_by_label("Search runs").fill("nowhere")
    expect(count).to_have_text("0 of 6 runs")
    page.get_by_role("button", name="Clear").click()
    expect(count).to_have_text("6 of 6 runs")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 1000, 400])
def test_nothing_is_wider_than_the_window(
    browser: Browser, morning: Path, width: int, dark: bool
) -> None:
    page = opened(browser, morning, width=width, dark=dark).page
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_without_scripts_every_run_is_there(browser: Browser, morning: Path) -> None:
    page = opened(browser, morning, scripts=False).page
    assert len(shown(page)) == 6
    assert not page.locator("#filters").is_visible()
