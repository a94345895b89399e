"""The page is whole, self-contained and bounded, and nothing that a system says can act in it."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.analysis.run import Lost, Phantom, RunAnalysis, ServiceWindow
from splitbrain.harness.judge.analysis_process import analysis_of
from splitbrain.harness.report.findings import analysis_tables
from splitbrain.harness.report.graph_picture import draw_graph
from splitbrain.harness.report.operations_picture import OPERATIONS_MAX, choose, draw, label_of
from splitbrain.harness.report.page_assets import (
    content_security_policy,
    json_for_script,
    own_source,
)
from splitbrain.harness.report.violations import core_operations, show_violations
from tests.synthetic_runs import HOSTILE, write_run
from tests.unit.harness.report.made_pages import operation, outline, page_of, violation

WINDOW = ServiceWindow(
    *(0, "kill", "leader", ["n1"], 1000.0, 2000.0, True, 1.0, 0.5, None, 1.0, None, None),
    failover_ms=812.34,
    recovery_ms=None,
    new_epoch=4,
)


GRAPH = {
    "directed": True,
    "multigraph": True,
    "graph": {},
    "nodes": [
        {"id": 1, "text": "write 4", "process": 0, "node": "n1", "start": 0, "end": 5,
         "culprit": False},
        {"id": 2, "text": "read -> 3", "process": 1, "node": None, "start": 9, "end": None,
         "culprit": True},
    ],
    "edges": [
        {"source": 1, "target": 2, "key": "real-time", "label": "", "contradiction": True},
        {"source": 2, "target": 1, "key": "must-precede", "label": "x", "contradiction": True},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("page") / "run", operations_per_second=40)


def test_the_page_loads_nothing_from_elsewhere(run: Path) -> None:
    for tag, attributes in outline(page_of(run)):
        assert tag not in ("iframe", "object", "embed", "img", "base")
        assert attributes.get("src") is None
        href = attributes.get("href") or "#"
        assert href == "data:," or href.startswith("#")


def test_the_page_has_one_first_heading_and_its_headings_do_not_jump(run: Path) -> None:
    shown = CheckResult("c", Verdict.INVALID, "r", violations=(violation(operation(1, 0, 1)),))
    levels = [int(tag[1]) for tag, _ in outline(page_of(run, (shown,))) if re.match("h[1-6]$", tag)]
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_pictures_have_a_text_for_those_who_cannot_see_them(run: Path) -> None:
    shown = CheckResult(
        "c", Verdict.INVALID, "r", violations=(violation(operation(1, 0, 1), graph=GRAPH),)
    )
    for tag, attributes in outline(page_of(run, (shown,))):
        if tag == "svg" or attributes.get("role") == "img":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"


def test_the_verdict_its_reason_and_the_way_to_reproduce_it_are_there(run: Path) -> None:
    page = page_of(run, (CheckResult("lost-commits", Verdict.INVALID, "One write is gone."),))
    assert '<span class="badge">INVALID</span>' in page
    assert "<h1>One write is gone.</h1>" in page
    assert "--nemesis partition,pause,kill" in page
    assert "4 links cut after 212 ms" in page


def test_the_data_of_the_charts_is_json(run: Path) -> None:
    text = re.search('id="chart-data">(.*?)</script>', page_of(run))
    assert text is not None
    data = json.loads(text[1])
    assert [fault["label"] for fault in data["faults"]] == ["partition n1", "pause n3", "kill n2"]
    assert [reign["epoch"] for reign in data["reigns"]] == [1, 2, 3]
    assert data["nodes"] == ["n1", "n2", "n3"]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", operations_per_second=40, hostile=True)
    evil = operation(1, 0, 1, key=HOSTILE, result=HOSTILE, node=HOSTILE)
    graph = json.loads(json.dumps(GRAPH))
    graph["nodes"][0]["text"] = graph["nodes"][0]["node"] = HOSTILE
    shown = CheckResult(
        HOSTILE,
        Verdict.INVALID,
        HOSTILE,
        figures={HOSTILE: HOSTILE},
        violations=(violation(evil, graph=graph, text=[HOSTILE], sentence=HOSTILE, kind=HOSTILE),),
        observations=({"kind": HOSTILE, "sentence": HOSTILE},),
    )
    window = msgspec.structs.replace(WINDOW, kind=HOSTILE, target=HOSTILE)
    page = page_of(run, (shown,), RunAnalysis(windows=[window]))
    harmless = msgspec.structs.replace(
        shown, checker="x", violations=(violation(operation(1, 0, 1)),)
    )
    clean = page_of(write_run(tmp_path / "clean", operations_per_second=40), (harmless,), None)
    scripts = [tag for tag, _ in outline(page) if tag == "script"]
    assert len(scripts) == len([tag for tag, _ in outline(clean) if tag == "script"])
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u2028" not in page
    assert not any(name.startswith("on") for _, attributes in outline(page) for name in attributes)


@pytest.mark.parametrize("text", ["</script>", "<!--", "&lt;", "\u2028\u2029", HOSTILE])
def test_no_string_can_leave_the_data_element(text: str) -> None:
    embedded = json_for_script({"value": text, text: 1})
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == {"value": text, text: 1}


def test_scripts_and_styles_that_would_end_early_are_refused() -> None:
    for source in ("x = '</SCRIPT>'", "<!-- x"):
        with pytest.raises(ValueError, match="closing tag"):
            own_source(source, "script")
    with pytest.raises(ValueError, match="closing tag"):
        own_source("</style>", "style")


def test_the_policy_names_each_script_and_no_origin() -> None:
    policy = content_security_policy(["a", "b"])
    assert policy.count("'sha256-") == 2
    assert "http" not in policy
    assert "default-src 'none'" in policy


def test_a_missing_chart_library_is_said_and_still_charts_shown(run: Path, tmp_path: Path) -> None:
    page = page_of(run, vendor=tmp_path)
    assert "make setup" in page
    assert 'id="static-charts"' in page
    assert "Throughput, latency quantiles and leaders over time" in page
    assert "leads epoch 2" in page


def test_a_page_stays_small_for_a_long_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", operations_per_second=900, processes=12, duration_factor=3)
    assert len(page_of(run)) < 2_000_000


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", operations_per_second=40)
    for name in ("history.jsonl", "faults.jsonl", "schedule.jsonl"):
        (run / name).unlink()
    assert '<span class="badge">VALID</span>' in page_of(run)


# --- the violation --------------------------------------------------------------------------


def test_the_picture_shows_the_core_and_its_nearest_neighbours_only() -> None:
    history = [operation(n, n * 10, n * 10 + 5) for n in range(500)]
    core = [history[400], history[250]]
    chosen = choose(history, core, "r")
    assert len(chosen) == OPERATIONS_MAX
    assert {250, 400} <= {member.index for member in chosen}
    assert all(240 < member.index < 410 for member in chosen)


def test_operations_of_other_keys_and_failed_ones_are_not_drawn() -> None:
    core = [operation(0, 0, 5)]
    others = [operation(1, 1, 2, key="s"), operation(2, 1, 2, type="fail")]
    assert choose([*core, *others], core, "r") == core


def test_every_label_fits_its_bar_and_time_keeps_its_order() -> None:
    crowd = [operation(n, n, n + 1, result=10**9 + n) for n in range(20)]
    picture = draw(crowd, frozenset({3}), 3)
    assert picture is not None
    pattern = r'<rect class="call[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'
    bars = [(float(x), float(width)) for x, width in re.findall(pattern, picture.bars)]
    assert [x for x, _ in bars] == sorted(x for x, _ in bars)
    assert all(
        width >= 7 * len(label_of(member)) for (_, width), member in zip(bars, crowd, strict=True)
    )
    assert picture.bars.count(" core culprit") == 1


def test_an_open_operation_reaches_the_end_of_the_picture() -> None:
    picture = draw([operation(0, 0, None), operation(1, 5, 6)], frozenset())
    assert picture is not None
    assert "never answered" in picture.bars
    assert 'class="call open"' in picture.bars


def test_no_operations_make_no_picture() -> None:
    assert draw([], frozenset()) is None


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "read → 4"),
        ({"result": None}, "read → nothing"),
        ({"f": "write", "argument": 5}, "write 5"),
        ({"f": "write", "argument": 5, "type": "info"}, "write 5 ?"),
        ({"f": "cas", "argument": [3, 4], "result": [3, 4, True]}, "cas 3→4"),
        ({"f": "cas", "argument": [3, 4], "result": [3, 4, False]}, "cas 3→4 refused"),
        ({"result": [1, 2, 3, 4, 5]}, "read → [5 elements]"),
        ({"result": "\x1b" * 50}, "read → \\x1b\\x1b\\x1b\\x1b\\x…"),
    ],
)
def test_labels(changes: dict[str, object], label: str) -> None:
    assert label_of(operation(0, 0, 1, **changes)) == label


def test_the_graph_shows_each_pair_once_and_marks_the_contradiction() -> None:
    picture = draw_graph(GRAPH, "v0")
    assert picture.count('class="edge bad"') == 2
    assert "returned before" in picture
    assert "must precede" in picture


def test_a_large_graph_is_cut_to_what_contradicts_itself() -> None:
    graph = json.loads(json.dumps(GRAPH))
    for number in range(3, 40):
        graph["nodes"].append({**graph["nodes"][0], "id": number, "text": f"write {number}"})
    picture = draw_graph(graph, "v0")
    assert "write 4" in picture
    assert "write 39" not in picture


@pytest.mark.parametrize(
    ("pair", "sides_px"),
    [((0, 1), 6 + 140), ((1, 0), 140 + 6), ((2, 3), 6 + 6), ((3, 2), 6 + 6), ((5, 4), 6 + 6)],
)
def test_a_graph_has_room_at_a_side_for_the_arrows_that_bow_out_of_it(
    pair: tuple[int, int], sides_px: int
) -> None:
    # Three columns of two operations, each pair at one time; the first is alone in (0, 1)'s case.
    def node(number: int) -> dict[str, object]:
        start = 100 * (number // 2)
        return {**GRAPH["nodes"][0], "id": number, "start": start, "end": start + 50}

    shown = [0, 1] if pair == (0, 1) else range(6)
    edge = {**GRAPH["edges"][0], "source": pair[0], "target": pair[1], "kind": "must-precede"}
    picture = draw_graph({**GRAPH, "nodes": [node(n) for n in shown], "edges": [edge]}, "v0")
    columns = 1 if pair == (0, 1) else 3
    (width,) = re.findall(r'^<svg [^>]*width="(\d+)"', picture)
    assert int(width) == 306 * (columns - 1) + 172 + sides_px


def test_an_empty_graph_is_no_picture() -> None:
    assert draw_graph({**GRAPH, "nodes": [], "edges": []}, "v0") == ""


def test_an_overlap_of_leaders_that_is_part_of_a_violation_is_not_harmless(run: Path) -> None:
    older = {"node": "n9", "epoch": 1, "incarnation": 0, "start": 0, "end": None}
    newer = {"node": "n8", "epoch": 2, "incarnation": 0, "start": 5, "end": None}
    seen = {"kind": "leader-overlap", "first": older, "second": newer, "sentence": "Both led."}
    other = {**seen, "second": {**newer, "epoch": 3}, "sentence": "Others led."}
    logs = CheckResult("split-brain", Verdict.VALID, "Fine.", observations=(seen, other))
    core = operation(3, 1, 2)
    account = "Stale read. n9, still acting as leader of epoch 1, answered a read."
    found = violation(core, anomaly="stale read", account=account)
    told = CheckResult("linearizability:kv", Verdict.INVALID, "Bad.", violations=(found,))
    unjoined = page_of(run, (told, logs))
    assert "Both led." in unjoined
    assert unjoined.count(account) == 1, "the headline has it, and each sentence stands once"
    explained = msgspec.structs.replace(told, violations=({**found, "overlap": [older, newer]},))
    page = page_of(run, (explained, logs))
    assert "of n9 in epoch 1 and n8 in epoch 2, the violation above happened" in page
    assert "Both led." not in page
    assert "Others led." in page
    assert ">stale read</span> found by linearizability:kv" in page


def test_a_violation_of_unknown_shape_is_shown_by_its_sentence() -> None:
    odd = CheckResult("c", Verdict.INVALID, "r", violations=({"kind": "odd", "core": "x"},))
    (shown,) = show_violations([], [odd])
    assert (shown.name, shown.picture, shown.graph) == ("odd", None, "")
    assert core_operations({"operation": 4, "core": [{"index": "no"}]}) == []


def test_operations_that_are_named_by_their_indexes_are_drawn_among_those_of_the_history() -> None:
    history = [operation(index, index, index + 3) for index in (0, 2, 4, 7)]
    named = [{"index": 4, "text": "a read"}, {"index": 2, "text": "a write"}]
    found = {"kind": "lost", "sentence": "It is gone.", "operations": named}
    lost = CheckResult("log", Verdict.INVALID, "r", violations=(found,))
    (shown,) = show_violations(history, [lost])
    assert [row.index for row in shown.operations] == [4, 2]
    assert shown.picture is not None
    assert (shown.drawn, shown.core, shown.view) == (4, 2, 0)
    nowhere = msgspec.structs.replace(lost, violations=({**found, "operations": [{"index": 3}]},))
    assert show_violations(history, [nowhere])[0].picture is None


def test_further_violations_are_counted() -> None:
    many = tuple(violation(operation(n, 0, 1)) for n in range(9))
    shown = show_violations([], [CheckResult("c", Verdict.INVALID, "r", violations=many)])
    assert len(shown) == 3
    assert [item.more for item in shown] == [0, 0, 6]
    assert [item.first for item in shown] == [True, False, False]


# --- the analysis ---------------------------------------------------------------------------


def test_the_figures_of_spark_become_tables() -> None:
    lost, phantom = Lost(100, 1, [], 3, 3), Phantom(99, None, [])
    analysis = RunAnalysis(windows=[WINDOW], lost=lost, phantom=phantom)
    windows, commits = analysis_tables(analysis)
    assert windows.rows == [["0", "kill:leader", "100%", "50%", "-", "812.3 ms", "-", "4"]]
    assert commits.rows[0][1:] == ["1", "100"]
    assert commits.rows[1][1:] == ["-", "99"]
    assert "not whether they lasted" in windows.note
    assert analysis_tables(analysis, has_logs=False) == [windows]


@pytest.mark.parametrize("summary", [{}, {"windows": 3, "lost": []}])
def test_an_analysis_that_lacks_everything_has_no_tables(summary: dict[str, Any]) -> None:
    assert analysis_tables(analysis_of(summary)) == analysis_tables(None) == []
