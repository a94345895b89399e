"""A link asks its peer what it serves before anything else, and keeps to the answer."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from nodes.quorum.identifiers import CorrelationId, DirectoryId, Epoch, NodeId, Offset
from nodes.quorum.messages import Answer, ErrorCode, Request, VoteAnswer, VoteRequest
from nodes.quorum.persistent import Voter
from nodes.transport.kafka_codec import KafkaCodec
from nodes.transport.peer_link import PeerLink
from nodes.transport.peer_versions import PeerVersions
from nodes.wire.api_versions import ApiVersionsAnswer
from nodes.wire.apis import ApiKey, RequestHeader
from nodes.wire.errors import NoCommonVersionError, UnsupportedAnswerError, WireError
from nodes.wire.framing import FrameReader
from nodes.wire.headers import decode_request_prefix
from nodes.wire.messages import decode_request, encode_answer, encode_api_versions, encode_refusal

ONE, TWO = NodeId(1), NodeId(2)
DIRECTORY = DirectoryId("ab" * 16)
PRE_VOTE = VoteRequest("c", TWO, DIRECTORY, Epoch(1), ONE, DIRECTORY, Epoch(0), Offset(0), True)
VOTE = msgspec.structs.replace(PRE_VOTE, pre_vote=False)
GRANTED = VoteAnswer(ErrorCode.NONE, None, Epoch(1), granted=True)
HOST = "127.0.0.1"
PATIENCE_S = 5.0


def serving(*apis: tuple[int, int, int]) -> ApiVersionsAnswer:
    return ApiVersionsAnswer(ErrorCode.NONE, apis, ())


def header_of(question: bytes) -> RequestHeader:
    return decode_request_prefix(question[4:])


def asked() -> tuple[PeerVersions, RequestHeader]:
    versions = PeerVersions("me")
    return versions, header_of(versions.question())


def test_the_highest_version_that_the_peer_serves_is_chosen() -> None:
    versions, header = asked()
    assert (header.api_key, header.api_version) == (ApiKey.API_VERSIONS, 4)
    versions.take(encode_api_versions(header, serving((ApiKey.VOTE, 0, 1)))[4:])
    assert versions.is_known
    assert versions.version_for(VOTE) == 1


def test_a_pre_vote_never_goes_to_a_peer_that_would_take_it_for_a_vote() -> None:
    versions, header = asked()
    versions.take(encode_api_versions(header, serving((ApiKey.VOTE, 0, 1)))[4:])
    with pytest.raises(NoCommonVersionError, match="VOTE in versions 0 to 1"):
        versions.version_for(PRE_VOTE)


def test_a_peer_of_an_older_release_is_asked_again_in_its_own_version() -> None:
    versions, header = asked()
    # Kafka before 4.0 knows the question up to version 3, and says so in version 0.
    refusal = (
        header.correlation_id.to_bytes(4, "big")
        + bytes.fromhex("0023" + "00000001")
        + bytes.fromhex("0012" + "0000" + "0003")
    )
    versions.take(refusal)
    assert not versions.is_known
    header = header_of(versions.question())
    assert header.api_version == 3
    versions.take(encode_api_versions(header, serving((ApiKey.VOTE, 0, 2)))[4:])
    assert versions.version_for(PRE_VOTE) == 2


def test_a_peer_that_keeps_refusing_is_not_asked_for_ever() -> None:
    versions, _ = asked()
    # Whatever is asked, it says that it knows versions 0 to 4, and refuses.
    refusal = encode_api_versions(RequestHeader(ApiKey.API_VERSIONS, 9, 0, None))[4:]
    for lower in (3, 2, 1, 0):
        versions.take(refusal)
        assert header_of(versions.question()).api_version == lower
    with pytest.raises(NoCommonVersionError):
        versions.take(refusal)


def test_what_does_not_answer_the_question_is_refused() -> None:
    versions, header = asked()
    other = RequestHeader(ApiKey.API_VERSIONS, 4, 99, None)
    with pytest.raises(UnsupportedAnswerError, match="answer 99"):
        versions.take(encode_api_versions(other)[4:])
    error = msgspec.structs.replace(serving(), error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(UnsupportedAnswerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        versions.take(encode_api_versions(header, error)[4:])
    with pytest.raises(WireError):
        versions.take(b"\0\0\0\0\0\0\xff")
    with pytest.raises(RuntimeError):
        versions.version_for(VOTE)


class Peer:
    """Serves what it is told to; remembers API and version of every request."""

    def __init__(self, served: list[ApiVersionsAnswer]) -> None:
        #: What each connection is told, in their order; the last one for all others.
        self.served = served
        self.requests: list[tuple[int, int]] = []
        self.connections_count = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serves = self.served[min(self.connections_count, len(self.served) - 1)]
        self.connections_count += 1
        frames = FrameReader()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                for payload in frames.feed(data):
                    header = decode_request(payload).header
                    self.requests.append((header.api_key, header.api_version))
                    writer.write(
                        encode_api_versions(header, serves)
                        if header.api_key == ApiKey.API_VERSIONS
                        else encode_answer(GRANTED, header)
                        if header.api_key == ApiKey.VOTE
                        else encode_refusal(header, ErrorCode.INVALID_REQUEST)
                    )
        writer.close()
        self.closed.set()


class Owner:
    def __init__(self) -> None:
        self.results: asyncio.Queue[Answer | str] = asyncio.Queue()

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answer) -> None:
        self.results.put_nowait(answer)

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        self.results.put_nowait(reason)


Ask = Callable[[Request], Awaitable[Answer | str]]


def run(peer: Peer, body: Callable[[PeerLink, Ask], Awaitable[None]]) -> None:
    async def main() -> None:
        server = await asyncio.start_server(peer.serve, HOST, 0)
        voter = Voter(TWO, DIRECTORY, HOST, server.sockets[0].getsockname()[1])
        owner = Owner()
        link = PeerLink(voter, KafkaCodec(ONE, (voter,)), owner)
        numbers = iter(range(1, 100))

        async def ask(request: Request) -> Answer | str:
            link.send(CorrelationId(next(numbers)), request, 5_000)
            return await asyncio.wait_for(owner.results.get(), PATIENCE_S)

        try:
            await body(link, ask)
        finally:
            link.close()
            server.close()
            await asyncio.wait_for(peer.closed.wait(), PATIENCE_S)

    asyncio.run(main())


def test_a_connection_asks_once_and_sends_in_the_peers_version() -> None:
    peer = Peer([serving((ApiKey.VOTE, 0, 1))])

    async def body(link: PeerLink, ask: Ask) -> None:
        assert await ask(VOTE) == GRANTED
        assert await ask(VOTE) == GRANTED

    run(peer, body)
    assert peer.requests == [(ApiKey.API_VERSIONS, 4), (ApiKey.VOTE, 1), (ApiKey.VOTE, 1)]


def test_a_peer_without_a_common_version_gets_nothing_and_is_named() -> None:
    peer = Peer([serving((ApiKey.VOTE, 3, 9))])

    async def body(link: PeerLink, ask: Ask) -> None:
        assert await ask(VOTE) == (
            "the peer serves VOTE in versions 3 to 9, this node speaks versions 0 to 2"
        )
        assert link.is_idle

    run(peer, body)
    assert peer.requests == [(ApiKey.API_VERSIONS, 4)]


def test_a_refusal_on_a_connection_that_stands_is_told_after_the_sending() -> None:
    peer = Peer([serving((ApiKey.VOTE, 0, 1))])

    async def body(link: PeerLink, ask: Ask) -> None:
        assert await ask(VOTE) == GRANTED
        waiting = asyncio.ensure_future(ask(PRE_VOTE))
        await asyncio.sleep(0)
        assert not link.is_idle
        assert "VOTE in versions 0 to 1" in str(await waiting)

    run(peer, body)
    assert peer.requests == [(ApiKey.API_VERSIONS, 4), (ApiKey.VOTE, 1)]


def test_a_request_given_up_before_its_refusal_spoils_no_other() -> None:
    peer = Peer([serving((ApiKey.VOTE, 0, 1))])

    async def body(link: PeerLink, ask: Ask) -> None:
        assert await ask(VOTE) == GRANTED
        link.send(CorrelationId(500), PRE_VOTE, 5_000)
        link.abandon(CorrelationId(500))
        assert await ask(VOTE) == GRANTED

    run(peer, body)


def test_a_peer_that_was_upgraded_is_asked_anew_on_the_next_connection() -> None:
    peer = Peer([serving((ApiKey.VOTE, 0, 1)), serving((ApiKey.VOTE, 0, 2))])

    async def body(link: PeerLink, ask: Ask) -> None:
        assert "VOTE in versions 0 to 1" in str(await ask(PRE_VOTE))
        assert await ask(PRE_VOTE) == GRANTED

    run(peer, body)
    assert peer.requests == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.VOTE, 2),
    ]
