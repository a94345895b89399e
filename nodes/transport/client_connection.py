"""A client's end of one connection to one node.

Tells apart what the outcome rules need: nothing was sent (``NotSentError``) or it may have arrived
(``LostError``). Nothing is ever sent again.
"""

import asyncio
from typing import cast

from splitbrain.nodes.transport.client_protocol import (
    ClientAnswer,
    ClientRequest,
    FrameSplitter,
    Hello,
    ProtocolError,
    decode_answer,
    decode_hello,
    encode_frame,
)


class NotSentError(Exception):
    """No byte of the request left this process: it certainly did not happen."""


class NotGreetedError(NotSentError):
    """No node greeted in time."""


class LostError(Exception):
    """The request was sent and no answer will come: it may have happened."""


class NotAnsweredError(LostError):
    """No answer came in time."""


class ClientConnection(asyncio.Protocol):
    """One connection; made by ``connect``. Several requests may be under way at a time."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter()
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.Future[Hello] = loop.create_future()
        self._waiting: dict[int, asyncio.Future[ClientAnswer]] = {}
        self._lost_reason: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: ClientRequest, timeout_s: float) -> ClientAnswer:
        """Send a request and wait for its answer.

        Raises:
            NotSentError: the connection was closed before, or the request cannot be encoded.
            NotAnsweredError: no answer came in time. The caller should close it.
            LostError: it broke.
        """
        if self._transport is None or self._transport.is_closing():
            raise NotSentError(self._lost_reason or "the connection is closed")
        try:
            frame = encode_frame(request)
        except ProtocolError as error:
            raise NotSentError(str(error)) from error
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ClientAnswer] = loop.create_future()
        self._waiting[request.id] = future
        self._transport.write(frame)
        # Cheaper than asyncio.timeout, and there is one for each operation.
        timer = loop.call_later(timeout_s, _give_up, future, timeout_s)
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(request.id, None)

    def close(self) -> None:
        """Drop the connection at once; requests under way are lost."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("closed by this side")

    async def greeting(self) -> Hello:
        """Return the node's first words; raises ``LostError`` where none came before the end."""
        return await asyncio.shield(self._greeting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        # A cast, since uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._lose(f"connection lost: {exc}" if exc is not None else "the node closed it")

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        try:
            for body in self._splitter.feed(data):
                self._take(body)
        except ProtocolError as error:
            if self._transport is not None:
                self._transport.abort()
            self._lose(str(error))

    def _take(self, body: bytes) -> None:
        if not self._greeting.done():
            self._greeting.set_result(decode_hello(body))
            return
        answer = decode_answer(body)
        future = self._waiting.pop(answer.id, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def _lose(self, reason: str) -> None:
        self._transport = None
        if self._lost_reason is None:
            self._lost_reason = reason
        if not self._greeting.done():
            self._greeting.set_exception(LostError(reason))
            self._greeting.exception()  # read once, so that nobody is warned of it
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LostError(reason))
        self._waiting.clear()


def _give_up(waiting: "asyncio.Future[ClientAnswer]", timeout_s: float) -> None:
    if not waiting.done():
        waiting.set_exception(NotAnsweredError(f"no answer within {timeout_s:.3f} s"))


async def connect(host: str, port: int, timeout_s: float) -> tuple[ClientConnection, Hello]:
    """Connect to a node and wait until it has greeted.

    Raises:
        NotGreetedError: no node greeted in time.
        NotSentError: nobody listens, or it broke.
    """
    connection: ClientConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                ClientConnection, host, port
            )
            return connection, await connection.greeting()
    except (OSError, LostError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, TimeoutError):
            raise NotGreetedError(f"{host}:{port}: no greeting within {timeout_s:.3f} s") from error
        raise NotSentError(f"{host}:{port}: {error}") from error
    except asyncio.CancelledError:
        # Nobody else knows of it.
        if connection is not None:
            connection.close()
        raise
