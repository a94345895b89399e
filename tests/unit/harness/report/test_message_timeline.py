"""Parts of a timeline that are read, and the report of them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.report.message_timeline import read_timeline
from splitbrain.harness.report.message_timeline_data import idle_messages, natural, picture_data
from splitbrain.harness.report.message_timeline_section import (
    ROWS_MAX,
    SCRIPTS,
    STYLES,
    MessageTimeline,
    known_violations,
    message_timeline,
)
from splitbrain.harness.report.page_assets import ASSETS, own_source
from splitbrain.history.timeline_records import (
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)
from tests.synthetic_runs import HOSTILE
from tests.synthetic_timelines import quorum_timeline, write_timeline

NODES = ("n1", "n2", "n3")


def message(
    time: int, node: str = "n1", peer: str = "n2", name: str = "Vote", **more: Any
) -> TimelineMessage:
    fields = {"arrived": time + 5, "fate": "arrived", **more}
    return TimelineMessage(time=time, node=node, peer=peer, name=name, **fields)


def violation(time: int, name: str = "INV-02") -> TimelineViolation:
    return TimelineViolation(time=time, name=name, node="n1", detail="gone")


def section_of(tmp_path: Path, *records: TimelineRecord, checkers: Any = ()) -> MessageTimeline:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, list(records))
    section = message_timeline(path, checkers, NODES)
    assert section is not None
    return section


def data_of(section: MessageTimeline) -> dict[str, Any]:
    return json.loads(section.data)


# --- reading --------------------------------------------------------------------------------


def test_a_run_without_a_timeline_has_no_section(tmp_path: Path) -> None:
    assert message_timeline(tmp_path / "timeline.jsonl", (), NODES) is None
    (tmp_path / "timeline.jsonl").write_text("\n")
    assert message_timeline(tmp_path / "timeline.jsonl", (), NODES) is None


def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, [message(1), message(2)])
    path.write_bytes(path.read_bytes() + b'{"kind":"mess')
    section = message_timeline(path, (), NODES)
    assert section is not None
    assert len(data_of(section)["messages"]) == 2
    assert section.problems == ["The last line of timeline.jsonl is torn (13 bytes left out)."]


@pytest.mark.parametrize(
    ("line", "clause"),
    [
        (b"{", "it ends in the middle of a value"),
        (b'{"kind":"life","x":' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"kind":"life","time":1,"node":"n1","event":"x"}', "event cannot be 'x'"),
        (b'{"kind":"rumour"}', "rumour"),
        (b'{"kind":"log","time":"1"}', "time must be a whole number, not text"),
        (b"\xff", "it is not valid JSON"),
    ],
)
def test_a_broken_line_is_one_clear_sentence(tmp_path: Path, line: bytes, clause: str) -> None:
    path = tmp_path / "timeline.jsonl"
    good = msgspec.json.encode(message(1)) + b"\n"
    path.write_bytes(good + line + b"\n" + good)
    section = message_timeline(path, (), NODES)
    assert section is not None
    assert len(data_of(section)["messages"]) == 2
    (problem,) = section.problems
    assert problem.startswith("1 line of timeline.jsonl is broken and left out (line 2: ")
    assert clause in problem


def test_a_timeline_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "timeline.jsonl").mkdir()
    section = message_timeline(tmp_path / "timeline.jsonl", (), NODES)
    assert section is not None
    assert section.problems == ["timeline.jsonl cannot be read to its end: Is a directory."]


def test_lines_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    section = section_of(tmp_path, message(30), message(10), message(20))
    assert [row[0] for row in data_of(section)["messages"]] == [10, 20, 30]


def test_of_a_long_run_the_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, [message(time) for time in range(100)])
    timeline = read_timeline(path, records_max=30)
    assert timeline is not None
    assert [record.time for record in timeline.records] == list(range(70, 100))
    assert (timeline.total, timeline.is_cut) == (100, True)


def test_of_a_long_run_with_a_violation_what_led_to_it_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    records = [message(time) for time in range(100)]
    write_timeline(path, [*records[:50], violation(50), *records[50:]])
    timeline = read_timeline(path, records_max=30, after_max=4)
    assert timeline is not None
    assert timeline.violation == violation(50)
    assert [record.time for record in timeline.records] == [*range(25, 50), 50, 50, 51, 52, 53]
    assert timeline.total == 101


def test_what_follows_a_violation_is_kept_where_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, [message(1), violation(2), *(message(time) for time in range(3, 50))])
    timeline = read_timeline(path, records_max=100, after_max=4)
    assert timeline is not None
    assert len(timeline.records) == timeline.total == 49
    timeline = read_timeline(path, records_max=10, after_max=4)
    assert timeline is not None
    assert [record.time for record in timeline.records] == list(range(1, 11))


def test_a_violation_that_a_checker_found_is_shown_with_what_led_to_it(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, [message(time) for time in range(100)])
    timeline = read_timeline(path, [violation(60, "linearizability")], records_max=9, after_max=2)
    assert timeline is not None
    assert [record.time for record in timeline.records] == list(range(54, 63))
    assert timeline.violation == violation(60, "linearizability")


def test_a_cut_is_said(tmp_path: Path) -> None:
    assert section_of(tmp_path, message(1)).cut is None
    section = section_of(tmp_path, *(message(time) for time in range(20_005)))
    assert section.cut == (
        "20,000 of 20,005 events are shown, the last ones; all stand in timeline.jsonl."
    )


def test_how_things_stood_where_the_shown_part_begins_is_known(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    early: list[TimelineRecord] = [
        TimelineState(time=1, node="n1", role="leader", epoch=4),
        TimelineLife(time=2, node="n2", event="crashed"),
        TimelineFault(time=3, name="partition", nodes=("n1",), until=1_000),
        TimelineFault(time=4, name="pause", nodes=("n3",), until=5),
        TimelineLog(time=5, node="n1", event="high-watermark", offset=7),
    ]
    write_timeline(path, [*early, *(message(time) for time in range(10, 60))])
    timeline = read_timeline(path, records_max=20)
    assert timeline is not None
    data = msgspec.to_builtins(picture_data(timeline, (), NODES))
    assert data["begin"] == 40
    assert data["reigns"] == [[40, 64, 0, "leader", 4, None, ""]]
    assert data["outages"] == [[40, 64, 1, "crashed", ""]]
    assert [(fault[0], fault[1], fault[3]) for fault in data["faults"]] == [(40, 64, "partition")]
    assert data["logs"] == [[40, None, 0, "high-watermark", 7, ""]]


# --- what the picture is given --------------------------------------------------------------


def test_nodes_stand_in_natural_order_and_clients_below(tmp_path: Path) -> None:
    records = [message(1, "c10", "n10"), message(2, "c2", "n2"), message(3, "n1", "n2")]
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, records)
    section = message_timeline(path, (), ("n10", "n2", "n1"))
    assert section is not None
    data = data_of(section)
    assert (data["nodes"], data["clients"]) == (["n1", "n2", "n10"], ["c2", "c10"])
    assert [row[2:4] for row in data["messages"]] == [[4, 2], [3, 1], [0, 1]]
    assert sorted(["n10b", "n10", "n9", "a"], key=natural) == ["a", "n9", "n10", "n10b"]


def test_a_role_ends_with_the_next_one_and_with_the_node(tmp_path: Path) -> None:
    section = section_of(
        tmp_path,
        TimelineState(time=0, node="n1", role="", epoch=1),
        TimelineState(time=1, node="n1", role="candidate", epoch=2),
        TimelineState(time=5, node="n1", role="leader", epoch=2, leader="n1"),
        TimelineLife(time=9, node="n1", event="crashed", detail="power"),
        TimelineLife(time=20, node="n1", event="started"),
        TimelineState(time=25, node="n1", role="follower", epoch=3, leader="n2"),
        TimelineLife(time=30, node="n1", event="paused"),
        TimelineLife(time=35, node="n1", event="resumed"),
        message(40),
    )
    data = data_of(section)
    assert [row[:4] for row in data["reigns"]] == [
        [0, 1, 0, "starting"],
        [1, 5, 0, "candidate"],
        [5, 9, 0, "leader"],
        [25, 45, 0, "follower"],
    ]
    assert data["outages"] == [[9, 20, 0, "crashed", "power"], [30, 35, 0, "paused", ""]]


def test_an_answer_decides_whether_its_question_is_shown_and_no_other() -> None:
    fetches = [
        message(0, "n2", "n1", "Fetch"),
        message(1, "n3", "n1", "Fetch", empty=True),
        message(2, "n2", "n1", "Fetch", arrived=None, fate="lost", empty=True),
        message(3, "n2", "n1", "Fetch", arrived=99, empty=True),
        message(10, "n1", "n2", "FetchAnswer", empty=True),
        message(11, "n1", "n3", "FetchAnswer"),
        message(12, "n1", "n2", "FetchAnswer", empty=True),
    ]
    # The lost one and those that tell something stay; nobody answered the last question.
    assert idle_messages(fetches) == {0, 3, 4, 6}


def test_a_fault_without_an_end_lasts_to_the_end(tmp_path: Path) -> None:
    fault = TimelineFault(time=3, name="partition", nodes=("n1", "elsewhere"))
    data = data_of(section_of(tmp_path, message(1), fault, message(50)))
    assert data["faults"] == [[3, 55, [0], "partition", ""]]


def test_hostile_text_cannot_leave_the_script_element(tmp_path: Path) -> None:
    evil = "</script><script>window.hacked=1</script><!--" + HOSTILE
    section = section_of(
        tmp_path,
        message(1, evil, evil, evil, detail=evil),
        TimelineState(time=2, node=evil, role=evil, epoch=1, leader=evil, detail=evil),
        TimelineViolation(time=3, name=evil, node=evil, detail=evil),
    )
    assert "<" not in section.data
    assert "\x1b" not in section.data
    assert data_of(section)["names"][0].startswith("</script>")


def test_a_long_detail_is_cut(tmp_path: Path) -> None:
    data = data_of(section_of(tmp_path, message(1, detail="x" * 10_000)))
    assert len(data["messages"][0][7]) == 240


def test_ten_thousand_events_fit_a_page(tmp_path: Path) -> None:
    section = section_of(tmp_path, *quorum_timeline(10_000))
    assert len(section.data) < 1_200_000


# --- violations and the table ---------------------------------------------------------------


def test_violations_of_checkers_stand_at_the_end_of_their_operation() -> None:
    def found(**operation: Any) -> dict[str, Any]:
        return {"sentence": "It has no place.", "operation": operation}

    results = [
        CheckResult(
            "linearizability",
            Verdict.INVALID,
            "r",
            violations=(found(start=1_000, end=7_999), found(start=2_000, end=None), {"core": []}),
        )
    ]
    assert [(known.time, known.name) for known in known_violations(results)] == [
        (7, "linearizability"),
        (2, "linearizability"),
    ]


def test_the_table_ends_with_the_violation_and_leaves_out_what_carries_nothing(
    tmp_path: Path,
) -> None:
    section = section_of(
        tmp_path,
        *(message(time) for time in range(300)),
        message(300, "n1", "n2", "FetchAnswer", empty=True),
        violation(301),
        message(302),
    )
    assert len(section.rows) == ROWS_MAX
    last = section.rows[-1]
    assert last.is_violation
    assert (last.time, last.where, last.what) == ("0.000301", "n1", "violation: INV-02")
    before = section.rows[-2]
    assert (before.where, before.what) == ("n1 → n2", "Vote, arrived after 0.005 ms")


def test_the_table_has_words_for_every_kind(tmp_path: Path) -> None:
    section = section_of(tmp_path, *quorum_timeline(2_000), message(10**8, arrived=None))
    told = {re.sub(r"[0-9.]+", "N", row.what) for row in section.rows}
    assert {"disk: flush for N ms", "high watermark N", "append, end N"} <= told


# --- the page's own assets ------------------------------------------------------------------


def test_scripts_and_styles_may_stand_in_a_page() -> None:
    for name in SCRIPTS:
        own_source((ASSETS / name).read_text(encoding="utf-8"), "script")
    for name in STYLES:
        own_source((ASSETS / name).read_text(encoding="utf-8"), "style")


def _contrast(first: str, second: str) -> float:
    def luminance(color: str) -> float:
        parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_all_text_of_the_picture_has_enough_contrast(theme: int) -> None:
    colors: dict[str, str] = {}
    for name in ("report.css", *STYLES):
        text = (ASSETS / name).read_text(encoding="utf-8")
        part = text.split("@media (prefers-color-scheme: dark)", 1)[theme]
        colors |= re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part.split("* {", 1)[0])
    pairs = [(name, "on-" + name) for name in colors if name.startswith("role-")]
    pairs += [
        (name, "card") for name in colors if re.match(r"message-|refused|disk|fault-ink", name)
    ]
    pairs += [("invalid", "card"), ("ink", "card"), ("ink-soft", "card")]
    assert len(pairs) == 21
    for text, ground in pairs:
        assert _contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
