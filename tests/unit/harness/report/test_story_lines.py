"""Every kind of record has a line that says what happened."""

from pathlib import Path
from typing import Any

import pytest

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

AT: dict[str, Any] = {"time": 1500, "node": "n1"}
VOTE: dict[str, Any] = {**AT, "peer": "n2", "name": "Vote"}


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            TimelineMessage(**VOTE, arrived=2750, fate="arrived", detail="epoch 3"),
            "n1 → n2 Vote, arrived after 1.250 ms (epoch 3)",
        ),
        (TimelineMessage(**VOTE, arrived=None, fate="lost"), "n1 → n2 Vote, lost"),
        (
            TimelineMessage(**VOTE, arrived=None, fate="arrived"),
            "n1 → n2 Vote, under way at the end",
        ),
        (
            TimelineState(**AT, role="follower", epoch=3, leader="n2"),
            "n1 follower in epoch 3, leader n2",
        ),
        (TimelineState(**AT, role="leader", epoch=3, leader="n1"), "n1 leader in epoch 3"),
        (TimelineLife(**AT, event="crashed", detail="kill"), "n1 crashed (kill)"),
        (TimelineDisk(**AT, name="flush", until=3000), "n1 disk: flush for 1.500 ms"),
        (TimelineLog(**AT, event="truncate", offset=7), "n1 truncate, end 7"),
        (
            TimelineFault(time=1500, name="partition", nodes=("n1", "n2")),
            "n1, n2 fault: partition, to the end",
        ),
        (
            TimelineViolation(time=1500, name="INV-01", node="n3", detail="two\nlead"),
            "n3 violation: INV-01 (two\\nlead)",
        ),
    ],
)
def test_each_record_says_what_happened(record: TimelineRecord, text: str) -> None:
    (line,) = story_lines([(1234, record)])
    assert line.split()[:2] == ["1.500", "1234"]
    assert " ".join(line.split()[2:]) == text


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
