"""Everything that a node touches outside itself, as protocols: the machine, or a simulation of it.

A node is single-threaded and waits for nothing: it calls what is here, and is called back on its
one thread (of the event loop, or of the simulation). No protocol here may call back from within the
call that asked for it, sinks included: a completion comes in a later turn.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Microseconds, NodeId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.server.host.measurements import Measurements
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse

#: Something to be done later, in a turn of its own.
Action = Callable[[], None]
#: Work of the disk; blocks its own thread until it is done, and raises what went wrong.
DiskJob = Callable[[], None]
#: Called with None, or with what the job raised.
DiskJobDone = Callable[[Exception | None], None]
Level = Literal["info", "warning", "error"]


class TimerHandle(Protocol):
    """An action that was asked for and has not happened."""

    def cancel(self) -> None:
        """Let it not happen; harmless once it has."""


class Timers(Protocol):
    """The node's clocks, and what shall happen later."""

    def now(self) -> Microseconds:
        """Microseconds of a monotonic clock."""
        ...

    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970; may jump."""
        ...

    def call_soon(self, action: Action) -> None:
        """Do it in a turn of its own, after all that was asked for before."""

    def call_later(self, delay_us: int, action: Action) -> TimerHandle:
        """Do it once so many microseconds (not below 0) have passed; somewhat later is allowed."""
        ...


class DiskJobs(Protocol):
    """The one queue of work that waits for the disk.

    Jobs run one at a time in the order given; after one has failed no later one runs and no later
    one is reported.
    """

    def submit(self, job: DiskJob, done: DiskJobDone) -> None:
        """Run a job after all earlier ones; ``done`` is told in a later turn."""

    def stop(self) -> None:
        """Finish the jobs that were given, and take no more; returns when they are done."""


class PeerLinks(Protocol):
    """The node's own connections to its peers, one request at a time on each.

    The outcome of a request is told to the node, once: ``Node.answered`` or ``Node.failed``.
    """

    def send(
        self, peer: NodeId, correlation: CorrelationId, request: Request, timeout_ms: int
    ) -> None:
        """Send a request, connecting first where needed; the timeout covers both."""

    def abandon(self, peer: NodeId, correlation: CorrelationId) -> None:
        """Close the connection of a request that nobody waits for any more; nothing is told."""

    @property
    def is_idle(self) -> bool:
        """Whether no request to any peer waits for its answer."""
        ...

    def close(self) -> None:
        """Drop all connections; nothing is told any more. Safe to call twice."""


class PeerAnswers(Protocol):
    """The way back to the peers that asked by ``Node.requested``."""

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a request; dropped if the connection is gone."""


class StateEventSink(Protocol):
    """Gets what the node says of itself; field meanings as in ``contracts.state_event``."""

    def write(
        self,
        kind: str,
        epoch: int,
        *,
        role: str | None = None,
        leader: int | None = None,
        offset: int | None = None,
        base_offset: int | None = None,
        reason: str | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Take one event, at once; raises OSError where it cannot be written: the node ends."""

    def close(self) -> None:
        """No event will follow. Safe to call twice."""


class LogSink(Protocol):
    """Gets the node's own log; never raises."""

    def write(self, level: Level, message: str, **fields: Any) -> None:
        """Take one line; ``fields`` are facts, JSON-ready, by name."""


#: The way back to brokers and clients of Kafka's that asked by ``Node.called``; dropped if the
#: connection is gone. Bytes are a frame that is sent as it is; None closes the connection.
ReplyToCall = Callable[[ConnectionId, CorrelationId, msgspec.Struct | bytes | None], None]


#: Asks a voter what is no matter of the quorum; told once, in a later turn and within seconds, what
#: it answered, or None: then nobody knows whether it was heard. Several calls may be under way to
#: one voter, and none waits for another.
CallPeer = Callable[[NodeId, msgspec.Struct, Callable[[msgspec.Struct | None], None]], None]


#: APIs that a voter last said it serves, to any caller; None before.
VersionsOfPeer = Callable[[NodeId], ApiVersionsResponse | None]


def _nobody_calls(_: ConnectionId, __: CorrelationId, reply: msgspec.Struct | bytes | None) -> None:
    raise AssertionError(f"nobody asked for a {type(reply).__name__} here")


def _versions_unknown(_: NodeId) -> ApiVersionsResponse | None:
    return None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Surroundings of one life of a node."""

    timers: Timers
    disk_jobs: DiskJobs
    peer_links: PeerLinks
    peer_answers: PeerAnswers
    #: Only where such requests are heard.
    reply_to_call: ReplyToCall = _nobody_calls
    #: None where peers can be asked nothing but the quorum's requests.
    call_peer: CallPeer | None = None
    versions_of_peer: VersionsOfPeer = _versions_unknown
    state_events: StateEventSink
    log_lines: LogSink
    #: Gets what the node measures of itself.
    measurements: Measurements = Measurements()
    #: Told once that the node has ended: its exit code and why. Whoever runs it closes it later.
    ended: Callable[[int, str], None]
    #: Told of an exception that nobody expected, before ``ended``; it has the traceback.
    defect: Callable[[Exception], None]
