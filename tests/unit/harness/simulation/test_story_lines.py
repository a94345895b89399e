"""Every kind of record has a line that says what happened."""

from harness.simulation.story_lines import story_lines
from history.timeline_records import (
    TimelineDisk,
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)


def line(record: TimelineRecord) -> str:
    (told,) = story_lines([(1234, record)])
    assert told.split()[:2] == ["1.500", "1234"]
    return " ".join(told.split()[2:])


def test_each_record_says_what_happened() -> None:
    at = {"time": 1500, "node": "n1"}
    vote = {**at, "peer": "n2", "name": "Vote"}
    assert line(TimelineMessage(**vote, arrived=2750, fate="arrived", detail="epoch 3")) == (
        "n1 -> n2 Vote, arrives 2.750 (epoch 3)"
    )
    assert line(TimelineMessage(**vote, arrived=None, fate="lost")) == "n1 -> n2 Vote, lost"
    assert line(TimelineMessage(**vote, arrived=None, fate="arrived")).endswith("Vote, under way")
    assert line(TimelineState(**at, role="follower", epoch=3, leader="n2")) == (
        "n1 is follower in epoch 3 under n2"
    )
    assert line(TimelineState(**at, role="leader", epoch=3, leader="n1")) == (
        "n1 is leader in epoch 3"
    )
    assert line(TimelineLife(**at, event="crashed", detail="kill")) == "n1 crashed (kill)"
    assert line(TimelineDisk(**at, name="flush", until=3000)) == "n1 disk: flush, done 3.000"
    assert line(TimelineLog(**at, event="truncate", offset=7)) == "n1 log cut back to 7"
    assert line(TimelineFault(time=1500, name="partition", nodes=("n1", "n2"))) == (
        "**** fault partition on n1, n2 to the end"
    )
    assert line(TimelineViolation(time=1500, name="INV-01", node="n3", detail="two\nlead")) == (
        "!!!! VIOLATION of INV-01 at n3 (two\\nlead)"
    )
