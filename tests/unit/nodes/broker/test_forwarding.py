"""A client's request reaches the controller through a broker, and the answer comes back whole."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.broker.forwarding import (
    FORWARDED,
    AskAgain,
    CloseClient,
    Forwarding,
    Relay,
    forward,
    read_answer,
    timed_out,
)
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest, ErrorCode
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey
from splitbrain.nodes.wire.calls import TABLES, decode_reply, encode_call
from splitbrain.nodes.wire.envelopes import (
    FORWARDABLE,
    EnvelopeRefusedError,
    open_envelope,
    refused_envelope,
    seal_reply,
)
from splitbrain.nodes.wire.errors import ApiError, WireError
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    UnregisterBrokerRequest,
)
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.families.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    TopicToDelete,
)
from splitbrain.nodes.wire.messages import decode_answer, encode_request
from splitbrain.nodes.wire.principals import Principal
from tests.unit.nodes.controller.led_cluster import Cluster
from tests.unit.nodes.wire.declared_messages import messages

LOCALHOST = bytes((127, 0, 0, 1))
VERSIONS = [
    (key, version)
    for key in sorted(FORWARDED)
    if key is not ApiKey.DESCRIBE_QUORUM
    for version in range(TABLES[key].versions.lowest, TABLES[key].versions.highest + 1)
]


def sent(message: msgspec.Struct, version: int) -> Forwarding:
    return forward(encode_call(message, version, 42, "admin")[4:], LOCALHOST)


def relayed(forwarding: Forwarding, response: EnvelopeResponse) -> bytes:
    """Return the content of the frame that goes to the client."""
    outcome = read_answer(forwarding, response)
    assert isinstance(outcome, Relay)
    return outcome.frame[4:]


def codes_in(value: Any) -> set[int]:
    """Error codes anywhere in a message."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        own = {fields["error_code"]} if "error_code" in fields else set[int]()
        return own.union(*(codes_in(each) for each in fields.values()))
    if isinstance(value, tuple):
        return set[int]().union(*(codes_in(each) for each in value))  # pyright: ignore[reportUnknownVariableType]
    return set()


class Controller:
    """The other end: an active controller of ours behind the envelope."""

    def __init__(self) -> None:
        self.cluster = Cluster(1, 2)

    def take(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        try:
            call = open_envelope(envelope)
        except EnvelopeRefusedError as error:
            return refused_envelope(error.code)
        decision = HANDLERS[ApiKey(call.header.api_key)](
            self.cluster.view, call.message, call.header.api_version
        )
        self.cluster.append(decision.records)
        assert decision.answer is not None
        return seal_reply(decision.answer, call.header)


def topic(name: str) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=2, replication_factor=2, assignments=(), configs=()
    )


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_are_created_and_deleted_through_a_broker(version: int) -> None:
    controller = Controller()
    create = CreateTopicsRequest(topics=(topic("a"), topic("b/c")))
    forwarding = sent(create, version)
    content = relayed(forwarding, controller.take(forwarding.envelope))
    reply = decode_reply(content, ApiKey.CREATE_TOPICS, version)
    assert reply.correlation_id == 42
    created: Any = reply.message
    assert {each.name: each.error_code for each in created.topics} == {
        "a": ApiError.NONE,
        "b/c": ApiError.INVALID_TOPIC_EXCEPTION,
    }
    assert controller.cluster.image.topics.named("a") is not None

    gone = TopicToDelete(name="a", topic_id="0" * 32)
    delete = DeleteTopicsRequest(topics=(gone,), timeout_ms=1000)
    forwarding = sent(delete, 6)
    assert relayed(forwarding, controller.take(forwarding.envelope))
    assert controller.cluster.image.topics.named("a") is None


def test_a_request_that_was_carried_out_but_not_answered_is_refused_the_second_time() -> None:
    controller = Controller()
    forwarding = sent(CreateTopicsRequest(topics=(topic("a"),)), 7)
    controller.take(forwarding.envelope)
    content = relayed(forwarding, controller.take(forwarding.envelope))
    created: Any = decode_reply(content, ApiKey.CREATE_TOPICS, 7).message
    assert [each.error_code for each in created.topics] == [ApiError.TOPIC_ALREADY_EXISTS]


def test_the_client_and_its_address_travel_with_the_request() -> None:
    payload = encode_call(UnregisterBrokerRequest(broker_id=1), 0, 1, None)[4:]
    user = Principal(name="alice", token_authenticated=True)
    call = open_envelope(forward(payload, bytes(15) + b"\1", user).envelope)
    assert call.principal == user
    assert call.client_address == bytes(15) + b"\1"


