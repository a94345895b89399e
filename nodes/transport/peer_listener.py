"""The quorum listener: requests of other nodes (and of Kafka's tools), one at a time each.

The next request of a connection is handed on only after the last was answered; linearizable reads
depend on it. A malformed or unserved request closes its connection and no other.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX
from splitbrain.nodes.transport.inbound import InboundConnection, PortListener
from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.framing import FrameReader

#: Longest request; the records of a fetch are in answers only.
REQUEST_BYTES_MAX: Final = 1024 * 1024
#: A connection whose other end went silent (cut off, powered off) is dropped after about this.
SILENT_S_MAX: Final = 10


#: To a call: a message, a frame that is sent as it is, or None to close the connection.
Reply = msgspec.Struct | bytes | None


class InboundCodec(Protocol):
    """Reads what comes in, and writes its answers."""

    def decode_request(self, payload: bytes) -> ReceivedCall | bytes:
        """Return a request, or the frame that answers; raises WireError."""
        ...

    def encode_answer(self, header: RequestHeader, answer: msgspec.Struct) -> bytes:
        """Frame of the answer to a request."""
        ...


class RequestOwner(Protocol):
    """Gets the requests."""

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        """Note that a peer asks; answered by ``PeerListener.answer``."""
        ...

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """Somebody asks what is no matter of the quorum; answered by ``PeerListener.reply``."""
        ...

    def disconnected(self, connection: ConnectionId) -> None:
        """Note that the connection is gone; an answer would be dropped."""
        ...


class _PeerConnection(InboundConnection):
    refusals = (WireError,)

    def __init__(self, listener: "PeerListener", connection_id: ConnectionId) -> None:
        super().__init__(listener.door, FrameReader(REQUEST_BYTES_MAX))
        self._listener = listener
        self._id = connection_id
        self._current: ReceivedCall | None = None
        self._current_bytes = 0

    @property
    def may_take(self) -> bool:
        return self._current is None

    @property
    def is_idle(self) -> bool:
        return self._current is None

    @property
    def under_way_bytes(self) -> int:
        return self._current_bytes

    def take(self, body: bytes) -> None:
        received = self._listener.codec.decode_request(body)
        if isinstance(received, bytes):
            self.write(received)
            return
        self._current, self._current_bytes = received, len(body)
        header, message = received.header, received.message
        correlation = CorrelationId(header.correlation_id)
        if isinstance(message, Request):
            self._listener.owner.requested(self._id, correlation, message)
        else:
            self._listener.owner.called(self._id, correlation, header, message)

    def opened(self, transport: asyncio.Transport) -> None:
        _watch_for_silence(transport)
        self._listener.connections[self._id] = self

    def gone(self) -> None:
        self._current, self._current_bytes = None, 0
        del self._listener.connections[self._id]
        self._listener.owner.disconnected(self._id)

    def answer(self, correlation: int, answer: Reply, *, to_request: bool) -> None:
        """Answer what is under way; anything else is a late answer and is dropped."""
        current = self._current
        if current is None or current.header.correlation_id != correlation:
            return
        if isinstance(current.message, Request) is not to_request:
            return
        if answer is None:
            self.close()
        elif isinstance(answer, bytes):
            self._finish(answer)
        else:
            self._finish(self._listener.codec.encode_answer(current.header, answer))

    def _finish(self, frame: bytes) -> None:
        """Note that the request under way is answered by this frame."""
        self._current, self._current_bytes = None, 0
        self.write(frame)


class PeerListener(PortListener):
    """The node's listener for its peers."""

    def __init__(
        self,
        codec: InboundCodec,
        owner: RequestOwner,
        refused: Callable[[str], None],
        connections_count_max: int = CONNECTIONS_COUNT_MAX,
    ) -> None:
        """Prepare, without listening yet; ``owner`` gets the requests."""
        super().__init__(refused, connections_count_max)
        self.codec = codec
        self.owner = owner
        self.connections: dict[ConnectionId, _PeerConnection] = {}
        self._connections_made_count = 0

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a request; dropped if the connection is gone."""
        inbound = self.connections.get(connection)
        if inbound is not None:
            inbound.answer(correlation, answer, to_request=True)

    def reply(self, connection: ConnectionId, correlation: CorrelationId, reply: Reply) -> None:
        """Answer a call, by a frame as it is or by closing; dropped if the connection is gone."""
        inbound = self.connections.get(connection)
        if inbound is not None:
            inbound.answer(correlation, reply, to_request=False)

    def new_connection(self) -> InboundConnection:
        """Return a connection of a peer."""
        self._connections_made_count += 1
        return _PeerConnection(self, ConnectionId(self._connections_made_count))


def _watch_for_silence(transport: asyncio.Transport) -> None:
    """Let the kernel drop the connection when its other end is gone without a word."""
    raw = transport.get_extra_info("socket")
    if raw is None:
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_S_MAX // 2)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, SILENT_S_MAX // 5))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S_MAX * 1_000)
