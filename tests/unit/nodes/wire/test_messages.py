"""Every message of the core as a Kafka frame: back again, and never a crash."""

import contextlib
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, UNKNOWN_OFFSET, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.nodes.wire.apis import METADATA_TOPIC_ID, SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.nodes.wire.calls import encode_reply, read_correlation_id
from splitbrain.nodes.wire.errors import (
    CorruptBatchError,
    ForeignPartitionError,
    UnsupportedAnswerError,
    UnsupportedApiError,
    WireError,
)
from splitbrain.nodes.wire.families import quorum as kafka
from splitbrain.nodes.wire.messages import (
    Endpoint,
    api_key_of,
    decode_answer,
    decode_request,
    encode_answer,
    encode_api_versions,
    encode_refusal,
    encode_request,
)
from splitbrain.nodes.wire.requests import request_to_kafka
from tests.unit.nodes.quorum.replicas import fetch_request, vote_request
from tests.unit.nodes.wire.mutations import mutate
from tests.unit.nodes.wire.quorum_messages import (
    ANSWER_KEYS,
    answer_as_carried,
    answers,
    endpoint_maps,
    payload_of,
    request_as_carried,
    requests,
    versions_of,
)


@given(requests, st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=20))
def test_requests_come_back_in_every_version(
    request: core.Request, correlation_id: int, client_id: str | None
) -> None:
    api_key = api_key_of(request)
    for version in versions_of(api_key):
        carried = request
        if isinstance(request, core.VoteRequest) and version < 2:
            carried = msgspec.structs.replace(request, pre_vote=False)
        framed = encode_request(carried, correlation_id, client_id, version=version)
        received = decode_request(payload_of(framed))
        assert received.header == RequestHeader(api_key, version, correlation_id, client_id)
        assert received.message == request_as_carried(request, version)


@given(answers, st.integers(-(2**31), 2**31 - 1), endpoint_maps)
def test_answers_come_back_in_every_version(
    answer: core.Answer, correlation_id: int, endpoints: dict[NodeId, Endpoint]
) -> None:
    api_key = ANSWER_KEYS[type(answer)]
    for version in versions_of(api_key):
        header = RequestHeader(api_key, version, correlation_id, None)
        payload = payload_of(encode_answer(answer, header, endpoints=endpoints))
        assert read_correlation_id(payload) == correlation_id
        received = decode_answer(payload, api_key, version)
        assert received.correlation_id == correlation_id
        assert received.message == answer_as_carried(answer, version)


@settings(max_examples=300)
@given(requests, answers, st.data())
def test_mutated_frames_raise_wire_errors_only(
    request: core.Request, answer: core.Answer, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(versions_of(api_key_of(request))))
    carried = request_as_carried(request, version)
    payload = mutate(data, encode_request(carried, 7, "c", version=version)[4:])
    with contextlib.suppress(WireError):
        decode_request(payload)
    api_key = ANSWER_KEYS[type(answer)]
    version = data.draw(st.sampled_from(versions_of(api_key)))
    payload = encode_answer(answer, RequestHeader(api_key, version, 7, None))[4:]
    with contextlib.suppress(WireError):
        decode_answer(mutate(data, payload), api_key, version)


@given(st.binary(max_size=60))
def test_garbage_raises_wire_errors_only(garbage: bytes) -> None:
    for api_key in SUPPORTED_VERSIONS:
        for version in versions_of(api_key):
            head = struct.pack(">hhihB", api_key, version, 1, -1, 0)
            with contextlib.suppress(WireError):
                decode_request(head + garbage)
            with contextlib.suppress(WireError):
                decode_answer(garbage, api_key, version)


def test_unknown_tagged_fields_are_skipped() -> None:
    answer = core.VoteAnswer(ErrorCode.NONE, NodeId(1), Epoch(5), granted=True)
    framed = encode_answer(answer, RequestHeader(ApiKey.VOTE, 2, 1, None))
    # The message ends with its count of tagged fields: one, number 77, three bytes.
    payload = framed[4:-1] + b"\x01\x4d\x03abc"
    assert decode_answer(payload, ApiKey.VOTE, 2).message == answer


def test_an_api_that_is_not_the_quorums_is_named_whatever_its_version() -> None:
    with pytest.raises(UnsupportedApiError) as caught:
        decode_request(struct.pack(">hhihB", ApiKey.CREATE_TOPICS, 3, 1, -1, 0))
    assert (caught.value.api_key, caught.value.api_version) == (ApiKey.CREATE_TOPICS, 3)


def test_request_about_another_topic_can_be_refused_by_its_header() -> None:
    payload = encode_request(core.DescribeQuorumRequest(), 9, "tool")[4:]
    foreign = payload.replace(b"__cluster_metadata", b"__cluster_mistakes")
    with pytest.raises(ForeignPartitionError) as caught:
        decode_request(foreign)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    refusal = encode_refusal(caught.value.header, caught.value.code)
    answer = decode_answer(refusal[4:], ApiKey.DESCRIBE_QUORUM, 2)
    assert answer.correlation_id == 9
    assert answer.message == core.DescribeQuorumAnswer(
        ErrorCode.INVALID_REQUEST, None, NO_EPOCH, UNKNOWN_OFFSET, (), ()
    )


