"""Answers Prometheus: ``GET /metrics`` over HTTP/1.1, one answer to each connection.

Whoever asks is on this machine (the listener's address says so) and gets text; whatever else is
asked is refused in one line. Must never keep a connection, nor read more than a request's head.
"""

import asyncio
from collections.abc import Callable
from typing import Final

#: Where the figures are.
PATH: Final = "/metrics"
#: A longer head is refused.
HEAD_BYTES_MAX: Final = 8_192
#: Whoever has not asked by then is hung up on.
HEAD_TIMEOUT_S: Final = 5.0
_HEAD_END: Final = b"\r\n\r\n"


class MetricsListener:
    """The node's listener for who collects figures."""

    def __init__(self, text: Callable[[], bytes], content_type: str) -> None:
        """Prepare, without listening yet; ``text`` makes the answer's body."""
        self._text = text
        self._content_type = content_type
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is None:
            return
        self._server.close()
        for writer in tuple(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = await asyncio.wait_for(reader.readuntil(_HEAD_END), HEAD_TIMEOUT_S)
            writer.write(self._answer(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass
        except asyncio.LimitOverrunError:
            writer.write(_answer("431 Request Header Fields Too Large", b"too long\n"))
        finally:
            self._open.discard(writer)
            writer.close()

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
