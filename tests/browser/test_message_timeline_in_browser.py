"""The timeline of a simulated run in a real browser: seen, zoomed, clicked, filtered and read."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.history.timeline_records import (
    TimelineDisk,
    TimelineMessage,
    TimelineRecord,
    TimelineViolation,
)
from tests.browser.opened_reports import PATIENCE, Visit, visit
from tests.synthetic_runs import HOSTILE, write_run
from tests.synthetic_timelines import quorum_timeline, write_timeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

EVENTS = 10_000
#: Rows are looked at in blocks: at most so many beside what is in view, at either end of six lists.
LOOKED_AT_BESIDES = 6 * 2 * 64
#: Share of the picture's pixels that are not transparent.
INKED = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let inked = 0;
  for (let place = 3; place < data.length; place += 4) inked += data[place] > 0;
  return inked / (data.length / 4);
}"""


@pytest.fixture(scope="module")
def records() -> list[TimelineRecord]:
    return quorum_timeline(EVENTS)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, records: list[TimelineRecord]) -> Path:
    return make_report(tmp_path_factory.mktemp("timeline") / "run", records)


def make_report(run: Path, records: Sequence[TimelineRecord]) -> Path:
    write_run(run, operations_per_second=40)
    write_timeline(run / "timeline.jsonl", records)
    judge(run, analyze=False)
    return run / "report.html"


class Timeline:
    """The section as a reader uses it."""

    def __init__(self, opened: Visit) -> None:
        self.opened = opened
        self.page: Page = opened.page
        self.canvas: Locator = self.page.locator("#message-timeline-canvas")
        self.panel: Locator = self.page.locator("#message-timeline-panel")
        expect(self.canvas).to_have_attribute("data-mode", re.compile("."), timeout=PATIENCE)
        self.canvas.scroll_into_view_if_needed()

    def figure(self, name: str) -> int:
        return int(cast("str", self.canvas.get_attribute(f"data-{name}")))

    def width(self) -> int:
        return self.figure("to") - self.figure("from")

    def button(self, action: str) -> None:
        self.do(lambda: self.page.click(f"button[data-timeline={action}]"))

    def key(self, name: str) -> None:
        self.canvas.focus()
        self.do(lambda: self.page.keyboard.press(name))

    def do(self, action: Callable[[], object]) -> None:
        """Act, then await the frame that shows it."""
        before = self.figure("frames")
        action()
        for attempt in patience():
            with attempt:
                assert self.figure("frames") > before


def patience() -> Retrying:
    return Retrying(
        stop=stop_after_delay(PATIENCE / 1000),
        wait=wait_fixed(0.02),
        retry=retry_if_exception_type(AssertionError),
        reraise=True,
    )


@pytest.fixture
def timeline(browser: Browser, report: Path) -> Timeline:
    return Timeline(visit(browser, report))


def in_view(records: list[TimelineRecord], start: int, end: int) -> int:
    """How many records touch a stretch of time."""

    def last(record: TimelineRecord) -> int:
        if isinstance(record, TimelineMessage):
            return record.arrived or record.time
        return (record.until or record.time) if isinstance(record, TimelineDisk) else record.time

    return sum(record.time <= end and last(record) >= start for record in records)


def test_the_timeline_opens_before_the_violation_and_tells_it(
    timeline: Timeline, records: list[TimelineRecord]
) -> None:
    (broken,) = (record for record in records if isinstance(record, TimelineViolation))
    assert timeline.figure("from") == broken.time - 2_000_000
    assert timeline.figure("to") > broken.time
    assert "Violation: INV-02 on n1" in timeline.panel.inner_text()
    assert timeline.opened.complaints == []
    assert all(not url.startswith("http") for url in timeline.opened.requests)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_picture_is_drawn_and_no_wider_than_the_window(
    browser: Browser, report: Path, width: int, dark: bool
) -> None:
    timeline = Timeline(visit(browser, report, width=width, dark=dark))
    assert timeline.canvas.evaluate(INKED) > 0.05
    assert timeline.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_frame_handles_only_what_is_in_view(
    timeline: Timeline, records: list[TimelineRecord]
) -> None:
    for _ in range(4):
        timeline.key("+")
    visible = in_view(records, timeline.figure("from"), timeline.figure("to"))
    assert 0 < visible < EVENTS / 50
    assert timeline.figure("examined") <= visible + LOOKED_AT_BESIDES
    assert 0 < timeline.figure("drawn") <= visible + 3 * 2
    assert 0 < timeline.figure("arrows") <= visible


