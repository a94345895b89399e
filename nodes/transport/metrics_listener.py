"""Answers Prometheus: ``GET /metrics`` over HTTP/1.1, one answer to each connection.

Whoever asks is on this machine (the listener's address says so) and gets text; whatever else is
asked is refused in one line. A connection lasts seconds, and the oldest makes room where there are
too many.
"""

import asyncio
from collections.abc import Callable
from typing import Final

#: Where the figures are.
PATH: Final = "/metrics"
#: A longer head is refused.
HEAD_BYTES_MAX: Final = 8_192
#: Whoever has not asked by then, or has not read its answer, is hung up on.
EXCHANGE_TIMEOUT_S: Final = 5.0
#: Connections at a time.
CONNECTIONS_COUNT_MAX: Final = 64
_HEAD_END: Final = b"\r\n\r\n"


class MetricsListener:
    """The node's listener for who collects figures."""

    def __init__(self, text: Callable[[], bytes], content_type: str) -> None:
        """Prepare, without listening yet; ``text`` makes the answer's body."""
        self._text = text
        self._content_type = content_type
        self._server: asyncio.Server | None = None
        #: Oldest first.
        self.open: dict[asyncio.StreamWriter, None] = {}

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is None:
            return
        self._server.close()
        for writer in tuple(self.open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.open) >= CONNECTIONS_COUNT_MAX:
            oldest = next(iter(self.open))
            del self.open[oldest]
            oldest.transport.abort()
        self.open[writer] = None
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT_S):
                await self._exchange(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError):
            writer.transport.abort()
        finally:
            self.open.pop(writer, None)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = self._answer(await reader.readuntil(_HEAD_END))
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            answer = _answer("431 Request Header Fields Too Large", b"too long\n")
        # Whoever asked may be gone by now; on uvloop it would be a defect to write to it then.
        if not writer.is_closing():
            writer.write(answer)

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != PATH.encode():
            return _answer("404 Not Found", b"the figures are at /metrics\n")
        if method != b"GET":
            return _answer("405 Method Not Allowed", b"only GET is served\n")
        return _answer("200 OK", self._text(), self._content_type)


def _answer(status: str, body: bytes, content_type: str = "text/plain; charset=utf-8") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
