"""Data of the timeline's picture, as one record that becomes the JSON inside the page. Pure.

Rows are arrays, in the order of their fields, since a page holds many of them.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.message_timeline import ReadTimeline
from splitbrain.harness.report.story_lines import ROLELESS
from splitbrain.history.timeline_records import (
    Microseconds,
    TimelineDisk,
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)

#: Characters of one detail, and of a violation's, of which there are few.
_DETAIL_MAX = 240
_STORY_MAX = 2_000
_ANSWER = "Answer"
#: Questions from one node to another that may wait for an answer at once.
_OPEN_QUESTIONS_MAX = 64
_Change = TypeVar("_Change", bound=TimelineState | TimelineLife)


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One arrow. Lanes are indexes into the nodes, then the clients."""

    sent: Microseconds
    arrived: Microseconds | None
    sender: int
    receiver: int
    #: Index into the names.
    name: int
    fate: str
    #: Hidden at first: it arrived, and nothing new is in it, nor in its answer.
    idle: bool
    detail: str


class HeldRole(msgspec.Struct, frozen=True, array_like=True):
    """A stretch in which a node had one role in one epoch."""

    start: Microseconds
    end: Microseconds
    lane: int
    role: str
    epoch: int
    leader: str | None
    detail: str


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """A stretch in which a node did not run."""

    start: Microseconds
    end: Microseconds
    lane: int
    #: ``crashed``, ``paused`` or ``stopped``.
    event: str
    detail: str


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """One action of a node's disk or log."""

    start: Microseconds
    #: None where it took no time or never ended.
    end: Microseconds | None
    lane: int
    name: str
    #: High watermark or end of the log; None for the disk.
    offset: int | None
    detail: str


class FaultBand(msgspec.Struct, frozen=True, array_like=True):
    """A fault's time in force."""

    start: Microseconds
    end: Microseconds
    #: Empty: all.
    lanes: list[int]
    name: str
    detail: str


class ViolationLine(msgspec.Struct, frozen=True, array_like=True):
    """A broken promise."""

    time: Microseconds
    lane: int | None
    name: str
    detail: str


class PictureData(msgspec.Struct, frozen=True):
    """Everything that the page's script reads."""

    begin: Microseconds
    end: Microseconds
    #: Time of the first violation.
    violation: Microseconds | None
    nodes: list[str]
    clients: list[str]
    names: list[str]
    messages: list[Message]
    reigns: list[HeldRole]
    outages: list[Outage]
    disks: list[Mark]
    logs: list[Mark]
    faults: list[FaultBand]
    violations: list[ViolationLine]


def picture_data(
    timeline: ReadTimeline, known: Sequence[TimelineViolation], node_names: Sequence[str]
) -> PictureData:
    """Shape a timeline for the picture.

    ``known`` are violations that stand in no timeline; senders and receivers that are none of the
    ``node_names`` are clients.
    """
    records = timeline.records
    begin = records[0].time if records else 0
    end = max((_end(record) for record in records), default=begin)
    nodes, clients = lanes_of([*timeline.before, *records], node_names)
    lane = {name: place for place, name in enumerate([*nodes, *clients])}
    names = sorted({record.name for record in records if isinstance(record, TimelineMessage)})
    story = [*timeline.before, *records]
    marks = _marks(story, lane, begin)
    return PictureData(
        begin=begin,
        end=max(end, begin + 1),
        violation=None if timeline.violation is None else timeline.violation.time,
        nodes=[printable(node) for node in nodes],
        clients=[printable(client) for client in clients],
        names=[printable(name) for name in names],
        messages=_messages(records, lane, {name: place for place, name in enumerate(names)}),
        reigns=_reigns(story, lane, begin, end),
        outages=_outages(story, lane, begin, end),
        disks=[mark for mark in marks if mark.offset is None],
        logs=[mark for mark in marks if mark.offset is not None],
        faults=[
            FaultBand(
                max(record.time, begin),
                end if record.until is None else min(record.until, end),
                [lane[node] for node in record.nodes if node in lane],
                printable(record.name),
                _detail(record.detail),
            )
            for record in story
            if isinstance(record, TimelineFault)
        ],
        violations=[
            ViolationLine(
                record.time,
                None if record.node is None else lane.get(record.node),
                printable(record.name),
                _detail(record.detail, _STORY_MAX),
            )
            for record in sorted([*records, *known], key=lambda record: record.time)
            if isinstance(record, TimelineViolation) and begin <= record.time <= end
        ],
    )


