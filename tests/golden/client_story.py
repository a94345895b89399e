"""A story of the quorum's client: its operations, and how each node meets it. Data alone."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import AnswerOutcome

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
LEADING = Route("leader", NODES[0])
PINNED = Route("pinned", NODES[0])
WRITE = Operation("write", "k", 1)
READ = Operation("read", "k", None)

#: How a connection begins: ``refused``: nobody listens; ``lost``: it breaks before the greeting;
#: ``silent``: it is accepted and nobody greets; ``unaccepted``: not even that; ``garbage`` and
#: ``stranger``: what comes is no greeting, or one of another version.
Opening = Literal["greets", "refused", "lost", "silent", "unaccepted", "garbage", "stranger"]


class Reply(msgspec.Struct, frozen=True):
    """Course of one request."""

    outcome: AnswerOutcome | Literal["lost", "never", "garbage"] = "ok"
    after_ms: float = 2.2
    #: Of the node; None: it knows of none.
    leader: int | None = None
    definite: bool = True
    result: object = True
    #: An answer to a request that was never asked comes before it.
    stray: bool = False
    #: The connection breaks so much later.
    then_lost_ms: float | None = None


class Meeting(msgspec.Struct, frozen=True):
    """How a node meets one connection."""

    opening: Opening = "greets"
    after_ms: float = 1.1
    #: To its requests, in turn; the last one to all that follow.
    replies: tuple[Reply, ...] = (Reply(),)


class Call(msgspec.Struct, frozen=True):
    """One operation."""

    operation: Operation = WRITE
    timeout_ms: float = 1_000.55
    #: Between the end of the one before and this.
    pause_ms: float = 0.0
    #: Since its beginning: the client is closed, the caller gives it up.
    closed_ms: float | None = None
    given_up_ms: float | None = None


class ClientStory(msgspec.Struct, frozen=True, kw_only=True):
    """One client and the nodes that it may ask."""

    name: str
    route: Route = LEADING
    calls: tuple[Call, ...] = (Call(),)
    #: The connections to a node, in turn; the last one is how all that follow are met.
    meetings: Mapping[NodeName, tuple[Meeting, ...]]
