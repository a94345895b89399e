"""One line of a timeline is what its kind says, and keeps its field names."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.history.run_folder import RunFolder
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

LINES = {
    '{"kind":"message","time":5,"node":"n1","peer":"n2","name":"Vote","arrived":9,'
    '"fate":"arrived","detail":"epoch 3, pre-vote","empty":false}': TimelineMessage(
        time=5,
        node="n1",
        peer="n2",
        name="Vote",
        arrived=9,
        fate="arrived",
        detail="epoch 3, pre-vote",
    ),
    '{"kind":"state","time":5,"node":"n1","role":"leader","epoch":4,"leader":"n1","detail":""}': (
        TimelineState(time=5, node="n1", role="leader", epoch=4, leader="n1")
    ),
    '{"kind":"life","time":5,"node":"n1","event":"crashed","detail":""}': TimelineLife(
        time=5, node="n1", event="crashed"
    ),
    '{"kind":"disk","time":5,"node":"n1","name":"fsync failed","until":null,"detail":""}': (
        TimelineDisk(time=5, node="n1", name="fsync failed")
    ),
    '{"kind":"log","time":5,"node":"n1","event":"high-watermark","offset":12,"detail":""}': (
        TimelineLog(time=5, node="n1", event="high-watermark", offset=12)
    ),
    '{"kind":"fault","time":5,"name":"partition","nodes":["n1"],"until":9,"detail":"leader"}': (
        TimelineFault(time=5, name="partition", nodes=("n1",), until=9, detail="leader")
    ),
    '{"kind":"violation","time":5,"name":"INV-02","node":null,"detail":"lost"}': (
        TimelineViolation(time=5, name="INV-02", detail="lost")
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_each_kind_reads_and_writes_the_documented_fields(line: str) -> None:
    record = msgspec.json.decode(line, type=TimelineRecord)
    assert record == LINES[line]
    assert msgspec.json.encode(record).decode() == line


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"rumour","time":5}',
        '{"time":5,"node":"n1"}',
        '{"kind":"life","time":0.5,"node":"n1","event":"started"}',
        '{"kind":"life","time":5,"node":"n1","event":"reborn"}',
    ],
)
def test_what_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=TimelineRecord)


def test_the_timeline_lies_in_the_run_folder() -> None:
    folder = RunFolder(Path("run"))
    assert folder.timeline == Path("run") / "timeline.jsonl"
