"""Event loops and connections that tests of floods share."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
import tenacity
import uvloop

HOST = "127.0.0.1"
PATIENCE_S = 20.0
#: Beyond what the system's own socket buffers take on loopback.
BEYOND_SOCKETS_BYTES = 24 * 1024 * 1024
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


async def awaited(condition: Callable[[], bool]) -> None:
    async for attempt in tenacity.AsyncRetrying(
        stop=tenacity.stop_after_delay(PATIENCE_S), wait=tenacity.wait_fixed(0.005), reraise=True
    ):
        with attempt:
            assert condition()


async def close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()  # the node may not read what is left to be sent
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the node has closed the connection; what it sent before is read away."""
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(reader.read(1 << 20), PATIENCE_S):
            pass
    return True


def on(loop: Loop, body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await body()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