def test_every_api_that_may_be_forwarded_is_but_the_one_that_only_brokers_use() -> None:
    known = {int(key) for key in ApiKey}
    assert FORWARDABLE & known - FORWARDED == {ApiKey.ALLOCATE_PRODUCER_IDS}
    assert FORWARDED <= FORWARDABLE
    request = AllocateProducerIdsRequest(broker_id=1)
    with pytest.raises(ValueError, match="no client's"):
        sent(request, 0)


def test_another_controller_is_asked_where_one_is_not_active() -> None:
    forwarding = sent(UnregisterBrokerRequest(broker_id=1), 0)
    answer = refused_envelope(ApiError.NOT_CONTROLLER)
    assert read_answer(forwarding, answer) == AskAgain()


def test_the_client_is_cut_off_where_the_controller_cannot_read_its_version() -> None:
    forwarding = sent(UnregisterBrokerRequest(broker_id=1), 0)
    answer = refused_envelope(ApiError.UNSUPPORTED_VERSION)
    assert read_answer(forwarding, answer) == CloseClient()


@pytest.mark.parametrize(
    "response",
    [
        refused_envelope(ApiError.PRINCIPAL_DESERIALIZATION_FAILURE),
        refused_envelope(ApiError.INVALID_REQUEST),
        refused_envelope(ApiError.CLUSTER_AUTHORIZATION_FAILED),
        EnvelopeResponse(response_data=None, error_code=0),
        EnvelopeResponse(response_data=b"\0\0\0\x2a", error_code=0),
        # A whole answer, but to another request.
        EnvelopeResponse(response_data=b"\0\0\0\x2b\0\0\0\0\0\0\0\0\0", error_code=0),
    ],
)
def test_what_is_between_broker_and_controller_is_no_business_of_the_client(
    response: EnvelopeResponse,
) -> None:
    forwarding = sent(UnregisterBrokerRequest(broker_id=1), 0)
    content = relayed(forwarding, response)
    reply: Any = decode_reply(content, ApiKey.UNREGISTER_BROKER, 0).message
    assert reply.error_code == ApiError.UNKNOWN_SERVER_ERROR


def test_the_frame_of_the_case_before_is_one_but_for_its_number() -> None:
    forwarding = sent(UnregisterBrokerRequest(broker_id=1), 0)
    content = b"\0\0\0\x2a\0\0\0\0\0\0\0\0\0"
    answer = EnvelopeResponse(response_data=content, error_code=0)
    assert read_answer(forwarding, answer) == Relay(b"\0\0\0\x0d" + content)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@given(data=st.data())
def test_a_request_that_nobody_answers_fails_in_every_part(
    key: ApiKey, version: int, data: st.DataObject
) -> None:
    request = data.draw(messages(TABLES[key].request, version))
    reply = decode_reply(timed_out(sent(request, version)).frame[4:], key, version)
    assert reply.correlation_id == 42
    timeout = {int(ApiError.REQUEST_TIMED_OUT)}
    if key is ApiKey.ELECT_LEADERS and version == 0:
        # No place for the whole: empty where no partition is named.
        assert codes_in(reply.message) <= timeout | {0}
        return
    assert codes_in(reply.message) in (timeout, set())
    wanted = next(
        (
            getattr(request, name)
            for name in ("topics", "topic_names", "resources")
            if getattr(request, name, None)
        ),
        (),
    )
    outcome = next(
        (
            getattr(reply.message, name)
            for name in ("topics", "responses", "results")
            if hasattr(reply.message, name)
        ),
        (),
    )
    if hasattr(request, "topics") or hasattr(request, "resources"):
        assert len(outcome) == len(wanted)


@pytest.mark.parametrize("version", range(SUPPORTED_VERSIONS[ApiKey.DESCRIBE_QUORUM].highest + 1))
def test_the_quorum_is_described_through_a_broker(version: int) -> None:
    payload = encode_request(DescribeQuorumRequest(), 42, "tool", version=version)[4:]
    forwarding = forward(payload, LOCALHOST)
    call = open_envelope(forwarding.envelope)
    answer = DescribeQuorumAnswer(ErrorCode.NONE, None, 3, 17, (), ())  # pyright: ignore[reportArgumentType]
    content = relayed(forwarding, seal_reply(answer, call.header))
    assert decode_answer(content, ApiKey.DESCRIBE_QUORUM, version).message == answer
    late: Any = decode_answer(timed_out(forwarding).frame[4:], ApiKey.DESCRIBE_QUORUM, version)
    assert late.message.error is ErrorCode.REQUEST_TIMED_OUT


def test_a_malformed_request_is_not_forwarded() -> None:
    payload = encode_call(UnregisterBrokerRequest(broker_id=1), 0, 1, None)[4:]
    with pytest.raises(WireError):
        forward(payload[:-1], LOCALHOST)
