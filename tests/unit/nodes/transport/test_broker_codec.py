"""Requests of a broker's clients: answered by it, handed on, or no business of theirs."""

import pytest

from splitbrain.nodes.broker.forwarding import Forwarding
from splitbrain.nodes.broker.serving import offered_versions
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.messages import DescribeQuorumRequest
from splitbrain.nodes.transport.broker_codec import BrokerCodec
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest, ApiVersionsResponse
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import ReceivedCall, encode_call
from splitbrain.nodes.wire.envelopes import open_envelope
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.families.cluster import MetadataRequest
from splitbrain.nodes.wire.families.topics import DeleteTopicsRequest
from splitbrain.nodes.wire.messages import decode_answer, encode_request
from tests.unit.nodes.quorum.replicas import vote_request

CODEC = BrokerCodec(lambda: offered_versions(MetadataImage(), None))
METADATA = MetadataRequest(topics=None, allow_auto_topic_creation=False)


def call(frame: bytes) -> ReceivedCall:
    inbound = CODEC.decode_request(frame[4:])
    assert isinstance(inbound, ReceivedCall)
    return inbound


def test_versions_are_answered_at_once() -> None:
    question = encode_request(ApiVersionsRequest(), 5, "client", version=4)
    frame = CODEC.decode_request(question[4:])
    assert isinstance(frame, bytes)
    answer = decode_answer(frame[4:], ApiKey.API_VERSIONS, 4).message
    assert isinstance(answer, ApiVersionsResponse)
    served = set(answer.versions())
    assert {ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_QUORUM} <= served
    assert not {ApiKey.VOTE, ApiKey.FETCH, ApiKey.BROKER_REGISTRATION} & served


@pytest.mark.parametrize("rest", [b"", b"\0\0\0"])
def test_what_follows_a_message_is_not_looked_at_as_in_kafka(rest: bytes) -> None:
    inbound = call(encode_call(METADATA, 12, 6, "client") + rest)
    assert inbound.message == METADATA
    assert inbound.header.correlation_id == 6


def test_what_a_controller_decides_comes_out_in_its_envelope() -> None:
    deletion = DeleteTopicsRequest(topic_names=("t",), timeout_ms=1)
    inbound = call(encode_call(deletion, 5, 7, "client"))
    assert isinstance(inbound.message, Forwarding)
    opened = open_envelope(inbound.message.envelope)
    assert (opened.message, opened.header.correlation_id) == (deletion, 7)


def test_a_question_about_the_quorum_is_handed_on_too() -> None:
    inbound = call(encode_request(DescribeQuorumRequest(), 8, "client", version=2))
    assert isinstance(inbound.message, Forwarding)
    assert isinstance(open_envelope(inbound.message.envelope).message, DescribeQuorumRequest)


def test_the_quorums_own_requests_are_refused() -> None:
    vote = vote_request()
    with pytest.raises(WireError):
        CODEC.decode_request(encode_request(vote, 9, "node", version=2)[4:])