def test_the_whole_run_is_shown_as_columns(timeline: Timeline) -> None:
    timeline.button("whole")
    assert timeline.figure("in-view") > 2_000
    assert timeline.canvas.get_attribute("data-mode") == "columns"
    # A few a pixel and lane, however many messages there are.
    assert timeline.figure("drawn") < 1_500
    expect(timeline.page.locator("#message-timeline-status")).to_contain_text("columns show")
    timeline.button("violation")
    assert timeline.canvas.get_attribute("data-mode") == "arrows"


def test_the_wheel_zooms_to_where_the_pointer_is(timeline: Timeline) -> None:
    box = timeline.canvas.bounding_box()
    assert box is not None
    before = timeline.width()
    begin = timeline.figure("from")
    timeline.page.mouse.move(box["x"] + 76 + (box["width"] - 76) / 4, box["y"] + 100)
    timeline.do(lambda: timeline.page.mouse.wheel(0, -400))
    after = timeline.width()
    assert after < before / 2
    held = begin + before / 4
    assert abs(timeline.figure("from") + after / 4 - held) < before / 200
    timeline.do(lambda: timeline.page.mouse.wheel(0, 400))
    assert abs(timeline.width() - before) < before / 100


def an_arrow(timeline: Timeline) -> tuple[float, float]:
    """Where the pointer is told that it is on one: below the last node, where they all run."""
    box = timeline.canvas.bounding_box()
    assert box is not None
    y = box["y"] + 34 + 3 * 78 - 4
    for x in range(int(box["x"]) + 80, int(box["x"] + box["width"]) - 60, 3):
        timeline.page.mouse.move(x, y)
        cursor = timeline.canvas.evaluate("canvas => canvas.style.cursor")
        if cursor == "pointer" and " from " in timeline.panel.inner_text():
            return x, y
    pytest.fail("no arrow found")


def test_an_arrow_can_be_clicked_and_read(timeline: Timeline) -> None:
    for _ in range(5):
        timeline.key("+")
    x, y = an_arrow(timeline)
    timeline.do(lambda: timeline.page.mouse.click(x, y))
    told = timeline.panel.inner_text()
    assert re.search(r"^Write(Answer)? from (c\d to n3|n3 to c\d)\n", told)
    assert re.search(r"Sent at 14\.\d{3}\W\d{3} s, arrived at .* later\.", told)
    assert re.search(r"\n(ok|r\d = \d+)$", told)
    # The clicked one stays when the pointer goes elsewhere.
    timeline.page.mouse.move(x - 30, y - 30)
    timeline.page.mouse.move(x - 20, y - 34)
    assert timeline.panel.inner_text() == told


def test_a_drag_moves_the_picture_with_the_pointer(timeline: Timeline) -> None:
    begin, width = timeline.figure("from"), timeline.width()
    box = timeline.canvas.bounding_box()
    assert box is not None
    timeline.page.mouse.move(box["x"] + 300, box["y"] + 20)
    timeline.page.mouse.down()
    timeline.do(lambda: timeline.page.mouse.move(box["x"] + 500, box["y"] + 20))
    timeline.page.mouse.up()
    moved = begin - timeline.figure("from")
    assert abs(moved - width * 200 / (box["width"] - 76)) < width / 100


def test_the_keys_reach_every_end_and_the_violation(
    timeline: Timeline, records: list[TimelineRecord]
) -> None:
    width = timeline.width()
    timeline.key("Home")
    assert (timeline.figure("from"), timeline.width()) == (0, width)
    timeline.key("ArrowRight")
    assert timeline.figure("from") > 0
    timeline.key("ArrowLeft")
    assert timeline.figure("from") == 0
    timeline.key("End")
    assert timeline.figure("to") >= records[-1].time
    timeline.key("v")
    assert timeline.width() == width
    timeline.key("-")
    assert timeline.width() == 2 * width


