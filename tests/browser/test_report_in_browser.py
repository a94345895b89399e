"""The report works in a real browser offline: charts are drawn and nothing hostile acts."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tenacity import Retrying, stop_after_delay, wait_fixed

from splitbrain.harness.report.graph_picture import draw_graph
from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from tests.browser.opened_reports import PATIENCE, assert_all_can_be_read, unfold, visit
from tests.synthetic_runs import seal, write_run
from tests.synthetic_timelines import quorum_timeline, write_timeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CHARTS = ("latency", "throughput", "leaders")
#: Data of the charts.
DATA = re.compile(r"(<script[^>]*application/json[^>]*>)([^<]*\"latency\"[^<]*)(</script>)")
#: Share of a chart's pixels that are not transparent.
INKED = """id => {
  const canvas = document.querySelector('#plot-' + id + ' canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let inked = 0;
  for (let place = 3; place < data.length; place += 4) inked += data[place] > 0;
  return inked / (data.length / 4);
}"""


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    options: dict[str, dict[str, object]] = {
        "valid": {},
        "invalid": {"flaw": "stale-read"},
        "hostile": {"flaw": "traceback", "hostile": True},
        "simulated": {"flaw": "stale-read"},
    }
    made: dict[str, Path] = {}
    for name, chosen in options.items():
        run = write_run(root / name, operations_per_second=60, **chosen)
        if name == "simulated":
            write_timeline(run / "timeline.jsonl", quorum_timeline(10_000))
        else:
            _write_logs(run)
        seal(RunFolder(run))
        judge(run, analyze=False)
        made[name] = run / "report.html"
    return made


def _write_logs(run: Path) -> None:
    plan = decode_plan((run / "plan.json").read_bytes())
    start = datetime.fromisoformat(plan.started_at)
    for number, node in enumerate(plan.nodes):
        lines = [
            f"{(start + timedelta(seconds=second + number / 10)).isoformat()} {node} says {second}"
            for second in range(30)
        ]
        (run / "nodes" / node / "output.log").write_text("\n".join(lines))


@pytest.mark.parametrize("name", ["valid", "invalid", "hostile"])
def test_a_report_opens_offline_without_an_error_or_a_request(
    browser: Browser, reports: dict[str, Path], name: str
) -> None:
    opened = visit(browser, reports[name])
    assert opened.complaints == []
    assert opened.requests in ([reports[name].as_uri()], [reports[name].as_uri(), "data:,"])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_is_drawn_in_light_and_dark(
    browser: Browser, reports: dict[str, Path], chart: str, dark: bool
) -> None:
    opened = visit(browser, reports["valid"], dark=dark)
    assert opened.page.evaluate(INKED, chart) > 0.01


@pytest.mark.parametrize("least_ms", [0.0139, 0.137, 0.139, 0.1428, 0.143, 1.39, 13.9])
def test_latencies_are_drawn_wherever_their_axis_begins(
    browser: Browser, reports: dict[str, Path], tmp_path: Path, least_ms: float
) -> None:
    def with_least(embedded: re.Match[str]) -> str:
        content = json.loads(embedded[2])
        for series in content["latency"]:
            series["latencies_ms"] = [max(each, least_ms) for each in series["latencies_ms"]]
        content["latency"][0]["latencies_ms"][0] = least_ms
        return embedded[1] + json.dumps(content) + embedded[3]

    changed = tmp_path / "report.html"
    text, count = DATA.subn(with_least, reports["valid"].read_text())
    assert count == 1
    changed.write_text(text)
    opened = visit(browser, changed)
    assert opened.complaints == []
    assert opened.page.evaluate(INKED, "latency") > 0.01


@pytest.mark.parametrize("width", [400, 1000, 1400])
@pytest.mark.parametrize("name", ["valid", "invalid", "hostile", "simulated"])
def test_nothing_is_wider_than_the_window_and_no_label_hides_another(
    browser: Browser, reports: dict[str, Path], name: str, width: int
) -> None:
    page = visit(browser, reports[name], width=width).page
    assert_all_can_be_read(page)
    unfold(page)
    assert_all_can_be_read(page)


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, reports: dict[str, Path]) -> None:
    page = visit(browser, reports["hostile"]).page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert "<script>window.hacked=1</script>" in page.inner_text("body")


def test_a_policy_stops_a_script_that_got_in_all_the_same(
    browser: Browser, reports: dict[str, Path], tmp_path: Path
) -> None:
    tampered = tmp_path / "report.html"
    text = reports["valid"].read_text()
    tampered.write_text(text.replace("</main>", "<script>window.hacked=1</script></main>"))
    opened = visit(browser, tampered)
    assert opened.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_the_violation_is_explained_at_first_sight(
    browser: Browser, reports: dict[str, Path]
) -> None:
    page = visit(browser, reports["invalid"]).page
    assert page.inner_text(".badge >> nth=0") == "INVALID"
    operations = page.locator("table.violated").first
    assert operations.locator("tbody tr").count() >= 2
    box = operations.bounding_box()
    assert box is not None
    assert box["y"] < 900
    # One picture of these operations; the graph is unfolded by who wants to know why.
    section = page.locator("#violations")
    assert section.locator("canvas").is_visible()
    assert [one.is_visible() for one in section.locator(".picture, svg").all()].count(True) == 0
    assert section.locator("svg.graph .edge.bad").count() >= 1


def test_the_last_messages_stand_at_readable_scale_with_the_violation(
    browser: Browser, reports: dict[str, Path]
) -> None:
    page = visit(browser, reports["simulated"], width=1400).page
    drawn = page.locator("#violation-1 svg.last-messages")
    assert drawn.is_visible()
    assert drawn.locator(".sent").count() >= 30
    for text in drawn.locator("text").all():
        box = text.bounding_box()
        assert box is not None
        assert 9 < box["height"] < 20
    frame = page.locator("#violation-1 .scroll", has=page.locator("svg.last-messages"))
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    assert visit(browser, reports["invalid"]).page.locator("svg.last-messages").count() == 0


@pytest.mark.parametrize("width", [400, 700, 1280])
def test_no_edge_of_the_frame_cuts_an_operation_of_the_graph_in_two(
    browser: Browser, reports: dict[str, Path], width: int
) -> None:
    page = visit(browser, reports["invalid"], width=width).page
    unfold(page)
    graph = page.locator("svg.graph").first
    frame = page.locator(".scroll", has=graph).first.bounding_box()
    culprit = graph.locator(".culprit").first.bounding_box()
    assert frame is not None
    assert culprit is not None
    left, right = frame["x"], frame["x"] + frame["width"]
    assert left <= culprit["x"]
    assert culprit["x"] + culprit["width"] <= right
    for call in graph.locator(".call").all():
        box = call.bounding_box()
        assert box is not None
        # A pixel of outline may stand on the edge itself.
        assert not box["x"] < left < box["x"] + box["width"] - 1


@pytest.mark.parametrize(("columns", "is_whole"), [(3, True), (4, True), (7, False)])
def test_a_graph_little_wider_than_the_window_is_shown_whole(
    browser: Browser, reports: dict[str, Path], tmp_path: Path, columns: int, is_whole: bool
) -> None:
    nodes = [
        {
            "id": n,
            "process": n,
            "node": "n1",
            "text": f"write {n}",
            "start": 9 * n,
            "end": 9 * n + 5,
        }
        for n in range(columns)
    ]
    nodes[-1]["culprit"] = True
    edge = {
        "source": 0,
        "target": columns - 1,
        "kind": "spoils",
        "label": "",
        "contradiction": True,
    }
    graph = draw_graph({"nodes": nodes, "edges": [edge]}, "v0")
    page_text = reports["invalid"].read_text()
    drawn = re.sub(r'<svg [^>]*class="graph".*?</svg>', lambda _: graph, page_text, flags=re.DOTALL)
    changed = tmp_path / "report.html"
    changed.write_text(drawn)

    page = visit(browser, changed).page
    unfold(page)
    frame = page.locator(".scroll", has=page.locator("svg.graph")).first.bounding_box()
    first = page.locator("svg.graph").first.locator(".call").first.bounding_box()
    assert frame is not None
    assert first is not None
    assert (first["x"] >= frame["x"]) is is_whole
    assert page.locator(".earlier").first.is_visible() is not is_whole


def test_choosing_a_fault_zooms_all_charts(browser: Browser, reports: dict[str, Path]) -> None:
    page = visit(browser, reports["valid"]).page
    before = page.evaluate(INKED, "leaders")
    page.select_option("#zoom-to", index=1)
    for attempt in Retrying(stop=stop_after_delay(PATIENCE / 1000), wait=wait_fixed(0.05)):
        with attempt:
            assert page.evaluate(INKED, "leaders") != before
    page.click("button[data-zoom=out]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.zoom") == "left"


def test_the_way_to_reproduce_can_be_copied(browser: Browser, reports: dict[str, Path]) -> None:
    page = visit(browser, reports["valid"]).page
    page.click("button[data-copy]")
    expect(page.locator("button[data-copy]")).not_to_have_text("Copy", timeout=PATIENCE)
    assert page.evaluate("String(getSelection())").startswith("splitbrain test --system kraft")


def test_a_page_without_scripts_shows_still_charts(
    browser: Browser, reports: dict[str, Path]
) -> None:
    page = visit(browser, reports["valid"], scripts=False).page
    assert page.locator("noscript svg").first.is_visible()


# --- contents, permalinks, search ---------------------------------------------------------------


def test_the_contents_stay_beside_a_wide_page_and_are_folded_above_a_narrow_one(
    browser: Browser, reports: dict[str, Path]
) -> None:
    wide = visit(browser, reports["invalid"], width=1400).page
    contents = wide.locator("#contents ol").first
    links = contents.locator("a")
    titles = [title.inner_text().strip() for title in wide.locator("section > h2").all()]
    assert [link.inner_text() for link in links.all()] == [title.rstrip(" #") for title in titles]
    links.last.click()
    expect(wide.locator("section").last).to_be_in_viewport(timeout=PATIENCE)
    expect(contents).to_be_in_viewport(timeout=PATIENCE)
    narrow = visit(browser, reports["invalid"], width=400).page
    assert not narrow.locator("#contents ol").first.is_visible()
    narrow.click("#contents > summary")
    narrow.click("#contents a[href='#faults']")
    expect(narrow.locator("#faults h2")).to_be_in_viewport(timeout=PATIENCE)
    assert not narrow.locator("#contents ol").first.is_visible()


def test_an_address_with_a_hash_unfolds_what_it_names(
    browser: Browser, reports: dict[str, Path], tmp_path: Path
) -> None:
    page = visit(browser, reports["invalid"]).page
    folded = page.locator("details [id], details[id]").evaluate_all(
        "parts => parts.filter((part) => part.matches('tr, details')).map((part) => part.id)"
    )
    assert len(folded) > 4
    for identifier in folded:
        page.goto("about:blank")
        page.goto(f"{reports['invalid'].as_uri()}#{identifier}")
        part = page.locator(f"[id='{identifier}']")
        expect(part).to_be_in_viewport(timeout=PATIENCE)
        assert part.evaluate("part => part.closest('details')?.open ?? true")


def test_a_permalink_is_seen_when_pointed_at_or_focused(
    browser: Browser, reports: dict[str, Path]
) -> None:
    page = visit(browser, reports["invalid"]).page
    for place in ("#faults h2", "#fault-1", "#violation-1 h3", "table.violated tbody tr"):
        link = page.locator(place).first.locator(".permalink").first
        page.mouse.move(1, 1)
        expect(link).to_have_css("opacity", "0", timeout=PATIENCE)
        page.locator(place).first.hover()
        expect(link).to_have_css("opacity", "1", timeout=PATIENCE)
        page.mouse.move(1, 1)
        link.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(link).to_have_css("opacity", "1", timeout=PATIENCE)
        link.click()
        assert page.url.endswith(str(link.get_attribute("href")))


def test_the_search_finds_operations_faults_and_lines_of_logs(
    browser: Browser, reports: dict[str, Path]
) -> None:
    page = visit(browser, reports["invalid"], width=1400).page
    field, found = page.locator("#find"), page.locator("#found button")
    field.fill("n3 says 14")
    expect(page.locator("#find-status")).to_have_text("1 found", timeout=PATIENCE)
    found.click()
    line = page.locator("tr.found")
    expect(line).to_be_in_viewport(timeout=PATIENCE)
    assert "n3 says 14" in line.inner_text()
    field.fill("KILL n2*")
    found.first.click()
    expect(page.locator("#fault-2.found")).to_be_in_viewport(timeout=PATIENCE)
    index = page.locator("table.violated td").nth(3).inner_text()
    field.fill(f"index {index}")
    expect(found).to_have_count(1, timeout=PATIENCE)
    found.click()
    expect(page.locator("#view-told")).to_contain_text(f"index {index},", timeout=PATIENCE)
    expect(page.locator("#view-frame")).to_be_in_viewport(timeout=PATIENCE)
    field.fill("no such thing")
    expect(page.locator("#find-status")).to_have_text("0 found", timeout=PATIENCE)
    field.fill("<img src=x onerror=window.hacked=1>")
    assert page.evaluate("window.hacked") is None
    field.fill("")
    expect(found).to_have_count(0, timeout=PATIENCE)
