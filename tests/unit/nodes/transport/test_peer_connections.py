"""Connections between nodes on loopback: one request at a time, and what ends a connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    ErrorCode,
    Request,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.peer_link import PeerLink
from splitbrain.nodes.transport.peer_listener import REQUEST_BYTES_MAX, PeerListener
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.calls import read_correlation_id
from splitbrain.nodes.wire.framing import FrameReader, frame
from splitbrain.nodes.wire.messages import encode_request
from tests.unit.nodes.transport.flooding import HOST, PATIENCE_S, close, in_a_loop, with_a

ONE, TWO = NodeId(1), NodeId(2)
DIRECTORY = DirectoryId("ab" * 16)
VOTE = VoteRequest("c", TWO, DIRECTORY, Epoch(1), ONE, DIRECTORY, NO_EPOCH, Offset(0), True)
GRANTED = VoteAnswer(ErrorCode.NONE, None, Epoch(1), granted=True)
BEGIN = BeginQuorumEpochRequest("c", TWO, DIRECTORY, ONE, Epoch(1))


class Receiver:
    """Owner of a listener; records, and answers when told to."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[tuple[ConnectionId, CorrelationId, Request]] = asyncio.Queue()
        self.closed: asyncio.Queue[ConnectionId] = asyncio.Queue()
        self.refusals: list[str] = []

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        self.requests.put_nowait((connection, correlation, request))

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        raise AssertionError("nobody serves calls here")

    def disconnected(self, connection: ConnectionId) -> None:
        self.closed.put_nowait(connection)


class Sender:
    """Owner of a link; records what came of each request."""

    def __init__(self) -> None:
        self.results: asyncio.Queue[tuple[CorrelationId, Answer | str]] = asyncio.Queue()
        #: Of each failure, whether the connection was refused.
        self.refusals: list[bool] = []

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answer) -> None:
        self.results.put_nowait((correlation, answer))

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        self.results.put_nowait((correlation, reason))
        self.refusals.append(refused)

    async def result(self) -> tuple[CorrelationId, Answer | str]:
        return await asyncio.wait_for(self.results.get(), PATIENCE_S)


class Pair:
    """A listener of node 2 and a link of node 1 to it."""

    def __init__(self, port: int, receiver: Receiver, listener: PeerListener) -> None:
        self.port = port
        self.receiver = receiver
        self.listener = listener
        self.sender = Sender()
        self.voter = Voter(TWO, DIRECTORY, HOST, port)
        self.link = PeerLink(self.voter, KafkaCodec(ONE, (self.voter,)), self.sender)

    async def exchange(self, number: int) -> Answer | str:
        """Have a vote asked for and granted; what the asker hears."""
        self.link.send(CorrelationId(number), VOTE, 2_000)
        connection, correlation, _ = await self.next_request()
        self.listener.answer(connection, correlation, GRANTED)
        heard, result = await self.sender.result()
        assert heard == number
        return result

    async def next_request(self) -> tuple[ConnectionId, CorrelationId, Request]:
        return await asyncio.wait_for(self.receiver.requests.get(), PATIENCE_S)


@contextlib.asynccontextmanager
async def pair_of_nodes() -> AsyncIterator[Pair]:
    receiver = Receiver()
    listener = PeerListener(KafkaCodec(TWO, ()), receiver, receiver.refusals.append)
    pair = Pair(await listener.listen(HOST, 0), receiver, listener)
    try:
        yield pair
    finally:
        pair.link.close()
        await listener.close()


@with_a(pair_of_nodes)
async def test_a_request_is_answered(pair: Pair) -> None:
    pair.link.send(CorrelationId(7), VOTE, 2_000)
    connection, correlation, request = await pair.next_request()
    assert request == VOTE
    pair.listener.answer(connection, correlation, GRANTED)
    assert await pair.sender.result() == (7, GRANTED)
    assert pair.link.is_idle