@pytest.mark.parametrize("action", ["whole", "in", "out", "earlier", "later", "violation"])
def test_the_keys_work_after_a_button(timeline: Timeline, action: str) -> None:
    timeline.button("whole")
    timeline.button(action)
    for name in ("v", "n", "p"):
        timeline.do(lambda name=name: timeline.page.keyboard.press(name))


def test_going_to_the_violation_brings_the_picture_into_view(timeline: Timeline) -> None:
    timeline.canvas.focus()
    timeline.page.evaluate("scrollTo(0, 0)")
    expect(timeline.canvas).not_to_be_in_viewport()
    timeline.do(lambda: timeline.page.keyboard.press("v"))
    expect(timeline.canvas).to_be_in_viewport()


def test_the_events_can_be_stepped_through_by_key(timeline: Timeline) -> None:
    timeline.key("Home")
    seen: list[str] = []
    for _ in range(3):
        timeline.key("n")
        seen.append(timeline.panel.inner_text())
    assert len(set(seen)) == 3
    timeline.key("p")
    assert timeline.panel.inner_text() == seen[1]


def test_a_drop_in_the_strip_below_goes_there(timeline: Timeline) -> None:
    strip = timeline.page.locator("#message-timeline-overview").bounding_box()
    assert strip is not None
    timeline.button("whole")
    middle = timeline.width() / 2
    timeline.key("v")
    width = timeline.width()
    x = strip["x"] + 76 + (strip["width"] - 76) / 2
    timeline.do(lambda: timeline.page.mouse.click(x, strip["y"] + 10))
    assert abs((timeline.figure("from") + width / 2) - middle) < 50_000


def test_messages_that_carry_nothing_are_hidden_until_they_are_asked_for(
    timeline: Timeline,
) -> None:
    hidden = timeline.figure("in-view")
    timeline.do(lambda: timeline.page.get_by_label("carry nothing new").uncheck())
    all_of_them = timeline.figure("in-view")
    assert all_of_them > 1.5 * hidden
    timeline.do(lambda: timeline.page.get_by_label(re.compile("^Fetch")).uncheck())
    assert timeline.figure("in-view") < all_of_them
    timeline.do(lambda: timeline.page.get_by_label("disk").uncheck())
    timeline.do(lambda: timeline.page.get_by_label(re.compile("^log")).uncheck())
    assert timeline.figure("drawn") < timeline.figure("in-view") + 20


def test_clients_share_a_lane_until_they_are_spread(timeline: Timeline) -> None:
    before = timeline.canvas.bounding_box()
    button = timeline.page.locator("#message-timeline-spread")
    timeline.do(button.click)
    after = timeline.canvas.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] - before["height"] == 4 * 40
    assert button.get_attribute("aria-expanded") == "true"


def test_the_table_says_what_came_last(timeline: Timeline) -> None:
    section = timeline.page.locator("#message-timeline")
    section.locator("summary").click()
    rows = section.locator("tbody tr")
    assert rows.count() == 200
    expect(rows.last).to_contain_text("violation: INV-02")


def test_hostile_text_in_a_timeline_is_shown_and_does_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    evil = HOSTILE + "</script><script>window.hacked=1</script>"
    told = TimelineViolation(time=9_000, name=evil, node=evil, detail=evil)
    sent = TimelineMessage(
        time=10, node=evil, peer="n1", name=evil, arrived=500, fate="arrived", detail=evil
    )
    timeline = Timeline(visit(browser, make_report(tmp_path / "run", [sent, told])))
    timeline.key("Home")
    timeline.key("n")
    assert timeline.page.evaluate("window.hacked") is None
    assert timeline.page.locator("img").count() == 0
    assert "<script>window.hacked=1</script>" in timeline.panel.inner_text()
    assert timeline.opened.complaints == []


def test_a_run_without_a_violation_opens_whole(browser: Browser, tmp_path: Path) -> None:
    calm = [record for record in quorum_timeline(500) if not isinstance(record, TimelineViolation)]
    timeline = Timeline(visit(browser, make_report(tmp_path / "run", calm)))
    assert timeline.figure("from") == 0
    assert timeline.figure("to") >= calm[-1].time
    assert timeline.page.locator("button[data-timeline=violation]").count() == 0
    width = timeline.width()
    timeline.canvas.focus()
    timeline.page.keyboard.press("v")
    assert timeline.width() == width