@pytest.mark.parametrize("api_key", list(ANSWER_KEYS.values()))
def test_refusals_are_read_as_answers_with_the_error(api_key: ApiKey) -> None:
    for version in versions_of(api_key):
        header = RequestHeader(api_key, version, 3, None)
        refusal = encode_refusal(header, ErrorCode.INCONSISTENT_CLUSTER_ID)
        message = decode_answer(refusal[4:], api_key, version).message
        assert getattr(message, "error", None) is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_fetch_of_another_topic_id_is_refused_as_kafka_does() -> None:
    payload = encode_request(fetch_request(), 9, None)[4:]
    foreign = payload.replace(bytes(15) + b"\x01", bytes(15) + b"\x02")
    with pytest.raises(ForeignPartitionError) as caught:
        decode_request(foreign)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_whole_response_errors_and_partition_errors_go_where_kafka_puts_them() -> None:
    header = RequestHeader(ApiKey.VOTE, 2, 1, None)
    cluster = core.VoteAnswer(ErrorCode.INCONSISTENT_CLUSTER_ID, None, Epoch(2), granted=False)
    fenced = core.VoteAnswer(ErrorCode.FENCED_LEADER_EPOCH, None, Epoch(2), granted=False)
    assert encode_answer(cluster, header)[9:11] == struct.pack(">h", 104)
    assert encode_answer(fenced, header)[9:11] == struct.pack(">h", 0)


def test_error_code_without_a_name_here_is_an_unknown_server_error() -> None:
    refusal = encode_refusal(RequestHeader(ApiKey.VOTE, 2, 1, None), ErrorCode.INVALID_REQUEST)
    payload = refusal[4:9] + struct.pack(">h", 55) + refusal[11:]
    message = decode_answer(payload, ApiKey.VOTE, 2).message
    assert isinstance(message, core.VoteAnswer)
    assert message.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_leaders_endpoint_is_told_where_it_is_known() -> None:
    answer = core.VoteAnswer(ErrorCode.NONE, NodeId(2), Epoch(5), granted=False)
    header = RequestHeader(ApiKey.VOTE, 1, 1, None)
    framed = encode_answer(answer, header, endpoints={NodeId(2): Endpoint("n2", 9093)})
    assert b"\x03n2" + struct.pack(">H", 9093) in framed
    assert b"n2" not in encode_answer(answer, header, endpoints={NodeId(3): Endpoint("n2", 1)})


def test_records_pass_untouched_and_a_cut_last_batch_is_dropped() -> None:
    first = encode_payloads(Offset(0), Epoch(1), 1, [(None, b"a")])
    second = encode_payloads(Offset(1), Epoch(1), 1, [(None, b"b")])
    answer = core.FetchAnswer(
        ErrorCode.NONE, NodeId(1), Epoch(1), Offset(1), Offset(0), None, (), first + second[:-3]
    )
    framed = encode_answer(answer, RequestHeader(ApiKey.FETCH, 18, 1, None))
    assert first + second[:-3] in framed
    message = decode_answer(framed[4:], ApiKey.FETCH, 18).message
    assert isinstance(message, core.FetchAnswer)
    assert message.records == first
    assert message.batches == (core.BatchHeader(Offset(0), Offset(0), Epoch(1), len(first)),)


def test_corrupt_records_in_an_answer_are_refused() -> None:
    raw = bytearray(encode_payloads(Offset(0), Epoch(1), 1, [(None, b"a")]))
    raw[-2] ^= 1
    answer = core.FetchAnswer(
        ErrorCode.NONE, NodeId(1), Epoch(1), Offset(1), Offset(0), None, (), bytes(raw)
    )
    framed = encode_answer(answer, RequestHeader(ApiKey.FETCH, 17, 1, None))
    with pytest.raises(CorruptBatchError):
        decode_answer(framed[4:], ApiKey.FETCH, 17)


def test_answer_that_points_to_half_a_snapshot_is_told_by_name() -> None:
    partition = kafka.FetchedPartition(
        partition_index=0,
        error_code=0,
        high_watermark=9,
        log_start_offset=5,
        records=b"",
        snapshot_id=kafka.SnapshotId(end_offset=5, epoch=-1),
    )
    topic = kafka.IdentifiedTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    response = kafka.FetchResponse(error_code=0, responses=(topic,))
    framed = encode_reply(response, RequestHeader(ApiKey.FETCH, 17, 1, None))
    with pytest.raises(UnsupportedAnswerError, match="snapshot that ends at offset 5"):
        decode_answer(framed[4:], ApiKey.FETCH, 17)


def test_pre_vote_is_never_sent_as_a_vote() -> None:
    request = vote_request(pre_vote=True)
    with pytest.raises(ValueError, match="no pre_vote"):
        encode_request(request, 1, None, version=1)


def test_an_empty_logs_epoch_is_told_as_0_since_kafkas_nodes_take_none_below() -> None:
    for request, field, version in (
        (vote_request(), "last_offset_epoch", 1),
        (fetch_request(), "last_fetched_epoch", 17),
    ):
        message: Any = request_to_kafka(request, None)
        assert getattr(message.topics[0].partitions[0], field) == 0
        framed = encode_request(request, 1, None, version=version)
        assert decode_request(payload_of(framed)).message == request


def test_api_versions_of_the_future_is_answered_in_version_0() -> None:
    # A client of a later release: header 2, then a body that we cannot know.
    payload = struct.pack(">hhih", 18, 9, 31, 3) + b"new\0\x01\x02\x03"
    received = decode_request(payload)
    assert isinstance(received.message, ApiVersionsRequest)
    framed = encode_api_versions(received.header)
    assert framed[4:] == struct.pack(">ihihhh", 31, 35, 1, 18, 0, 4)