@with_a(pair_of_nodes)
async def test_the_connection_is_kept_for_the_next_request(pair: Pair) -> None:
    connections: set[ConnectionId] = set()
    for number in (1, 2):
        pair.link.send(CorrelationId(number), VOTE, 2_000)
        connection, correlation, _ = await pair.next_request()
        connections.add(connection)
        pair.listener.answer(connection, correlation, GRANTED)
        await pair.sender.result()
    assert len(connections) == 1


@with_a(pair_of_nodes)
async def test_a_timeout_closes_the_connection_and_the_next_request_opens_another(
    pair: Pair,
) -> None:
    # The request must have arrived within that time, however busy the machine is.
    pair.link.send(CorrelationId(1), VOTE, 500)
    first, correlation, _ = await pair.next_request()
    number, reason = await pair.sender.result()
    assert (number, reason) == (1, "no answer within 500 ms")
    assert pair.sender.refusals == [False]
    assert await asyncio.wait_for(pair.receiver.closed.get(), PATIENCE_S) == first
    pair.listener.answer(first, correlation, GRANTED)  # late: goes nowhere
    pair.link.send(CorrelationId(2), BEGIN, 2_000)
    second, correlation, request = await pair.next_request()
    assert (request, second != first) == (BEGIN, True)
    pair.listener.answer(second, correlation, BeginQuorumEpochAnswer(ErrorCode.NONE, ONE, Epoch(1)))
    assert (await pair.sender.result())[0] == 2


@with_a(pair_of_nodes)
async def test_an_abandoned_request_reports_nothing_and_frees_the_link(pair: Pair) -> None:
    pair.link.send(CorrelationId(1), VOTE, 2_000)
    first, _, _ = await pair.next_request()
    pair.link.abandon(CorrelationId(1))
    assert await asyncio.wait_for(pair.receiver.closed.get(), PATIENCE_S) == first
    assert await pair.exchange(2) == GRANTED


@with_a(pair_of_nodes)
async def test_a_request_abandoned_while_connecting_does_not_spoil_the_next(pair: Pair) -> None:
    number = 0
    # At some turn of the loop the connection is made and the link does not know it yet.
    for turns in range(20):
        number += 2
        pair.link.send(CorrelationId(number), VOTE, 2_000)
        for _ in range(turns):
            await asyncio.sleep(0)
        pair.link.abandon(CorrelationId(number))
        pair.link.send(CorrelationId(number + 1), VOTE, 2_000)
        connection, correlation, _ = await pair.next_request()
        while correlation != number + 1:
            connection, correlation, _ = await pair.next_request()
        pair.listener.answer(connection, correlation, GRANTED)
        assert await pair.sender.result() == (number + 1, GRANTED)
        pair.link.close()
        pair.link = PeerLink(pair.voter, KafkaCodec(ONE, (pair.voter,)), pair.sender)


@pytest.mark.planted("stale-answer-accepted")
@with_a(pair_of_nodes)
async def test_with_the_planted_defect_a_late_answer_comes_on_a_connection_that_was_kept(
    pair: Pair,
) -> None:
    codec = KafkaCodec(ONE, (pair.voter,))
    link = PeerLink(pair.voter, codec, pair.sender)
    try:
        link.send(CorrelationId(1), VOTE, 2_000)
        connection, correlation, _ = await pair.next_request()
        link.abandon(CorrelationId(1))
        link.send(CorrelationId(2), VOTE, 2_000)
        pair.listener.answer(connection, correlation, GRANTED)
        assert await pair.sender.result() == (1, GRANTED)
        again, correlation, _ = await pair.next_request()
        assert (again, correlation) == (connection, 2)
        pair.listener.answer(again, correlation, GRANTED)
        assert await pair.sender.result() == (2, GRANTED)
    finally:
        link.close()


@with_a(pair_of_nodes)
async def test_a_peer_that_is_down_fails_fast_and_is_found_again(pair: Pair) -> None:
    await pair.listener.close()
    pair.link.send(CorrelationId(1), VOTE, 2_000)
    number, reason = await pair.sender.result()
    assert number == 1
    assert "cannot connect" in str(reason)
    assert pair.sender.refusals == [True]
    await pair.listener.listen(HOST, pair.port)
    assert await pair.exchange(2) == GRANTED


