"""Connections of ``bench.port_fuzz``: ways to be a nuisance to a port, and honest ones beside.

A nuisance is one way to send frames: in a row, cut off, a few bytes at a time, without reading the
answers, half a frame on many connections. An honest client keeps one connection as long as it
lasts, and fails the run if an answer takes longer than the patience.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from splitbrain.nodes.transport.client_connection import (
    ClientConnection,
    LostError,
    NotSentError,
    connect,
)
from splitbrain.nodes.transport.client_protocol import ClientRequest
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.nodes.wire.errors import FrameTooLargeError
from splitbrain.nodes.wire.framing import FrameReader
from splitbrain.nodes.wire.messages import encode_request

#: Longest time that an honest client may have to wait for its answer.
PATIENCE_S: Final = 20.0
#: Between the questions of one honest client.
_PAUSE_S: Final = 0.02
#: Connections that a nuisance keeps open, besides a crowd.
_KEPT_COUNT_MAX: Final = 30
#: How long a nuisance waits for the end of its connection before it goes on without.
_FAREWELL_S: Final = 2.0

#: Draws so many frames for one connection.
DrawRow = Callable[[int], list[bytes]]


class Nuisance:
    """Connections to one port; those that are left open stay so until ``close``."""

    def __init__(self, host: str, port: int, stream: random.Random, draw_row: DrawRow) -> None:
        self._host = host
        self._port = port
        self._stream = stream
        self._draw_row = draw_row
        #: Answers that were read.
        self.answers_count = 0
        self._kept: list[asyncio.StreamWriter] = []

    async def bother(self, count: int) -> None:
        """Send so many frames on one connection, in a way that is drawn."""
        ways = (*[self._in_a_row] * 4, self._cut, self._dripping, self._unread)
        way = self._stream.choice(ways)
        frames = self._draw_row(count)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(self._host, self._port)
            await way(reader, writer, frames)

    async def unread(self, frame: bytes, count: int) -> None:
        """One frame again and again, without reading any answer, as far as the node takes it."""
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(self._host, self._port, limit=1)
            self._kept.append(writer)
            writer.write(frame * count)
            await asyncio.wait_for(writer.drain(), _FAREWELL_S)

    async def crowd(self, count: int) -> None:
        """Half a frame on each of so many connections, which stay."""
        for _ in range(count):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(self._host, self._port)
                self._kept.append(writer)
                writer.write((900_000).to_bytes(4, "big") + bytes(50_000))

    async def close(self) -> None:
        """Drop what was left open."""
        kept, self._kept = self._kept, []
        for writer in kept:
            await _drop(writer)

    async def _in_a_row(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: list[bytes]
    ) -> None:
        writer.write(b"".join(frames))
        cutter = FrameReader()
        with contextlib.suppress(OSError, FrameTooLargeError):
            async with asyncio.timeout(_FAREWELL_S):
                writer.write_eof()
                while data := await reader.read(1 << 16):
                    self.answers_count += len(cutter.feed(data))
        await _drop(writer)

    async def _cut(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: list[bytes]
    ) -> None:
        whole = b"".join(frames)
        writer.write(whole[: self._stream.randint(0, len(whole))])
        with contextlib.suppress(OSError):
            await asyncio.wait_for(writer.drain(), _FAREWELL_S)
        await _drop(writer)

    async def _dripping(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: list[bytes]
    ) -> None:
        whole = b"".join(frames)
        for start in range(0, min(len(whole), 60), 3):
            writer.write(whole[start : start + 3])
            await asyncio.sleep(0)
        writer.write(whole[60:])
        await self._keep(writer)

    async def _unread(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: list[bytes]
    ) -> None:
        writer.write(b"".join(frames))  # the stream takes some answers, and then no more
        await self._keep(writer)

    async def _keep(self, writer: asyncio.StreamWriter) -> None:
        self._kept.append(writer)
        if len(self._kept) > _KEPT_COUNT_MAX:
            await _drop(self._kept.pop(0))


async def _drop(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Asker(Protocol):
    """An honest client of one kind of port."""

    async def ask(self) -> bool:
        """Ask once; False: the connection was lost, so that it is to be tried again."""
        ...

    async def close(self) -> None:
        """Drop the connection."""
        ...


class Honest:
    """Somebody who asks one port the same again and again, and what came of it."""

    def __init__(self, name: str, asker: Asker) -> None:
        """``name``: of the port, for people."""
        self.name = name
        self._asker = asker
        self.answered_count = 0
        self.slowest_s = 0.0
        #: Set once it is known whether it is answered.
        self.told = asyncio.Event()
        #: Why the port does not serve; None as long as it does.
        self.problem: str | None = None

    async def run(self, done: asyncio.Event) -> None:
        """Ask until the event is set, or nobody answers."""
        try:
            await self._ask_until(done)
        finally:
            await self._asker.close()

    async def _ask_until(self, done: asyncio.Event) -> None:
        while not done.is_set():
            began = time.monotonic()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while True:
                        if await self._asker.ask():
                            break
                        await asyncio.sleep(_PAUSE_S)
            except TimeoutError:
                self.problem = f"{self.name} was not answered within {PATIENCE_S:g} s"
                self.told.set()
                return
            self.answered_count += 1
            self.told.set()
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            await asyncio.sleep(_PAUSE_S)


class OwnClient:
    """Asks over our own protocol; one request at a time."""

    def __init__(self, host: str, port: int, requests: Iterator[ClientRequest]) -> None:
        self._where = (host, port)
        self._requests = requests
        self._connection: ClientConnection | None = None

    async def ask(self) -> bool:
        """Whether the request was answered: ok, or that the node does not lead."""
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection, _ = await connect(*self._where, PATIENCE_S)
            answer = await self._connection.ask(next(self._requests), PATIENCE_S)
        except (NotSentError, LostError):
            return False
        return answer.outcome in ("ok", "not-leader")

    async def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            await asyncio.sleep(0)  # the turn in which it is closed


class KafkaClient:
    """Asks a port of Kafka's protocol for the versions that it serves."""

    def __init__(self, host: str, port: int) -> None:
        self._where = (host, port)
        self._count = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> bool:
        """Whether the answer came; its number is the question's."""
        self._count += 1
        asker = ApiVersionsRequest(client_software_name="honest", client_software_version="1")
        question = encode_request(asker, self._count, "honest")
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self._where)
            reader, writer = self._streams
            writer.write(question)
            size_bytes = int.from_bytes(await reader.readexactly(4), "big")
            answer = await reader.readexactly(size_bytes)
        except (OSError, asyncio.IncompleteReadError):
            await self.close()
            return False
        assert int.from_bytes(answer[:4], "big") == self._count
        return True

    async def close(self) -> None:
        """Drop the connection."""
        streams, self._streams = self._streams, None
        if streams is not None:
            await _drop(streams[1])


class FiguresClient:
    """Asks for the figures, each time anew."""

    def __init__(self, host: str, port: int) -> None:
        self._where = (host, port)

    async def ask(self) -> bool:
        """Whether the figures came."""
        try:
            reader, writer = await asyncio.open_connection(*self._where)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        except OSError:
            return False
        try:
            return (await reader.read(-1)).startswith(b"HTTP/1.1 200 ")
        except OSError:
            return False
        finally:
            await _drop(writer)

    async def close(self) -> None:
        """Nothing: no connection is kept."""
