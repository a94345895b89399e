"""Listens for clients and hands their requests to the node.

Connections that do not keep to the protocol are closed. One with many unanswered requests is not
read until some are answered.
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
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX
from splitbrain.nodes.transport.inbound import InboundConnection, PortListener

#: Unanswered requests of one connection above which it is not read.
UNANSWERED_COUNT_MAX: Final = 1_024
#: The same for their bytes.
UNANSWERED_BYTES_MAX: Final = 4 * 1024 * 1024


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


class ClientListener(PortListener):
    """The node's listener for clients."""

    def __init__(
        self,
        hello: Hello,
        handler: RequestHandler,
        refused: Callable[[str], None],
        connections_count_max: int = CONNECTIONS_COUNT_MAX,
    ) -> None:
        """Prepare, without listening yet; ``hello`` greets, ``handler`` gets each request."""
        super().__init__(refused, connections_count_max)
        self.hello = hello
        self.handler = handler

    def new_connection(self) -> InboundConnection:
        """Return a connection of a client."""
        return _ClientConnection(self)
