"""Client connections on loopback: greeting, pipelining, breakage, and what is certain after it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from splitbrain.nodes.transport.client_connection import LostError, NotSentError, connect
from splitbrain.nodes.transport.client_listener import ClientListener
from splitbrain.nodes.transport.client_protocol import (
    PROTOCOL_VERSION,
    ClientAnswer,
    ClientRequest,
    Hello,
    Reply,
    RequestHandler,
    encode_frame,
)
from tests.unit.nodes.transport.flooding import HOST, close, in_a_loop


def _answer(request: ClientRequest, reply: Reply) -> None:
    reply(ClientAnswer(request.id, "ok", definite=True, result=request.value))


@contextlib.asynccontextmanager
async def served(handler: RequestHandler = _answer) -> AsyncIterator[tuple[int, list[str]]]:
    """A listener's port, and why connections were dropped."""
    refusals: list[str] = []
    listener = ClientListener(Hello(PROTOCOL_VERSION, 1, 0), handler, refusals.append)
    port = await listener.listen(HOST, 0)
    try:
        yield port, refusals
    finally:
        await listener.close()


@in_a_loop
async def test_the_node_greets_and_answers() -> None:
    async with served() as (port, _):
        connection, hello = await connect(HOST, port, 5)
        assert hello.node_id == 1
        answer = await connection.ask(ClientRequest(1, "read", "k", 5), 5)
        assert answer.result == 5
        connection.close()


@in_a_loop
async def test_answers_find_their_requests_in_any_order() -> None:
    replies: list[tuple[int, Reply]] = []

    def later(request: ClientRequest, reply: Reply) -> None:
        replies.append((request.id, reply))
        if len(replies) == 3:
            for request_id, waiting in reversed(replies):
                waiting(ClientAnswer(request_id, "ok", definite=True, result=request_id * 10))

    async with served(later) as (port, _):
        connection, _hello = await connect(HOST, port, 5)
        answers = await asyncio.gather(
            *(connection.ask(ClientRequest(number, "read"), 5) for number in (1, 2, 3))
        )
        assert [answer.result for answer in answers] == [10, 20, 30]
        connection.close()


@in_a_loop
async def test_a_request_on_a_closed_connection_was_certainly_not_sent() -> None:
    async with served() as (port, _):
        connection, _hello = await connect(HOST, port, 5)
        connection.close()
        with pytest.raises(NotSentError):
            await connection.ask(ClientRequest(1, "write"), 5)


@in_a_loop
async def test_an_unanswered_request_is_lost() -> None:
    async with served(lambda request, reply: None) as (port, _):
        connection, _hello = await connect(HOST, port, 5)
        with pytest.raises(LostError, match="no answer"):
            await connection.ask(ClientRequest(1, "write"), 0.05)
        connection.close()


@in_a_loop
async def test_nobody_listening_is_certain() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(NotSentError):
        await connect(HOST, port, 5)


@in_a_loop
async def test_a_proxy_that_accepts_without_a_node_behind_it_is_certain() -> None:
    done = asyncio.Event()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await close(writer)
        done.set()

    server = await asyncio.start_server(accept, HOST, 0)
    with pytest.raises(NotSentError):
        await connect(HOST, server.sockets[0].getsockname()[1], 5)
    await asyncio.wait_for(done.wait(), 5)
    server.close()


@in_a_loop
async def test_a_silent_node_is_certain_too() -> None:
    writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: writers.put_nowait(writer), HOST, 0)
    with pytest.raises(NotSentError, match="greeting"):
        await connect(HOST, server.sockets[0].getsockname()[1], 0.05)
    # On a loaded machine the kernel accepts before the server does.
    await close(await asyncio.wait_for(writers.get(), 5))
    server.close()


@pytest.mark.parametrize(
    "garbage",
    [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03abc", b"GET / HTTP/1.1\r\n\r\n" * 9],
    ids=["too-long", "no-msgpack", "http"],
)
@in_a_loop
async def test_garbage_closes_its_connection_and_no_other(garbage: bytes) -> None:
    async with served() as (port, refusals):
        good, _hello = await connect(HOST, port, 5)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(garbage)
        await asyncio.wait_for(reader.read(), 5)  # returns at the end of the stream
        await close(writer)
        assert (await good.ask(ClientRequest(1, "read", "k", 1), 5)).outcome == "ok"
        assert len(refusals) == 1
        good.close()


@in_a_loop
async def test_a_flood_without_reading_does_not_stop_the_others() -> None:
    waiting: list[tuple[int, Reply]] = []

    def handler(request: ClientRequest, reply: Reply) -> None:
        if request.kind == "status":
            _answer(request, reply)
        else:
            waiting.append((request.id, reply))

    async with served(handler) as (port, _):
        _reader, writer = await asyncio.open_connection(HOST, port)
        frame = encode_frame(ClientRequest(1, "write", "k", 1))
        writer.write(frame * 100_000)
        good, _hello = await connect(HOST, port, 5)
        answer = await good.ask(ClientRequest(1, "status"), 5)
        assert answer.outcome == "ok"
        assert len(waiting) < 100_000  # the rest is left in the socket
        good.close()
        await close(writer)
