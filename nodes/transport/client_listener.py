"""Listens for clients and hands their requests to the node.

Must never decide an outcome: it frames, and closes connections that do not keep to the protocol.
A connection with many unanswered requests is not read until some are answered, so that one client
cannot fill the node's memory.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from nodes.transport.client_protocol import (
    ClientAnswer,
    FrameSplitter,
    Hello,
    ProtocolError,
    RequestHandler,
    decode_request,
    encode_frame,
)

#: Unanswered requests of one connection above which it is not read.
UNANSWERED_COUNT_MAX: Final = 1_024
#: Turns of the loop in which a connection that was accepted just before is made, aborted and lost;
#: a loop that ended earlier would leave its socket open.
_TURNS_TO_CLOSE: Final = 3


class _ClientConnection(asyncio.Protocol):
    def __init__(self, listener: "ClientListener") -> None:
        self._listener = listener
        self._splitter = FrameSplitter()
        self._transport: asyncio.Transport | None = None
        self._unanswered_count = 0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, since uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        if self._listener.is_closed:  # accepted just before
            self._transport.abort()
            return
        self._listener.connections.add(self)
        self._transport.write(encode_frame(self._listener.hello))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._listener.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._splitter.feed(data):
                request = decode_request(body)
                self._unanswered_count += 1
                self._listener.handler(request, self._reply)
        except ProtocolError as error:
            self._listener.refused(str(error))
            self.close()
            return
        if self._unanswered_count >= UNANSWERED_COUNT_MAX and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def close(self) -> None:
        """Drop the connection; later replies go nowhere."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _reply(self, answer: ClientAnswer) -> None:
        self._unanswered_count -= 1
        if self._transport is None or self._transport.is_closing():
            return
        try:
            frame = encode_frame(answer)
        except ProtocolError as error:
            frame = encode_frame(
                ClientAnswer(answer.id, "unknown", definite=False, reason=f"answer lost: {error}")
            )
        self._transport.write(frame)
        if self._paused and self._unanswered_count < UNANSWERED_COUNT_MAX // 2:
            self._paused = False
            self._transport.resume_reading()


class ClientListener:
    """The node's listener for clients."""

    def __init__(
        self, hello: Hello, handler: RequestHandler, refused: Callable[[str], None]
    ) -> None:
        """Prepare, without listening yet.

        Args:
            hello: greeting sent on every connection.
            handler: gets each request.
            refused: told in words when a connection broke the protocol.
        """
        self.hello = hello
        self.handler = handler
        self.refused = refused
        self.connections: set[_ClientConnection] = set()
        #: Set once no connection is taken any more.
        self.is_closed = False
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _ClientConnection(self), host, port)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        self.is_closed = True
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.close()
        if self._server is not None:
            await self._server.wait_closed()
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)
