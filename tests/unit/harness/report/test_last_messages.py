"""Picture of the last messages before a violation: which are in it, where they begin and end."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.report.last_messages import (
    CHANGES_MAX,
    MESSAGES_MAX,
    LastMessages,
    last_messages,
)
from splitbrain.harness.report.message_timeline import read_timeline
from splitbrain.history.timeline_records import (
    TimelineDisk,
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


def state(time: int, node: str, role: str, epoch: int) -> TimelineState:
    return TimelineState(time=time, node=node, role=role, epoch=epoch)


def drawn(
    tmp_path: Path, records: Sequence[TimelineRecord], moment: int = 10_000
) -> LastMessages | None:
    path = tmp_path / "timeline.jsonl"
    write_timeline(path, [*records, TimelineViolation(time=moment, name="INV-02", node="n1")])
    timeline = read_timeline(path)
    assert timeline is not None
    return last_messages(timeline, moment, NODES)


def picture(tmp_path: Path, *records: TimelineRecord, moment: int = 10_000) -> str:
    found = drawn(tmp_path, records, moment)
    assert found is not None
    return str(found.picture)


def lines(svg: str, kind: str) -> list[tuple[float, ...]]:
    """Return x1, x2, y1, y2 of the arrows of a kind."""
    form = r'class="sent KIND" x1="(\S+)" x2="(\S+)" y1="(\S+)" y2="(\S+)"'.replace("KIND", kind)
    return [tuple(map(float, found)) for found in re.findall(form, svg)]


def test_the_last_messages_that_tell_something_are_shown(tmp_path: Path) -> None:
    told = [message(time, name=f"Vote{time}") for time in range(100, 5_100, 100)]
    idle = [message(time + 50, name="Fetch", empty=True) for time in range(100, 5_100, 100)]
    late = [message(12_000, name="Late")]
    found = drawn(tmp_path, sorted([*told, *idle, *late], key=lambda record: record.time))
    assert found is not None
    names = re.findall(r"n1 → n2  (\w+)<", str(found.picture))
    assert names == [f"Vote{time}" for time in range(2_100, 5_100, 100)]
    assert found.messages == MESSAGES_MAX
    assert found.lasting_ms == pytest.approx(7.9)


def test_the_message_that_made_the_violation_is_shown_though_it_tells_nothing_new(
    tmp_path: Path,
) -> None:
    cause = message(9_000, name="Fetch", empty=True, arrived=10_000)
    other = message(9_100, name="Ping", empty=True)
    svg = picture(tmp_path, message(1_000), cause, other)
    assert "Fetch" in svg
    assert "Ping" not in svg


def test_without_a_message_before_it_there_is_no_picture(tmp_path: Path) -> None:
    assert drawn(tmp_path, [state(1, "n1", "leader", 3), message(11_000)]) is None
    assert drawn(tmp_path, [message(1, empty=True)]) is None


def test_changes_of_roles_logs_and_lives_stand_among_them_and_disks_do_not(
    tmp_path: Path,
) -> None:
    svg = picture(
        tmp_path,
        state(10, "n2", "follower", 6),
        message(100),
        state(200, "n2", "leader", 7),
        TimelineLog(time=300, node="n2", event="truncate", offset=5),
        TimelineLife(time=400, node="n3", event="crashed"),
        TimelineFault(time=500, name="partition", nodes=("n1",)),
        TimelineDisk(time=600, node="n1", name="flush"),
        message(700),
    )
    changes = re.findall(r'class="change"[^>]*>([^<]*)<', svg)
    assert changes == [
        "n2  leader in epoch 7",
        "n2  truncate, end 5",
        "n3  crashed",
        "n1  fault: partition, to the end",
    ]
    assert "flush" not in svg
    # The role that it had before the first row stands at the top of its lane.
    assert re.search(r'class="soft"[^>]*>follower<', svg)
    assert svg.count('class="held e0"') == 1
    assert svg.count('class="held e1 leads"') == 1


def test_changes_are_bounded(tmp_path: Path) -> None:
    states = [state(time, "n1", "candidate", time) for time in range(101, 401)]
    found = drawn(tmp_path, [message(100), *states, message(500)])
    assert found is not None
    assert (found.messages, found.changes) == (2, CHANGES_MAX)


def test_an_arrow_falls_past_the_rows_of_what_happened_meanwhile(tmp_path: Path) -> None:
    svg = picture(
        tmp_path,
        message(100, arrived=250),
        message(200, "n2", "n3", arrived=210),
        message(300, "n3", "n1", arrived=400),
        message(400, "n1", "n2", arrived=None),
    )
    first, second, third = lines(svg, "arrived")
    # 250 lies in the middle between the rows of 200 and of 300.
    assert first[3] == pytest.approx((second[2] + third[2]) / 2)
    assert (first[0], first[1]) == (second[0] - 66, second[0])
    # 400 is the fourth row.
    assert third[3] == pytest.approx(third[2] + 20)
    (open_,) = lines(svg, "open")
    assert open_[3] > open_[2]


@pytest.mark.parametrize("fate", ["lost", "refused"])
def test_a_message_that_never_arrived_ends_in_a_cross_on_its_way(tmp_path: Path, fate: str) -> None:
    svg = picture(tmp_path, message(100, fate=fate, arrived=None))
    (line,) = lines(svg, "lost")
    assert line[0] < line[1] < line[0] + 66
    assert svg.count("cross") == 1
    assert "polygon" not in svg
    assert f"Vote, {fate}" in svg


def test_all_clients_share_a_lane_and_identities_are_left_out(tmp_path: Path) -> None:
    svg = picture(
        tmp_path,
        message(100, "c1", "n1", detail=f"id {'0' * 31}1, epoch 7"),
        message(200, "c2", "n1"),
    )
    first, second = lines(svg, "arrived")
    assert first[0] == second[0]
    assert re.search(r'class="soft"[^>]*>epoch 7<', svg)
    assert f"id {'0' * 31}1, epoch 7" in svg  # the row's title


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    svg = picture(tmp_path, message(100, HOSTILE, "n1", HOSTILE, detail=HOSTILE))
    assert "<script" not in svg
    assert "<img" not in svg
    assert "\x1b" not in svg


def test_no_text_of_a_row_runs_into_another(tmp_path: Path) -> None:
    svg = picture(tmp_path, *quorum_timeline(3_000), moment=3_000_000)
    heights = sorted({float(y) for y in re.findall(r'<text[^>]*? y="(\S+)"', svg)})
    assert len(heights) > MESSAGES_MAX
    assert min(later - earlier for earlier, later in pairwise(heights)) >= 14
