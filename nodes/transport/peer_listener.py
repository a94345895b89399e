"""The quorum listener: requests of other nodes (and of Kafka's tools), one at a time each.

The next request of a connection is handed on only after the last was answered; linearizable reads
depend on it. What is malformed or not served closes its connection and no other. Must never look
into a request: it decodes, and remembers what is needed to answer.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

import msgspec

from nodes.quorum.identifiers import ConnectionId, CorrelationId
from nodes.quorum.messages import Answer, Request
from nodes.transport.kafka_codec import Inbound, InboundCall
from nodes.wire.apis import RequestHeader
from nodes.wire.errors import WireError
from nodes.wire.framing import FrameReader

#: Longest request; the records of a fetch are in answers only.
REQUEST_BYTES_MAX: Final = 1024 * 1024
#: Requests that may wait on one connection before it is not read any more.
WAITING_COUNT_MAX: Final = 64
#: A connection whose other end went silent (cut off, powered off) is dropped after about this.
SILENT_S_MAX: Final = 10


#: To a call: a message, a frame that is sent as it is, or None to close the connection.
Reply = msgspec.Struct | bytes | None


class InboundCodec(Protocol):
    """Reads what comes in, and writes its answers."""

    def decode_request(self, payload: bytes) -> Inbound | InboundCall | bytes:
        """A request, a call, or the frame that answers; raises WireError."""
        ...

    def encode_answer(self, inbound: Inbound, answer: Answer) -> bytes:
        """Frame of the answer to a request."""
        ...

    def encode_reply(self, inbound: InboundCall, reply: msgspec.Struct) -> bytes:
        """Frame of the answer to a call."""
        ...


class RequestOwner(Protocol):
    """Gets the requests."""

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        """A peer asks; answered by ``PeerListener.answer``."""
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
        """The connection is gone; an answer would be dropped."""
        ...


class _InboundConnection(asyncio.Protocol):
    def __init__(self, listener: "PeerListener", connection_id: ConnectionId) -> None:
        self._listener = listener
        self._id = connection_id
        self._reader = FrameReader(REQUEST_BYTES_MAX)
        self._waiting: deque[bytes] = deque()
        self._current: Inbound | InboundCall | None = None
        self._transport: asyncio.Transport | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, since uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        if self._listener.is_closed:  # accepted just before
            self._transport.abort()
            return
        _watch_for_silence(self._transport)
        self._listener.connections[self._id] = self

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()

    def data_received(self, data: bytes) -> None:
        try:
            self._waiting.extend(self._reader.feed(data))
            self._take_next()
        except WireError as error:
            self._listener.refused(str(error))
            self.close()
            return
        if len(self._waiting) > WAITING_COUNT_MAX and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def answer(self, correlation: int, answer: Answer) -> None:
        """Answer the request under way; anything else is a late answer and is dropped."""
        inbound = self._current
        if isinstance(inbound, Inbound) and inbound.header.correlation_id == correlation:
            self._finish(self._listener.codec.encode_answer(inbound, answer))

    def reply(self, correlation: int, reply: Reply) -> None:
        """Answer the call under way; anything else is a late answer and is dropped."""
        inbound = self._current
        if not isinstance(inbound, InboundCall) or inbound.header.correlation_id != correlation:
            return
        if reply is None:
            self.close()
        elif isinstance(reply, bytes):
            self._finish(reply)
        else:
            self._finish(self._listener.codec.encode_reply(inbound, reply))

    def _finish(self, frame: bytes) -> None:
        """The request under way is answered by this frame."""
        self._current = None
        self._write(frame)
        try:
            self._take_next()
        except WireError as error:
            self._listener.refused(str(error))
            self.close()

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()
        self._forget()

    def _take_next(self) -> None:
        codec = self._listener.codec
        while self._current is None and self._waiting and self._transport is not None:
            inbound = codec.decode_request(self._waiting.popleft())
            if isinstance(inbound, bytes):
                self._write(inbound)
                continue
            self._current = inbound
            correlation = CorrelationId(inbound.header.correlation_id)
            owner = self._listener.owner
            if isinstance(inbound, Inbound):
                owner.requested(self._id, correlation, inbound.request)
            else:
                owner.called(self._id, correlation, inbound.header, inbound.message)
        if self._paused and not self._waiting and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def _forget(self) -> None:
        if self._listener.connections.pop(self._id, None) is not None:
            self._transport = None
            self._waiting.clear()
            self._listener.owner.disconnected(self._id)


class PeerListener:
    """The node's listener for its peers."""

    def __init__(
        self, codec: InboundCodec, owner: RequestOwner, refused: Callable[[str], None]
    ) -> None:
        """Prepare, without listening yet.

        Args:
            codec: Kafka's frames to messages and back.
            owner: gets the requests.
            refused: told in words when a connection broke the protocol.
        """
        self.codec = codec
        self.owner = owner
        self.refused = refused
        self.connections: dict[ConnectionId, _InboundConnection] = {}
        #: Set once no connection is taken any more.
        self.is_closed = False
        self._server: asyncio.Server | None = None
        self._connections_made_count = 0

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        loop = asyncio.get_running_loop()
        self.is_closed = False
        self._server = await loop.create_server(self._connection, host, port)
        return self._server.sockets[0].getsockname()[1]

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a request; dropped if the connection is gone."""
        inbound = self.connections.get(connection)
        if inbound is not None:
            inbound.answer(correlation, answer)

    def reply(self, connection: ConnectionId, correlation: CorrelationId, reply: Reply) -> None:
        """Answer a call, by a frame as it is or by closing; dropped if the connection is gone."""
        inbound = self.connections.get(connection)
        if inbound is not None:
            inbound.reply(correlation, reply)

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        self.is_closed = True
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections.values()):
            connection.close()
        if self._server is not None:
            await self._server.wait_closed()

    def _connection(self) -> _InboundConnection:
        self._connections_made_count += 1
        return _InboundConnection(self, ConnectionId(self._connections_made_count))


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
