"""The link to one peer as a machine of events and effects: one request at a time, never resent.

After a timeout, an abandoned request or anything malformed the connection is dropped and the next
request asks for a new one: an answer can never meet another request, and a connection that a
partition broke is replaced within one request timeout instead of waiting for TCP. Before the first
request of a connection the link asks which versions the peer serves, unless its codec knows. The
replica decides what is sent again.

All decisions are here. Events are the methods of ``LinkMachine``, effects those of the ``LinkPort``
that its driver has (``peer_link`` on an event loop, ``simulation.kraft.peer_link`` in a world): a
request costs two events, for which no object is made. Only ``connect``, always the last effect, may
be answered from within its call; of a connection that was dropped nothing is told any more.
"""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from splitbrain.nodes.quorum.identifiers import CorrelationId, NodeId
from splitbrain.nodes.wire.errors import NoCommonVersionError, WireError

#: Pause before the connection attempt that follows a failed one; doubles up to the second.
_BACK_OFF_US_MIN: Final = 10_000
_BACK_OFF_US_MAX: Final = 80_000
#: More doublings than lead to the limit.
_DOUBLINGS_MAX: Final = 10

#: Types of the owner's request, of its answer, and of frames.
Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Frame = TypeVar("Frame")
Asked_contra = TypeVar("Asked_contra", contravariant=True)
Answered_contra = TypeVar("Answered_contra", contravariant=True)
Answered_co = TypeVar("Answered_co", covariant=True)
Frame_contra = TypeVar("Frame_contra", contravariant=True)


class LinkVersions(Protocol[Asked_contra, Frame]):
    """Versions that the peer of one connection serves: ``PeerVersions``, for a link's requests."""

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered, or need not be asked."""
        ...

    def question(self) -> Frame:
        """Frame to send first."""
        ...

    def take(self, payload: Frame, /) -> None:
        """The peer's answer; raises WireError."""
        ...

    def version_for(self, request: Asked_contra, /) -> int | None:
        """Highest version in which the peer reads the request; raises NoCommonVersionError.

        None: the highest that we speak, of a peer that is known to be of our own release.
        """
        ...


class LinkCodec(Protocol[Asked_contra, Answered_co, Frame]):
    """Turns the requests of a link into frames, and frames into their answers."""

    def peer_versions(self) -> LinkVersions[Asked_contra, Frame]:
        """For a new connection."""
        ...

    def encode_request(
        self, correlation: CorrelationId, request: Asked_contra, version: int | None = None, /
    ) -> Frame:
        """Frame of a request."""
        ...

    def decode_answer(
        self,
        correlation: CorrelationId,
        request: Asked_contra,
        payload: Frame,
        version: int | None = None,
        /,
    ) -> Answered_co:
        """Return the answer to a request; raises WireError."""
        ...


class LinkOwner(Protocol[Answered_contra]):
    """Told once for each request what came of it, unless it was abandoned."""

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answered_contra) -> None:
        """Note that the peer answered."""
        ...

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """No answer will come; the connection is closed. Refused: nobody listens there."""
        ...


class LinkTimer(Protocol):
    """An action that was asked for and has not happened."""

    def cancel(self) -> None:
        """Let it not happen; harmless once it has."""
        ...


class LinkPort(Protocol[Frame_contra]):
    """The effects of a link: its clock and its one connection, as its driver carries them out."""

    def call_soon(self, action: Callable[[], None], /) -> None:
        """Do it in a turn of its own."""
        ...

    def call_later(self, delay_us: int, action: Callable[[], None], /) -> LinkTimer:
        """Do it once so many microseconds have passed."""
        ...

    def connect(self, pause_us: int, /) -> None:
        """Wait so long, maybe not at all, tell ``attempted``, and open a connection.

        Then tell ``accepted`` and ``connected``, or ``lost``. ``connected`` may come before
        ``accepted``: what is written meanwhile waits in the driver.
        """
        ...

    def write(self, frame: Frame_contra, /) -> None:
        """Send on the connection; what comes on it is ``received``, its end ``lost``."""
        ...

    def drop(self) -> None:
        """Close the connection at once, or give up the attempt at one, if there is any."""
        ...


class _Outstanding(msgspec.Struct, Generic[Asked], eq=False):
    correlation: CorrelationId
    request: Asked
    timeout_ms: int
    timer: LinkTimer
    #: In which it went out; None before, or in the highest.
    version: int | None = None


