"""A node's own connection to one peer: one request at a time, closed when it is not answered.

After a timeout, an abandoned request or anything malformed the connection is closed and the next
request opens a new one: an answer can never meet another request, and a connection that a
partition broke is replaced within one request timeout instead of waiting for TCP. On a new
connection the link asks first which versions the peer serves. Must never resend by itself: the
replica decides.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, cast

from nodes.quorum.identifiers import CorrelationId, NodeId
from nodes.quorum.persistent import Voter
from nodes.transport.back_off import back_off_us
from nodes.wire.errors import NoCommonVersionError, WireError
from nodes.wire.framing import FrameReader

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Asked_contra = TypeVar("Asked_contra", contravariant=True)
Answered_contra = TypeVar("Answered_contra", contravariant=True)
Answered_co = TypeVar("Answered_co", covariant=True)


class LinkVersions(Protocol[Asked_contra]):
    """What the peer of one connection serves: ``PeerVersions``, for the requests of a link."""

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        ...

    def question(self) -> bytes:
        """Frame to send first."""
        ...

    def take(self, payload: bytes) -> None:
        """The peer's answer; raises WireError."""
        ...

    def version_for(self, request: Asked_contra, /) -> int:
        """Highest version in which the peer reads the request; raises NoCommonVersionError."""
        ...


class LinkCodec(Protocol[Asked_contra, Answered_co]):
    """Turns the requests of a link into frames, and frames into their answers."""

    def peer_versions(self) -> LinkVersions[Asked_contra]:
        """For a new connection."""
        ...

    def encode_request(
        self, correlation: int, request: Asked_contra, version: int | None = None
    ) -> bytes:
        """Frame of a request."""
        ...

    def decode_answer(
        self, correlation: int, request: Asked_contra, payload: bytes, version: int | None = None
    ) -> Answered_co:
        """The answer to a request; raises WireError."""
        ...


class LinkOwner(Protocol[Answered_contra]):
    """Told once for each request what came of it, unless it was abandoned."""

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answered_contra) -> None:
        """The peer answered."""
        ...

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """No answer will come; the connection is closed. Refused: nobody listens there."""
        ...


class _Outstanding(Generic[Asked]):
    def __init__(
        self, correlation: CorrelationId, request: Asked, timer: asyncio.TimerHandle
    ) -> None:
        self.correlation = correlation
        self.request = request
        self.timer = timer
        #: In which it went out; None before.
        self.version: int | None = None


class _Connection(asyncio.Protocol):
    """One TCP connection; reports to its link and forgets it when it is dropped."""

    def __init__(self, received: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self._received: Callable[[bytes], None] | None = received
        self._lost: Callable[[str], None] | None = lost
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, since uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self._lose(str(error))
            return
        for payload in frames:
            if self._received is not None:
                self._received(payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(f"connection lost: {exc}" if exc is not None else "the peer closed it")

    def write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)

    def drop(self) -> None:
        """Close at once; nothing is reported any more."""
        self._received = None
        self._lost = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _lose(self, reason: str) -> None:
        lost = self._lost
        self.drop()
        if lost is not None:
            lost(reason)


class PeerLink(Generic[Asked, Answered]):
    """Requests to one peer."""

    def __init__(
        self, peer: Voter, codec: LinkCodec[Asked, Answered], owner: LinkOwner[Answered]
    ) -> None:
        self._peer = peer
        self._codec = codec
        self._owner = owner
        self._outstanding: _Outstanding[Asked] | None = None
        self._connection: _Connection | None = None
        #: Of the present connection.
        self._versions = codec.peer_versions()
        self._connecting: asyncio.Task[None] | None = None
        self._failed_attempts_count = 0
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for an answer."""
        return self._outstanding is None

    def send(self, correlation: CorrelationId, request: Asked, timeout_ms: int) -> None:
        """Send a request, connecting first where needed; the timeout covers both."""
        if self._outstanding is not None:
            raise RuntimeError(f"two requests at a time to node {self._peer.node_id}")
        timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1_000, self._fail, f"no answer within {timeout_ms} ms"
        )
        self._outstanding = _Outstanding(correlation, request, timer)
        if self._connection is not None:
            self._write()
        elif not self._closed:
            self._connecting = asyncio.create_task(self._connect(timeout_ms))

    def abandon(self, correlation: CorrelationId) -> None:
        """Close the connection of a request that nobody waits for any more."""
        if self._outstanding is not None and self._outstanding.correlation == correlation:
            self._drop()

    def close(self) -> None:
        """Drop the connection; nothing is reported any more."""
        self._closed = True
        self._drop()

    def _drop(self) -> _Outstanding[Asked] | None:
        """Forget connection and request; the request, for its report."""
        outstanding, self._outstanding = self._outstanding, None
        if outstanding is not None:
            outstanding.timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._connection is not None:
            self._connection.drop()
            self._connection = None
        return outstanding

    def _fail(self, reason: str, *, refused: bool = False) -> None:
        outstanding = self._drop()
        if outstanding is not None:
            self._owner.failed(self._peer.node_id, outstanding.correlation, reason, refused=refused)

    async def _connect(self, timeout_ms: int) -> None:
        """Open the connection and send what waits for it; ended by cancellation at a timeout."""
        loop = asyncio.get_running_loop()
        connection = _Connection(self._receive, self._fail)
        try:
            if pause_us := back_off_us(self._failed_attempts_count, timeout_ms):
                await asyncio.sleep(pause_us / 1_000_000)
            self._failed_attempts_count += 1
            await loop.create_connection(lambda: connection, self._peer.host, self._peer.port)
        except asyncio.CancelledError:
            connection.drop()  # made already, maybe: its end must not fail the next request
            raise
        except OSError as error:
            self._connecting = None
            self._fail(
                f"cannot connect to {self._peer.host}:{self._peer.port}: {error}",
                refused=isinstance(error, ConnectionRefusedError),
            )
            return
        self._connecting = None
        self._failed_attempts_count = 0
        self._connection = connection
        self._versions = self._codec.peer_versions()
        connection.write(self._versions.question())

    def _write(self) -> None:
        outstanding, connection = self._outstanding, self._connection
        if outstanding is None or connection is None:
            return
        try:
            outstanding.version = self._versions.version_for(outstanding.request)
        except NoCommonVersionError as error:
            # Not at once: the owner may be in the midst of sending.
            asyncio.get_running_loop().call_soon(self._refuse, outstanding, str(error))
            return
        connection.write(
            self._codec.encode_request(
                outstanding.correlation, outstanding.request, outstanding.version
            )
        )

    def _refuse(self, outstanding: _Outstanding[Asked], reason: str) -> None:
        """Fail a request that the peer cannot read, unless it was given up meanwhile."""
        if outstanding is self._outstanding:
            self._fail(reason)

    def _receive(self, payload: bytes) -> None:
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
            self._fail(str(error))
            return
        except WireError as error:
            self._fail(f"unreadable answer: {error}")
            return
        outstanding.timer.cancel()
        self._outstanding = None
        self._owner.answered(self._peer.node_id, outstanding.correlation, answer)

    def _take_versions(self, payload: bytes) -> None:
        """The peer says what it serves; what waits for that goes out. Raises WireError."""
        self._versions.take(payload)
        if self._versions.is_known:
            self._write()
        elif self._connection is not None:
            self._connection.write(self._versions.question())
