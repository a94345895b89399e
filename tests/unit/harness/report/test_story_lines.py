"""Every kind of record has a line that says what happened."""

from pathlib import Path

from splitbrain.harness.report.story_lines import story_lines
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
from tests.unit.harness.small_worlds import broken, calm


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


def test_the_words_of_a_story_stand_in_the_glossary() -> None:
    glossary = (Path(__file__).parents[4] / "GLOSSARY.md").read_text(encoding="utf-8")
    told = [line.split(" |")[0].removeprefix("| ") for line in glossary.splitlines()]
    known = {word.strip() for words in told for word in words.split(",")}
    kinds = {"read", "write", "cas", "add", "client answer"}
    said: set[str] = set()
    for record in (*calm().story, *broken().story):
        is_message = isinstance(record, TimelineMessage)
        if isinstance(record, TimelineDisk) or (is_message and record.name.islower()):
            said.add(record.name)
    assert {"knock", "greeting", "persist", "mark"} <= said
    assert said - kinds - {"flush"} <= known
