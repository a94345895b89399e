"""Connections that send more than anybody would: in a row, unread, in halves, in number."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import msgspec

from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode, Request, VoteAnswer, VoteRequest
from splitbrain.nodes.transport.client_connection import connect
from splitbrain.nodes.transport.client_listener import UNANSWERED_BYTES_MAX, ClientListener
from splitbrain.nodes.transport.client_protocol import (
    PROTOCOL_VERSION,
    ClientAnswer,
    ClientRequest,
    Hello,
    Reply,
    RequestHandler,
    encode_frame,
)
from splitbrain.nodes.transport.doorkeeper import Doorkeeper
from splitbrain.nodes.transport.inbound import UNSENT_BYTES_MAX
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.peer_listener import PeerListener
from splitbrain.nodes.wire.api_versions import served_versions
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import encode_call
from splitbrain.nodes.wire.controller_apis import advertised_versions
from splitbrain.nodes.wire.families.cluster import DescribeClusterRequest
from splitbrain.nodes.wire.framing import FrameReader, frame
from splitbrain.nodes.wire.messages import encode_request
from tests.unit.nodes.transport.flooding import (
    BEYOND_SOCKETS_BYTES,
    HOST,
    PATIENCE_S,
    awaited,
    close,
    ended,
    in_a_loop,
    on_each_loop,
)

TWO = NodeId(2)
CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)
DIRECTORY = DirectoryId("ab" * 16)
VOTE = VoteRequest("c", TWO, DIRECTORY, Epoch(1), NodeId(1), DIRECTORY, NO_EPOCH, Offset(0), True)
SMALL_BYTES = 2 * 1024 * 1024

#: A listener, its port, and why connections were dropped.
Served = tuple[ClientListener, int, list[str]]


class AtOnce:
    """Owner of a listener that answers within the request, as one that refuses does."""

    def __init__(self) -> None:
        self.listener: PeerListener | None = None
        self.refusals: list[str] = []

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        assert self.listener is not None
        answer = VoteAnswer(ErrorCode.NONE, None, Epoch(1), granted=False)
        self.listener.answer(connection, correlation, answer)

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        assert self.listener is not None
        self.listener.reply(connection, correlation, frame(correlation.to_bytes(4, "big")))

    def disconnected(self, connection: ConnectionId) -> None:
        pass


@contextlib.asynccontextmanager
async def clients_of(handler: RequestHandler, **bounds: float) -> AsyncIterator[Served]:
    """A client listener, its port, and what it has refused; ``bounds`` of its doorkeeper."""
    refusals: list[str] = []
    listener = ClientListener(Hello(PROTOCOL_VERSION, 1, 0), handler, refusals.append)
    listener.door = Doorkeeper(refusals.append, **bounds)  # pyright: ignore[reportArgumentType]
    port = await listener.listen(HOST, 0)
    try:
        yield listener, port, refusals
    finally:
        await listener.close()


def answer(request: ClientRequest, reply: Reply) -> None:
    reply(ClientAnswer(request.id, "ok", definite=True, result=request.value))


def held_bytes(door: Doorkeeper) -> int:
    return sum(guest.held_bytes for guest in door.guests)


def requests_in_a_row(count: int) -> Iterator[bytes]:
    for number in range(count):
        if number % 2:
            yield encode_request(VOTE, number, "peer")
        else:
            yield encode_call(CLUSTER, 0, number, "peer")


@on_each_loop
async def test_any_number_of_requests_in_a_row_is_answered_in_order() -> None:
    count = 5_000

    owner = AtOnce()
    served = {**SUPPORTED_VERSIONS, **advertised_versions({ApiKey.DESCRIBE_CLUSTER})}
    codec = KafkaCodec(TWO, (), lambda: served_versions(served, {}))
    owner.listener = PeerListener(codec, owner, owner.refusals.append)
    port = await owner.listener.listen(HOST, 0)
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"".join(requests_in_a_row(count)))
    cutter, numbers = FrameReader(), []
    while len(numbers) < count:
        data = await asyncio.wait_for(reader.read(1 << 16), PATIENCE_S)
        assert data, owner.refusals
        numbers += [int.from_bytes(payload[:4], "big") for payload in cutter.feed(data)]
    assert numbers == list(range(count))
    await close(writer)
    await owner.listener.close()


@on_each_loop
async def test_who_sends_and_does_not_read_fills_nothing_and_is_dropped() -> None:
    text = "x" * 1_000

    def say(request: ClientRequest, reply: Reply) -> None:
        reply(ClientAnswer(request.id, "ok", definite=True, result=text))

    async with clients_of(say, tick_s=0.005) as (listener, port, refusals):
        reader, writer = await asyncio.open_connection(HOST, port)
        frame_of_one = encode_frame(ClientRequest(1, "status"))
        most = 0
        for _ in range(BEYOND_SOCKETS_BYTES // len(frame_of_one) // 1_000):
            if refusals:
                break
            writer.write(frame_of_one * 1_000)
            await asyncio.sleep(0)
            most = max(most, held_bytes(listener.door))
        await awaited(lambda: bool(refusals))
        assert "not read" in refusals[0]
        assert most < SMALL_BYTES
        assert not listener.door.guests
        good, _ = await connect(HOST, port, PATIENCE_S)
        assert (await good.ask(ClientRequest(1, "status"), PATIENCE_S)).result == text
        good.close()
        assert await ended(reader)
        await close(writer)


@on_each_loop
async def test_answers_that_come_late_and_are_not_read_are_bounded_too() -> None:
    waiting: list[tuple[int, Reply]] = []

    async with clients_of(lambda r, reply: waiting.append((r.id, reply))) as (
        listener,
        port,
        refusals,
    ):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"".join(encode_frame(ClientRequest(n, "read")) for n in range(200)))
        await awaited(lambda: len(waiting) == 200)
        most = 0
        for number, reply in waiting:
            reply(ClientAnswer(number, "ok", definite=True, result="x" * 900_000))
            most = max(most, held_bytes(listener.door))
        assert "were not read" in refusals[0]
        assert most < UNSENT_BYTES_MAX + SMALL_BYTES
        assert not listener.door.guests
        assert await ended(reader)
        await close(writer)


@in_a_loop
async def test_large_requests_without_answers_are_not_taken_beyond_a_limit() -> None:
    taken: list[int] = []

    async with clients_of(lambda request, _: taken.append(len(str(request.value)))) as (
        listener,
        port,
        _,
    ):
        _reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(encode_frame(ClientRequest(1, "write", "k", "x" * 1_000_000)) * 20)
        await awaited(lambda: sum(taken) >= UNANSWERED_BYTES_MAX)
        good, _hello = await connect(HOST, port, PATIENCE_S)
        assert sum(taken) < UNANSWERED_BYTES_MAX + 1_100_000
        assert held_bytes(listener.door) < UNANSWERED_BYTES_MAX + 2 * SMALL_BYTES
        good.close()
        await close(writer)


@on_each_loop
async def test_half_a_frame_has_its_time_and_a_silent_connection_any() -> None:
    async with clients_of(answer, tick_s=0.005) as (listener, port, refusals):
        silent, _ = await connect(HOST, port, PATIENCE_S)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write((1_000_000).to_bytes(4, "big") + b"x")
        dripping = asyncio.create_task(drip(writer))
        assert await ended(reader)
        assert "a frame is not ended" in refusals[0]
        assert (await silent.ask(ClientRequest(1, "read", "k", 4), PATIENCE_S)).result == 4
        assert len(listener.door.guests) == 1
        silent.close()
        await dripping
        await close(writer)


async def drip(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, as long as anybody takes it."""
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.002)


