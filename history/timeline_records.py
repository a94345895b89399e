"""One line of ``timeline.jsonl``: what happened inside a simulated world, to be looked at; pure.

Only a simulated run writes the file, for only there is every message, flush and crash seen at an
exact moment. Nothing is judged from it: verdicts come from the history, the state events and the
logs. Lines are JSON objects told apart by ``kind`` and stand in the order of ``time``. A message
stands at the time when it was sent, so its writer holds it back until its fate is known.
Times are whole microseconds of virtual time since the run's start: the same zero as the
nanoseconds of ``history.jsonl``. Source: issue 5, item 9.
"""

from typing import Literal, TypeAlias

import msgspec

#: Virtual time since the run's start.
Microseconds = int

MessageFate = Literal["arrived", "lost", "refused"]
LifeEvent = Literal["started", "crashed", "paused", "resumed", "stopped"]
LogEvent = Literal["high-watermark", "append", "truncate"]


class TimelineMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="message", kw_only=True):
    """A question or an answer between two nodes, or between a client and a node."""

    #: When it was sent.
    time: Microseconds
    #: Sender; clients are ``c1``, ``c2``, ...
    node: str
    #: Receiver.
    peer: str
    #: Name, as in ``Vote``; an answer is called as its question with ``Answer`` behind.
    name: str
    #: When the receiver got it; None for one that never arrived or was under way at the end.
    arrived: Microseconds | None
    fate: MessageFate
    #: Content, in a few words.
    detail: str = ""
    #: It carries nothing new, as a heartbeat does, and is not shown at first. Where a question was
    #: answered its answer decides for both; what did not arrive is shown all the same.
    empty: bool = False


class TimelineState(msgspec.Struct, frozen=True, tag_field="kind", tag="state", kw_only=True):
    """A node's role, epoch or leader changed."""

    time: Microseconds
    node: str
    #: Lower case: ``leader``, ``candidate``, ``follower``, ...; empty until the node has one.
    role: str
    epoch: int
    #: Name of the leader that the node believes in.
    leader: str | None = None
    detail: str = ""


class TimelineLife(msgspec.Struct, frozen=True, tag_field="kind", tag="life", kw_only=True):
    """A node began or ceased to run."""

    time: Microseconds
    node: str
    event: LifeEvent
    detail: str = ""


class TimelineDisk(msgspec.Struct, frozen=True, tag_field="kind", tag="disk", kw_only=True):
    """A node's disk did something, or failed to."""

    time: Microseconds
    node: str
    #: ``flush``, ``persist``, ``truncate``, ``fsync failed``, ...
    name: str
    #: When it was done; None for what takes no time or never ended.
    until: Microseconds | None = None
    detail: str = ""


class TimelineLog(msgspec.Struct, frozen=True, tag_field="kind", tag="log", kw_only=True):
    """A node's log, or what it knows to be committed, changed."""

    time: Microseconds
    node: str
    event: LogEvent
    #: The high watermark, or the log's new end offset (exclusive).
    offset: int
    detail: str = ""


class TimelineFault(msgspec.Struct, frozen=True, tag_field="kind", tag="fault", kw_only=True):
    """A fault was in force."""

    time: Microseconds
    #: Registered fault kind: ``partition``, ``pause``.
    name: str
    #: Nodes hit; empty where the whole world is.
    nodes: tuple[str, ...] = ()
    #: When it was healed; None for one that lasted to the end.
    until: Microseconds | None = None
    detail: str = ""


class TimelineViolation(
    msgspec.Struct, frozen=True, tag_field="kind", tag="violation", kw_only=True
):
    """The system broke a promise, seen at that moment."""

    time: Microseconds
    #: Id of the invariant, or name of the checker.
    name: str
    #: Where it was seen; None where no single node is concerned.
    node: str | None = None
    #: Finding, in one sentence.
    detail: str = ""


TimelineRecord: TypeAlias = (
    TimelineMessage
    | TimelineState
    | TimelineLife
    | TimelineDisk
    | TimelineLog
    | TimelineFault
    | TimelineViolation
)