@in_a_loop
async def test_an_answer_to_another_request_ends_the_connection() -> None:
    done = asyncio.Event()

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(frame((99).to_bytes(4, "big") + bytes(20)))
        await close(writer)
        done.set()

    server = await asyncio.start_server(lie, HOST, 0)
    voter = Voter(TWO, DIRECTORY, HOST, server.sockets[0].getsockname()[1])
    sender = Sender()
    link = PeerLink(voter, KafkaCodec(ONE, (voter,)), sender)
    link.send(CorrelationId(1), VOTE, 2_000)
    _, reason = await sender.result()
    assert "unreadable answer" in str(reason)
    link.close()
    await asyncio.wait_for(done.wait(), PATIENCE_S)
    server.close()


@with_a(pair_of_nodes)
async def test_the_second_request_of_a_connection_waits_for_the_first_answer(pair: Pair) -> None:
    _, writer = await asyncio.open_connection(HOST, pair.port)
    writer.write(encode_request(VOTE, 1, "peer") + encode_request(BEGIN, 2, "peer"))
    connection, correlation, request = await pair.next_request()
    assert (request, pair.receiver.requests.empty()) == (VOTE, True)
    pair.listener.answer(connection, correlation, GRANTED)
    _, correlation, request = await pair.next_request()
    assert (correlation, request) == (2, BEGIN)
    await close(writer)


@with_a(pair_of_nodes)
async def test_api_versions_is_answered_without_asking_the_replica(pair: Pair) -> None:
    reader, writer = await asyncio.open_connection(HOST, pair.port)
    writer.write(encode_request(ApiVersionsRequest(), 5, "admin"))
    (payload,) = await frames(reader, 1)
    assert read_correlation_id(payload) == 5
    assert pair.receiver.requests.empty()
    await close(writer)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xff\xff\xff",
        (REQUEST_BYTES_MAX + 1).to_bytes(4, "big"),
        frame(b""),
        frame(b"\x00\x34"),
        frame(b"\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff"),
        frame(encode_request(VOTE, 1, "peer")[4:-3]),
        b"GET / HTTP/1.1\r\n\r\n" * 9,
    ],
    ids=["negative", "too-long", "empty", "no-header", "unknown-api", "cut-short", "http"],
)
@with_a(pair_of_nodes)
async def test_garbage_closes_its_connection_and_no_other(pair: Pair, garbage: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, pair.port)
    writer.write(garbage)
    await asyncio.wait_for(reader.read(), PATIENCE_S)  # returns at the end of the stream
    await close(writer)
    assert len(pair.receiver.refusals) == 1
    assert await pair.exchange(1) == GRANTED


@with_a(pair_of_nodes)
async def test_a_lost_inbound_connection_is_reported_once(pair: Pair) -> None:
    pair.link.send(CorrelationId(1), VOTE, 2_000)
    connection, _, _ = await pair.next_request()
    pair.link.close()
    assert await asyncio.wait_for(pair.receiver.closed.get(), PATIENCE_S) == connection
    assert pair.receiver.closed.empty()
    assert pair.listener.connections == {}


async def frames(reader: asyncio.StreamReader, count: int) -> list[bytes]:
    splitter, found = FrameReader(), []
    while len(found) < count:
        data = await asyncio.wait_for(reader.read(65_536), PATIENCE_S)
        assert data, "the node closed the connection"
        found += splitter.feed(data)
    return found


@with_a(pair_of_nodes)
async def test_a_link_tries_again_however_often_it_failed(pair: Pair) -> None:
    await pair.listener.close()
    for number in range(1, 9):
        pair.link.send(CorrelationId(number), VOTE, 5_000)
        await pair.sender.result()
    assert pair.sender.refusals == [True] * 8
