"""A forwarded request arrives whole, and a wrong envelope has Kafka's code."""

import contextlib
import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.default_principal_data.v0 import DefaultPrincipalData
from kio.serial import entity_reader, entity_writer
from msgspec.structs import replace

from splitbrain.nodes.quorum.identifiers import Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest, ErrorCode
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import TABLES, decode_reply, encode_call
from splitbrain.nodes.wire.envelopes import (
    FORWARDABLE,
    EnvelopeRefusedError,
    envelope_of,
    open_envelope,
    refused_envelope,
    seal_frame,
    seal_reply,
)
from splitbrain.nodes.wire.errors import ApiError, ForeignPartitionError, WireError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, UnregisterBrokerRequest
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.families.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsResponse,
)
from splitbrain.nodes.wire.messages import Endpoint, decode_answer, encode_refusal, encode_request
from splitbrain.nodes.wire.principals import (
    ANONYMOUS,
    Principal,
    decode_principal,
    encode_principal,
)
from tests.unit.nodes.wire.declared_messages import messages
from tests.unit.nodes.wire.mutations import mutate

LOCALHOST = bytes((127, 0, 0, 1))
UNREGISTER = encode_call(UnregisterBrokerRequest(broker_id=4), 0, 9, "tool")[4:]
FORWARDED = [
    (api_key, version)
    for api_key, table in TABLES.items()
    if api_key in FORWARDABLE and api_key is not ApiKey.DESCRIBE_QUORUM
    for version in range(table.versions.lowest, table.versions.highest + 1)
]
principals = st.builds(
    Principal,
    type=st.text(max_size=9),
    name=st.text(max_size=300),
    token_authenticated=st.booleans(),
)


def enveloped(request_data: bytes, **more: Any) -> EnvelopeRequest:
    fields: dict[str, Any] = {
        "request_principal": encode_principal(ANONYMOUS),
        "client_host_address": LOCALHOST,
    }
    return EnvelopeRequest(request_data=request_data, **fields | more)


def refusal_of(envelope: EnvelopeRequest) -> ApiError:
    with pytest.raises(EnvelopeRefusedError) as caught:
        open_envelope(envelope)
    return caught.value.code


@given(principals)
def test_principals_equal_kio_byte_for_byte(principal: Principal) -> None:
    content = encode_principal(principal)
    assert content[:2] == b"\0\0"
    theirs, size = entity_reader(DefaultPrincipalData)(content, 2)
    assert 2 + size == len(content)
    assert (theirs.type_, theirs.name, theirs.token_authenticated) == (
        principal.type,
        principal.name,
        principal.token_authenticated,
    )
    buffer = io.BytesIO()
    entity_writer(DefaultPrincipalData)(buffer, theirs)
    assert content[2:] == buffer.getvalue()
    assert decode_principal(content) == principal


def test_the_anonymous_principal_has_the_bytes_that_kafka_gives_it() -> None:
    assert encode_principal(ANONYMOUS) == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"


@pytest.mark.parametrize("content", [b"", b"\0", b"\0\1\5User\2a\0\0", b"\0\0\5User\0\0\0"])
def test_what_is_no_principal_is_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        decode_principal(content)


def test_a_name_that_kafka_would_not_read_is_neither_written_nor_read() -> None:
    with pytest.raises(ValueError, match="too long"):
        encode_principal(Principal(name="n" * 0x8000))
    longest = encode_principal(Principal(name="n" * 0x7FFF))
    longer = longest.replace(b"\x80\x80\x02n", b"\x81\x80\x02nn")
    assert len(longer) == len(longest) + 1
    with pytest.raises(WireError, match="too long"):
        decode_principal(longer)


