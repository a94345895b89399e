"""Lines of ``timeline.jsonl``: events inside a simulated world, for people; pure.

Nothing is judged from it. Lines are JSON objects told apart by ``kind``, in the order of ``time``:
whole microseconds of virtual time since the run's start, the zero of ``history.jsonl``. A message
stands at the time when it was sent, so its writer holds it back until its fate is known.
"""

from typing import Literal, TypeAlias

import msgspec

from splitbrain.contracts.scenario import Violation

#: Virtual time since the run's start.
Microseconds = int

MessageFate = Literal["arrived", "lost", "refused"]
LifeEvent = Literal["started", "crashed", "paused", "resumed", "stopped"]
LogEvent = Literal["high-watermark", "append", "truncate"]


class TimelineMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="message", kw_only=True):
    """Question or answer between two nodes, or between a client and a node."""

    #: When sent.
    time: Microseconds
    #: Sender; clients are ``c1``, ``c2``, ...
    node: str
    peer: str
    #: Type, such as ``Vote``; an answer has the name of its question with ``Answer`` behind.
    name: str
    #: When received; None if it never arrived or was under way at the end.
    arrived: Microseconds | None
    fate: MessageFate
    #: Content in a few words.
    detail: str = ""
    #: Whether it carries nothing new, as a heartbeat, and is not shown at first. The answer decides
    #: for its question too; messages that did not arrive are shown all the same.
    empty: bool = False


class TimelineState(msgspec.Struct, frozen=True, tag_field="kind", tag="state", kw_only=True):
    """Change of a node's role, epoch or leader."""

    time: Microseconds
    node: str
    #: Lower case: ``leader``, ``candidate``, ``follower``, ...; empty until the node has one.
    role: str
    epoch: int
    #: Leader that the node believes in.
    leader: str | None = None
    detail: str = ""


class TimelineLife(msgspec.Struct, frozen=True, tag_field="kind", tag="life", kw_only=True):
    """Beginning or end of a node's life."""

    time: Microseconds
    node: str
    event: LifeEvent
    detail: str = ""


class TimelineDisk(msgspec.Struct, frozen=True, tag_field="kind", tag="disk", kw_only=True):
    """Work of a node's disk, or its failure."""

    time: Microseconds
    node: str
    #: ``flush``, ``persist``, ``truncate``, ``fsync failed``, ...
    name: str
    #: When done; None if it takes no time or never ended.
    until: Microseconds | None = None
    detail: str = ""


class TimelineLog(msgspec.Struct, frozen=True, tag_field="kind", tag="log", kw_only=True):
    """Change of a node's log, or of its commit position."""

    time: Microseconds
    node: str
    event: LogEvent
    #: The high watermark, or the log's new end offset (exclusive).
    offset: int
    detail: str = ""


class TimelineFault(msgspec.Struct, frozen=True, tag_field="kind", tag="fault", kw_only=True):
    """Fault in force."""

    time: Microseconds
    #: Registered fault kind: ``partition``, ``pause``.
    name: str
    #: Nodes hit; empty where the whole world is.
    nodes: tuple[str, ...] = ()
    #: When healed; None if it lasted to the end.
    until: Microseconds | None = None
    detail: str = ""


class TimelineViolation(
    msgspec.Struct, frozen=True, tag_field="kind", tag="violation", kw_only=True
):
    """Broken promise of the system, at the moment when it was seen."""

    time: Microseconds
    #: Id of the invariant, or name of the checker.
    name: str
    #: Node where it was seen; None if no single node is concerned.
    node: str | None = None
    #: One sentence.
    detail: str = ""

    @classmethod
    def of(cls, violation: Violation) -> "TimelineViolation":
        """Return the line of an invariant that did not hold."""
        return cls(
            time=violation.time_us,
            name=violation.invariant,
            node=violation.node,
            detail=violation.problem,
        )


TimelineRecord: TypeAlias = (
    TimelineMessage
    | TimelineState
    | TimelineLife
    | TimelineDisk
    | TimelineLog
    | TimelineFault
    | TimelineViolation
)