@on_each_loop
async def test_halves_of_frames_on_many_connections_are_bounded_together() -> None:
    # No look comes between: it is their bytes alone that count.
    async with clients_of(answer, held_bytes_max=SMALL_BYTES, tick_s=3600.0) as (
        listener,
        port,
        refusals,
    ):
        good, _ = await connect(HOST, port, PATIENCE_S)
        writers: list[asyncio.StreamWriter] = []
        for _ in range(40):
            _, writer = await asyncio.open_connection(HOST, port)
            writers.append(writer)
            writer.write((1_000_000).to_bytes(4, "big") + b"x" * 200_000)
            await writer.drain()
            assert (await good.ask(ClientRequest(1, "read", "k", 4), PATIENCE_S)).result == 4
            assert held_bytes(listener.door) < 2 * SMALL_BYTES
        await awaited(lambda: len(refusals) > 10)
        assert "hold over" in refusals[0]
        good.close()
        for writer in writers:
            await close(writer)


@on_each_loop
async def test_where_all_places_are_taken_the_stillest_makes_room() -> None:
    async with clients_of(answer, connections_count_max=3, tick_s=3600.0) as (
        listener,
        port,
        refusals,
    ):
        three = [(await connect(HOST, port, PATIENCE_S))[0] for _ in range(3)]
        late, writer = await asyncio.open_connection(HOST, port)
        assert await ended(late)  # all three have just come
        assert "all 3 connections" in refusals[0]
        await close(writer)
        for _ in range(5):
            for guest in listener.door.guests:
                assert guest.look() is None
        for connection in three[1:]:
            await connection.ask(ClientRequest(1, "read"), PATIENCE_S)
        newcomer, _ = await connect(HOST, port, PATIENCE_S)
        await awaited(lambda: not three[0].is_open)
        for connection in (*three[1:], newcomer):
            assert (await connection.ask(ClientRequest(2, "read"), PATIENCE_S)).outcome == "ok"
            connection.close()


@in_a_loop
async def test_a_look_after_a_long_pause_drops_nobody() -> None:
    async with clients_of(answer, tick_s=3600.0) as (listener, port, refusals):
        good, _ = await connect(HOST, port, PATIENCE_S)
        (guest,) = listener.door.guests
        for _ in range(1_000):
            assert guest.look() is None
        whole = encode_frame(ClientRequest(1, "read", "k", 4))
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(whole[:5])
        await awaited(lambda: held_bytes(listener.door) == 5)
        assert [each.look() for each in listener.door.guests] == [None, None]
        writer.write(whole[5:])
        await awaited(lambda: held_bytes(listener.door) == 0)
        assert refusals == []
        good.close()
        await close(writer)


@on_each_loop
async def test_hundreds_of_honest_clients_at_a_time_meet_no_limit() -> None:
    value = "x" * 20_000

    async with clients_of(answer) as (_, port, refusals):
        clients = [(await connect(HOST, port, PATIENCE_S))[0] for _ in range(300)]
        for number in range(3):
            answers = await asyncio.gather(
                *(
                    client.ask(ClientRequest(10 * number + each, "read", "k", value), 60)
                    for client in clients
                    for each in range(3)
                )
            )
            assert {each.result for each in answers} == {value}
        assert refusals == []
        for client in clients:
            client.close()