class LinkMachine(Generic[Asked, Answered, Frame]):
    """The requests to one peer, and the one connection on which they go."""

    def __init__(
        self,
        peer: NodeId,
        codec: LinkCodec[Asked, Answered, Frame],
        port: LinkPort[Frame],
        owner: LinkOwner[Answered],
    ) -> None:
        """A link without a connection; ``owner`` is told what came of requests."""
        self._peer = peer
        self._codec = codec
        self._port = port
        self._owner = owner
        self._outstanding: _Outstanding[Asked] | None = None
        #: Frames can be written.
        self._is_connected = False
        #: Of the present connection.
        self._versions = codec.peer_versions()
        self._failed_attempts_count = 0
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for an answer."""
        return self._outstanding is None

    # Calls of the owner.

    def send(self, correlation: CorrelationId, request: Asked, timeout_ms: int) -> None:
        """Send a request, connecting first where needed; the timeout covers both."""
        if self._outstanding is not None:
            raise RuntimeError(f"two requests at a time to node {self._peer}")
        timer = self._port.call_later(timeout_ms * 1_000, self._time_over)
        self._outstanding = _Outstanding(correlation, request, timeout_ms, timer)
        if self._is_connected:
            self._write()
        elif not self._is_closed:
            self._port.connect(back_off_us(self._failed_attempts_count, timeout_ms))

    def abandon(self, correlation: CorrelationId) -> None:
        """Close the connection of a request that nobody waits for any more."""
        if self._outstanding is not None and self._outstanding.correlation == correlation:
            self._drop()

    def close(self) -> None:
        """Drop the connection; nothing is reported any more."""
        self._is_closed = True
        self._drop()

    # Events of the connection.

    def attempted(self) -> None:
        """Note that the pause is over; an attempt to connect begins."""
        self._failed_attempts_count += 1

    def accepted(self) -> None:
        """The peer's machine has taken the connection: the failures before it are forgiven."""
        self._failed_attempts_count = 0

    def connected(self) -> None:
        """Frames can be written; what waits for that goes out."""
        self._is_connected = True
        self._versions = self._codec.peer_versions()
        if self._versions.is_known:
            self._write()
        else:
            self._port.write(self._versions.question())

    def lost(self, reason: str, *, refused: bool = False) -> None:
        """The connection is gone, or there will be none. Refused: nobody listens there."""
        outstanding = self._drop()
        if outstanding is not None:
            self._owner.failed(self._peer, outstanding.correlation, reason, refused=refused)

    def received(self, payload: Frame) -> None:
        """Note that a whole frame came on the connection."""
        outstanding = self._outstanding
        if outstanding is None:
            self._drop()  # the peer answered what nobody asked
            return
        try:
            if not self._versions.is_known:
                self._take_versions(payload)
                return
            answer = self._codec.decode_answer(
                outstanding.correlation, outstanding.request, payload, outstanding.version
            )
        except NoCommonVersionError as error:
            self.lost(str(error))
            return
        except WireError as error:
            self.lost(f"unreadable answer: {error}")
            return
        outstanding.timer.cancel()
        self._outstanding = None
        self._owner.answered(self._peer, outstanding.correlation, answer)

    def _time_over(self) -> None:
        outstanding = self._outstanding
        assert outstanding is not None, "its timer is cancelled with it"
        self.lost(f"no answer within {outstanding.timeout_ms} ms")

    def _take_versions(self, payload: Frame) -> None:
        """The peer says what it serves; what waits for that goes out. Raises WireError."""
        self._versions.take(payload)
        if self._versions.is_known:
            self._write()
        else:
            self._port.write(self._versions.question())

    def _write(self) -> None:
        outstanding = self._outstanding
        assert outstanding is not None, "a connection is asked for by a request"
        try:
            outstanding.version = self._versions.version_for(outstanding.request)
        except NoCommonVersionError as error:
            # Not at once: the owner may be in the midst of sending.
            reason = str(error)
            self._port.call_soon(lambda: self._refuse(outstanding, reason))
            return
        self._port.write(
            self._codec.encode_request(
                outstanding.correlation, outstanding.request, outstanding.version
            )
        )

    def _refuse(self, outstanding: _Outstanding[Asked], reason: str) -> None:
        """Fail a request that the peer cannot read, unless it was given up meanwhile."""
        if outstanding is self._outstanding:
            self.lost(reason)

    def _drop(self) -> _Outstanding[Asked] | None:
        """Forget connection and request; the request, for its report."""
        outstanding, self._outstanding = self._outstanding, None
        if outstanding is not None:
            outstanding.timer.cancel()
        self._is_connected = False
        self._port.drop()
        return outstanding


def back_off_us(failed_attempts_count: int, timeout_ms: int) -> int:
    """Microseconds before the next attempt, after so many failed in a row; 0 where none has.

    Well below the timeout of the request that needs the connection: a pause above it would mean
    that nothing is ever tried.
    """
    if not failed_attempts_count:
        return 0
    doubled_us = _BACK_OFF_US_MIN << min(failed_attempts_count - 1, _DOUBLINGS_MAX)
    return min(doubled_us, _BACK_OFF_US_MAX, timeout_ms * 500)