def lanes_of(
    records: Iterable[TimelineRecord], node_names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return nodes and clients, each in natural order (``n2`` before ``n10``)."""
    nodes, spoken = set(node_names), set[str]()
    for record in records:
        if isinstance(record, TimelineMessage):
            spoken.update((record.node, record.peer))
        elif not isinstance(record, TimelineFault | TimelineViolation):
            nodes.add(record.node)
    return sorted(nodes, key=natural), sorted(spoken - nodes, key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key in which numbers inside a name count as numbers."""
    return [
        (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)
        for part in re.split(r"([0-9]{1,18})", name)
    ]


def idle_messages(records: Sequence[TimelineRecord]) -> set[int]:
    """Return places of messages that arrived with nothing new; a question is as its answer is.

    An answer belongs to the last question before it that went the other way, has its name without
    ``Answer``, had arrived and had no answer yet.
    """
    idle: set[int] = set()
    unanswered: dict[tuple[str, str, str], deque[int]] = {}
    messages = {
        place: record for place, record in enumerate(records) if isinstance(record, TimelineMessage)
    }
    for place, record in messages.items():
        if _is_idle(record):
            idle.add(place)
        question = record.name.removesuffix(_ANSWER)
        if question == record.name:
            key = (record.node, record.peer, question)
            unanswered.setdefault(key, deque(maxlen=_OPEN_QUESTIONS_MAX)).append(place)
            continue
        questions = unanswered.get((record.peer, record.node, question), deque[int]())
        answered = next(
            (
                ago
                for ago in reversed(questions)
                if (arrived := messages[ago].arrived) is not None and arrived <= record.time
            ),
            None,
        )
        if answered is not None:
            questions.remove(answered)
            idle.discard(answered)
            if _is_idle(record):
                idle.add(answered)
    return idle


def _is_idle(message: TimelineMessage) -> bool:
    """Return False for a lost message: it is worth a look even if there was little in it."""
    return message.empty and message.fate == "arrived"


def _messages(
    records: Sequence[TimelineRecord], lane: dict[str, int], names: dict[str, int]
) -> list[Message]:
    idle = idle_messages(records)
    return [
        Message(
            record.time,
            record.arrived,
            lane[record.node],
            lane[record.peer],
            names[record.name],
            record.fate,
            place in idle,
            _detail(record.detail),
        )
        for place, record in enumerate(records)
        if isinstance(record, TimelineMessage)
    ]


def _reigns(
    story: Sequence[TimelineRecord], lane: dict[str, int], begin: int, end: int
) -> list[HeldRole]:
    endings = ("started", "crashed", "stopped")
    changes = [
        record
        for record in story
        if isinstance(record, TimelineState)
        or (isinstance(record, TimelineLife) and record.event in endings)
    ]
    reigns = [
        HeldRole(
            max(state.time, begin),
            until,
            lane[state.node],
            printable(state.role) or ROLELESS,
            state.epoch,
            None if state.leader is None else printable(state.leader),
            _detail(state.detail),
        )
        for state, until in _stretches(changes, end)
        if isinstance(state, TimelineState) and until >= begin
    ]
    return sorted(reigns, key=lambda reign: reign.start)


def _outages(
    story: Sequence[TimelineRecord], lane: dict[str, int], begin: int, end: int
) -> list[Outage]:
    lives = [record for record in story if isinstance(record, TimelineLife)]
    outages = [
        Outage(max(life.time, begin), until, lane[life.node], life.event, _detail(life.detail))
        for life, until in _stretches(lives, end)
        if life.event in ("crashed", "paused", "stopped") and until >= begin
    ]
    return sorted(outages, key=lambda outage: outage.start)


def _stretches(changes: Iterable[_Change], end: int) -> Iterator[tuple[_Change, int]]:
    """Yield each change with the time of the next one of its node, or the end."""
    last: dict[str, _Change] = {}
    for change in changes:
        if (before := last.pop(change.node, None)) is not None:
            yield before, change.time
        last[change.node] = change
    for change in last.values():
        yield change, end


def _marks(story: Sequence[TimelineRecord], lane: dict[str, int], begin: int) -> list[Mark]:
    found: list[Mark] = []
    for record in story:
        if isinstance(record, TimelineDisk):
            name, end, offset = record.name, record.until, None
        elif isinstance(record, TimelineLog):
            name, end, offset = record.event, None, record.offset
        else:
            continue
        start = max(record.time, begin)
        detail = _detail(record.detail)
        found.append(Mark(start, end, lane[record.node], printable(name), offset, detail))
    return found


def _end(record: TimelineRecord) -> int:
    if isinstance(record, TimelineMessage):
        return record.time if record.arrived is None else record.arrived
    if isinstance(record, TimelineDisk):
        return record.time if record.until is None else record.until
    return record.time


def _detail(text: str, length_max: int = _DETAIL_MAX) -> str:
    shown = printable(text)
    return shown if len(shown) <= length_max else shown[: length_max - 1] + "…"
