"""Event loops and connections that tests of this room share."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import tenacity
import uvloop

HOST = "127.0.0.1"
PATIENCE_S = 20.0
#: Beyond what the system's own socket buffers take on loopback.
BEYOND_SOCKETS_BYTES = 24 * 1024 * 1024
Body = Callable[..., Awaitable[None]]


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


def in_a_loop(test: Body) -> Callable[..., None]:
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def run(**parameters: Any) -> None:
        with asyncio.Runner() as runner:
            runner.run(_body(test, parameters))

    return run


def on_each_loop(test: Body) -> Callable[..., None]:
    """Run an async test without parameters on asyncio's loop and on uvloop's."""

    @pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
    def run(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(_body(test, {}))

    return run


def with_a(
    made: Callable[[], contextlib.AbstractAsyncContextManager[Any]],
) -> Callable[[Body], Callable[..., None]]:
    """Run an async test in a loop of its own, its first parameter made before and ended after."""

    def decorate(test: Body) -> Callable[..., None]:
        async def body(**parameters: Any) -> None:
            async with made() as value:
                await test(value, **parameters)

        run = in_a_loop(body)
        _, *others = inspect.signature(test).parameters.values()
        vars(run)["__signature__"] = inspect.Signature(others)
        return run

    return decorate


async def _body(test: Body, parameters: dict[str, Any]) -> None:
    await test(**parameters)