@pytest.mark.parametrize(
    ("api_key", "version"), FORWARDED, ids=[f"{key.name.lower()}-v{v}" for key, v in FORWARDED]
)
@given(data=st.data())
def test_a_forwarded_request_and_its_answer_arrive_as_they_were_sent(
    api_key: ApiKey, version: int, data: st.DataObject
) -> None:
    principal = data.draw(principals)
    message = data.draw(messages(TABLES[api_key].request, version))
    address = data.draw(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
    call = encode_call(message, version, 77, "admin")
    forwarded = open_envelope(envelope_of(call[4:], principal, address))
    assert forwarded.header == RequestHeader(api_key, version, 77, "admin")
    assert forwarded.message == message
    assert forwarded.principal == principal
    assert forwarded.client_address == address

    answer = data.draw(messages(TABLES[api_key].response, version))
    sealed = seal_reply(answer, forwarded.header)
    if sealed.error_code == ApiError.NOT_CONTROLLER:
        assert str(int(ApiError.NOT_CONTROLLER)) in repr(answer)
        return
    assert sealed.response_data is not None
    reply = decode_reply(sealed.response_data, api_key, version)
    assert (reply.correlation_id, reply.message) == (77, answer)


def test_the_quorums_own_request_travels_too() -> None:
    call = encode_request(DescribeQuorumRequest(), 3, "tool", version=1)[4:]
    forwarded = open_envelope(envelope_of(call, ANONYMOUS, LOCALHOST))
    assert forwarded.message == DescribeQuorumRequest()
    answer = DescribeQuorumAnswer(ErrorCode.NONE, NodeId(1), Epoch(4), Offset(17), (), ())
    sealed = seal_reply(answer, forwarded.header, endpoints={NodeId(1): Endpoint("n1", 9093)})
    assert sealed.response_data is not None
    received = decode_answer(sealed.response_data, ApiKey.DESCRIBE_QUORUM, 1)
    assert (received.correlation_id, received.message) == (3, answer)

    nobody = DescribeQuorumAnswer(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, None, Epoch(4), Offset(-1), (), ()
    )
    assert seal_reply(nobody, forwarded.header) == refused_envelope(ApiError.NOT_CONTROLLER)


def test_a_quorum_request_about_another_partition_is_answered_within_the_envelope() -> None:
    call = encode_request(DescribeQuorumRequest(), 3, "tool", version=1)[4:]
    other = call.replace(b"__cluster_metadata", b"__cluster_metadatb")
    with pytest.raises(ForeignPartitionError) as caught:
        open_envelope(enveloped(other))
    sealed = seal_frame(encode_refusal(caught.value.header, caught.value.code))
    assert sealed.error_code == ApiError.NONE
    assert sealed.response_data is not None
    assert sealed.response_data[:4] == struct.pack(">i", 3)


def test_an_answer_that_no_controller_gave_is_told_by_the_envelope() -> None:
    header = RequestHeader(ApiKey.DELETE_TOPICS, 6, 1, None)
    refused = DeletedTopic(
        name="t", error_code=ApiError.NOT_CONTROLLER, error_message=None, topic_id="0" * 32
    )
    for parts in ((refused,), (replace(refused, error_code=ApiError.NONE), refused)):
        answer = DeleteTopicsResponse(throttle_time_ms=0, responses=parts)
        assert seal_reply(answer, header) == EnvelopeResponse(
            response_data=None, error_code=ApiError.NOT_CONTROLLER
        )
    missing = replace(refused, error_code=ApiError.UNKNOWN_TOPIC_OR_PARTITION)
    answer = DeleteTopicsResponse(throttle_time_ms=0, responses=(missing,))
    assert seal_reply(answer, header).error_code == ApiError.NONE


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (enveloped(UNREGISTER, request_principal=None), ApiError.PRINCIPAL_DESERIALIZATION_FAILURE),
        (
            enveloped(UNREGISTER, request_principal=b"\0\1\5User\2a\0\0"),
            ApiError.PRINCIPAL_DESERIALIZATION_FAILURE,
        ),
        (enveloped(UNREGISTER, client_host_address=b""), ApiError.INVALID_REQUEST),
        (enveloped(UNREGISTER, client_host_address=bytes(5)), ApiError.INVALID_REQUEST),
        # No header; a client id that is cut short; an API that there is not, or no more.
        (enveloped(b""), ApiError.UNSUPPORTED_VERSION),
        (enveloped(struct.pack(">hhih", 64, 0, 1, 5)), ApiError.UNSUPPORTED_VERSION),
        (enveloped(struct.pack(">hhih", 999, 0, 1, -1)), ApiError.UNSUPPORTED_VERSION),
        (enveloped(struct.pack(">hhih", 7, 0, 1, -1)), ApiError.UNSUPPORTED_VERSION),
        # APIs that there are, but not to be forwarded: Produce, a heartbeat, another envelope.
        (enveloped(struct.pack(">hhih", 0, 9, 1, -1)), ApiError.INVALID_REQUEST),
        (enveloped(struct.pack(">hhih", 63, 99, 1, -1)), ApiError.INVALID_REQUEST),
        (enveloped(encode_call(enveloped(UNREGISTER), 0, 1, None)[4:]), ApiError.INVALID_REQUEST),
        # Forwarded, but in a version or with a body that is not read here: the second is of ACLs.
        (enveloped(struct.pack(">hhihB", 64, 1, 1, -1, 0)), ApiError.UNSUPPORTED_VERSION),
        (enveloped(struct.pack(">hhihB", 30, 3, 1, -1, 0)), ApiError.UNSUPPORTED_VERSION),
        (enveloped(UNREGISTER[:-3]), ApiError.UNSUPPORTED_VERSION),
        (enveloped(UNREGISTER + b"\0"), ApiError.UNSUPPORTED_VERSION),
    ],
)
def test_what_is_wrong_with_an_envelope_has_kafkas_code(
    envelope: EnvelopeRequest, code: ApiError
) -> None:
    assert refusal_of(envelope) is code
    assert refused_envelope(code) == EnvelopeResponse(response_data=None, error_code=code)


def test_the_principal_is_looked_at_before_the_address_and_that_before_the_request() -> None:
    nothing_right = EnvelopeRequest(
        request_data=b"", request_principal=b"", client_host_address=b""
    )
    assert refusal_of(nothing_right) is ApiError.PRINCIPAL_DESERIALIZATION_FAILURE
    assert refusal_of(enveloped(b"", client_host_address=b"")) is ApiError.INVALID_REQUEST


def test_a_broker_puts_nothing_into_an_envelope_that_a_controller_would_refuse() -> None:
    heartbeat = BrokerHeartbeatRequest(
        broker_id=1, current_metadata_offset=0, want_fence=False, want_shut_down=False
    )
    with pytest.raises(ValueError, match="API 63 is not to be forwarded"):
        envelope_of(encode_call(heartbeat, 1, 1, None)[4:], ANONYMOUS, LOCALHOST)
    with pytest.raises(ValueError, match="4 or 16 bytes, not 3"):
        envelope_of(UNREGISTER, ANONYMOUS, bytes(3))


def test_an_answer_of_another_api_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="does not answer DELETE_TOPICS"):
        seal_reply(
            CreateTopicsResponse(throttle_time_ms=0, topics=()),
            RequestHeader(ApiKey.DELETE_TOPICS, 6, 1, None),
        )


@given(data=st.data())
def test_broken_envelopes_are_refused_and_nothing_else(data: st.DataObject) -> None:
    call = encode_call(CreateTopicsRequest(topics=()), 7, 1, "c")[4:]
    envelope = enveloped(
        mutate(data, call), request_principal=mutate(data, encode_principal(ANONYMOUS))
    )
    with contextlib.suppress(EnvelopeRefusedError, ForeignPartitionError):
        open_envelope(envelope)
