"""Versions that a link learns of its peer; ``test_link_machine`` has what it does with them."""

import msgspec
import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer, VoteRequest
from splitbrain.nodes.transport.peer_versions import PeerVersions
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, served_versions
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.calls import decode_head
from splitbrain.nodes.wire.errors import NoCommonVersionError, UnsupportedAnswerError, WireError
from splitbrain.nodes.wire.messages import encode_api_versions

ONE, TWO = NodeId(1), NodeId(2)
DIRECTORY = DirectoryId("ab" * 16)
PRE_VOTE = VoteRequest("c", TWO, DIRECTORY, Epoch(1), ONE, DIRECTORY, Epoch(0), Offset(0), True)
VOTE = msgspec.structs.replace(PRE_VOTE, pre_vote=False)
GRANTED = VoteAnswer(ErrorCode.NONE, None, Epoch(1), granted=True)
HOST = "127.0.0.1"
PATIENCE_S = 5.0


def serving(*apis: tuple[ApiKey, int, int]) -> ApiVersionsResponse:
    return served_versions({key: VersionRange(low, high) for key, low, high in apis}, {})


def header_of(question: bytes) -> RequestHeader:
    return decode_head(question[4:])[0]


def requested() -> tuple[PeerVersions, RequestHeader]:
    versions = PeerVersions("me")
    return versions, header_of(versions.question())


def test_the_highest_version_that_the_peer_serves_is_chosen() -> None:
    versions, header = requested()
    assert (header.api_key, header.api_version) == (ApiKey.API_VERSIONS, 4)
    versions.take(encode_api_versions(header, serving((ApiKey.VOTE, 0, 1)))[4:])
    assert versions.is_known
    assert versions.version_for(VOTE) == 1


def test_a_pre_vote_never_goes_to_a_peer_that_would_take_it_for_a_vote() -> None:
    versions, header = requested()
    versions.take(encode_api_versions(header, serving((ApiKey.VOTE, 0, 1)))[4:])
    with pytest.raises(NoCommonVersionError, match="VOTE in versions 0 to 1"):
        versions.version_for(PRE_VOTE)


def test_a_peer_of_an_older_release_is_asked_again_in_its_own_version() -> None:
    versions, header = requested()
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
    versions, _ = requested()
    # Whatever is asked, it says that it knows versions 0 to 4, and refuses.
    refusal = encode_api_versions(RequestHeader(ApiKey.API_VERSIONS, 9, 0, None))[4:]
    for lower in (3, 2, 1, 0):
        versions.take(refusal)
        assert header_of(versions.question()).api_version == lower
    with pytest.raises(NoCommonVersionError):
        versions.take(refusal)


def test_what_does_not_answer_the_question_is_refused() -> None:
    versions, header = requested()
    other = RequestHeader(ApiKey.API_VERSIONS, 4, 99, None)
    with pytest.raises(UnsupportedAnswerError, match="answer 99"):
        versions.take(encode_api_versions(other)[4:])
    error = msgspec.structs.replace(serving(), error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(UnsupportedAnswerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        versions.take(encode_api_versions(header, error)[4:])
    with pytest.raises(WireError):
        versions.take(b"\0\0\0\0\0\0\xff")
    with pytest.raises(RuntimeError):
        versions.version_for(VOTE)
