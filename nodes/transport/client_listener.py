"""Listens for clients and hands their requests to the node.

Must never decide an outcome: it frames, and closes connections that do not keep to the protocol.
A connection with many unanswered requests is not read until some are answered; what connections may
take of a node is bounded (``nodes.transport.doorkeeper``).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from splitbrain.nodes.transport.client_protocol import (
    ClientAnswer,
    FrameSplitter,
    Hello,
    ProtocolError,
    RequestHandler,
    decode_request,
    encode_frame,
)
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX, Doorkeeper
from splitbrain.nodes.transport.inbound import InboundConnection

#: Unanswered requests of one connection above which it is not read.
UNANSWERED_COUNT_MAX: Final = 1_024
#: The same for their bytes.
UNANSWERED_BYTES_MAX: Final = 4 * 1024 * 1024
#: Turns of the loop in which a connection that was accepted just before is made, aborted and lost;
#: a loop that ended earlier would leave its socket open.
_TURNS_TO_CLOSE: Final = 3


class _ClientConnection(InboundConnection):
    refusals = (ProtocolError,)

    def __init__(self, listener: "ClientListener") -> None:
        super().__init__(listener.door, FrameSplitter())
        self._listener = listener
        self._unanswered_count = 0
        self._unanswered_bytes = 0

    @property
    def may_take(self) -> bool:
        return (
            self._unanswered_count < UNANSWERED_COUNT_MAX
            and self._unanswered_bytes < UNANSWERED_BYTES_MAX
        )

    @property
    def is_idle(self) -> bool:
        return not self._unanswered_count

    @property
    def under_way_bytes(self) -> int:
        return self._unanswered_bytes

    def take(self, body: bytes) -> None:
        request, size_bytes = decode_request(body), len(body)
        self._unanswered_count += 1
        self._unanswered_bytes += size_bytes
        self._listener.handler(request, lambda answer: self._reply(answer, size_bytes))

    def opened(self, transport: asyncio.Transport) -> None:
        transport.write(encode_frame(self._listener.hello))

    def _reply(self, answer: ClientAnswer, size_bytes: int) -> None:
        self._unanswered_count -= 1
        self._unanswered_bytes -= size_bytes
        try:
            frame = encode_frame(answer)
        except ProtocolError as error:
            frame = encode_frame(
                ClientAnswer(answer.id, "unknown", definite=False, reason=f"answer lost: {error}")
            )
        self.write(frame)


class ClientListener:
    """The node's listener for clients."""

    def __init__(
        self,
        hello: Hello,
        handler: RequestHandler,
        refused: Callable[[str], None],
        connections_count_max: int = CONNECTIONS_COUNT_MAX,
    ) -> None:
        """Prepare, without listening yet.

        Args:
            hello: greeting sent on every connection.
            handler: gets each request.
            refused: told in words why a connection was dropped.
            connections_count_max: how many there may be at a time.
        """
        self.hello = hello
        self.handler = handler
        self.door = Doorkeeper(refused, connections_count_max=connections_count_max)
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _ClientConnection(self), host, port)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
        self.door.close()
        if self._server is not None:
            await self._server.wait_closed()
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)
