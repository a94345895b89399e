"""Carries clients' connections from this machine's loopback into a node's network.

The listening sockets were made outside: a socket stays in the network namespace that it was made
in. A relay adds nothing and keeps nothing; when one side breaks, so does the other: a client must
see the death of its node. A client of a dead node is accepted and then reset, so behind a relay a
refused connection says nothing definite.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Final, cast

#: Linger for no time: closing sends a reset.
_RESET: Final = Struct("ii").pack(1, 0)


class Relay:
    """One listening socket and the address that it leads to."""

    def __init__(self, listener: socket.socket, host: str, port: int) -> None:
        self._listener = listener
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Begin to accept."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _End(self._connect), sock=self._listener
        )

    def _connect(self, client: "_End") -> None:
        task = asyncio.get_running_loop().create_task(self._open(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, client: "_End") -> None:
        loop = asyncio.get_running_loop()
        try:
            _, node = await loop.create_connection(lambda: _End(None), *self._target)
        except OSError:
            client.reset()
            return
        client.join(node)
        node.join(client)


class _End(asyncio.Protocol):
    """One side of a carried connection; what comes before it is joined to the other one waits."""

    def __init__(self, opened: Callable[["_End"], None] | None) -> None:
        self._opened = opened
        self._transport: asyncio.Transport | None = None
        self._other: _End | None = None
        self._early: list[bytes] = []
        #: The peer will send no more.
        self.has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._opened is not None:
            self._opened(self)

    def join(self, other: "_End") -> None:
        """From now on everything goes to the other side."""
        self._other = other
        for data in self._early:
            other.send(data)
        self._early.clear()
        if self._transport is None:
            other.reset()
        elif self.has_ended:
            other.end()

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early.append(data)
        else:
            self._other.send(data)

    def eof_received(self) -> bool:
        """Note that the other side may still answer, until it has ended too."""
        self.has_ended = True
        if self._other is not None:
            self._other.end()
            return not self._other.has_ended
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the other side see it in the same way."""
        self._transport = None
        if self._other is None:
            return
        if exc is None:
            self._other.close()
        else:
            self._other.reset()

    def pause_writing(self) -> None:
        """Too much waits for this side: take no more from the other."""
        if self._other is not None:
            self._other.hold(True)

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other.hold(False)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def hold(self, is_held: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def end(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """Send what is left, then end."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Break the connection so that its peer sees an error, not an orderly end."""
        if self._transport is None:
            return
        with suppress(OSError):
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
