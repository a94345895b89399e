"""Every message has the bytes and the meaning that ``kio`` gives it, in every version.

``kio`` generates its schemas from Kafka's own message definitions, so it stands for Kafka here.
"""

import dataclasses
import datetime as dt
import enum
import importlib
import io
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from kio.serial import entity_reader, entity_writer

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, NodeId
from splitbrain.nodes.quorum.messages import Answer, ErrorCode, Request
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.messages import (
    Endpoint,
    api_key_of,
    encode_answer,
    encode_api_versions,
    encode_refusal,
    encode_request,
)
from splitbrain.nodes.wire.schemas import SCHEMAS
from tests.unit.nodes.wire.quorum_messages import (
    ANSWER_KEYS,
    answers,
    endpoint_maps,
    payload_of,
    request_as_carried,
    requests,
    versions_of,
)

KIO_NAMES = {
    ApiKey.FETCH: "fetch",
    ApiKey.FETCH_SNAPSHOT: "fetch_snapshot",
    ApiKey.VOTE: "vote",
    ApiKey.BEGIN_QUORUM_EPOCH: "begin_quorum_epoch",
    ApiKey.END_QUORUM_EPOCH: "end_quorum_epoch",
    ApiKey.DESCRIBE_QUORUM: "describe_quorum",
}
KIO_FIELDS = {
    "throttle_time": "throttle_time_ms",
    "max_wait": "max_wait_ms",
    "forgotten_topics_data": "forgotten_topics",
}


def kio_entity(api_key: ApiKey, version: int, direction: str) -> Any:
    module = importlib.import_module(f"kio.schema.{KIO_NAMES[api_key]}.v{version}.{direction}")
    camel = "".join(part.capitalize() for part in KIO_NAMES[api_key].split("_"))
    return getattr(module, camel + direction.capitalize())


def plain(value: Any) -> Any:
    """A kio entity as the field values that our own tables speak of."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            KIO_FIELDS.get(name, name): NO_DIRECTORY
            if content is None and (name.endswith("directory_id") or name == "topic_id")
            else plain(content)
            for name, content in fields.items()
        }
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, dt.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, enum.IntEnum):
        return int(value)
    return value


def assert_same_fields(ours: Any, theirs: Any) -> None:
    """Every field of kio's entity has our value; ours may have fields of later versions too."""
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            assert_same_fields(ours[name], value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_fields(our_item, their_item)
    else:
        assert ours == theirs


def assert_kio_agrees(body: bytes, api_key: ApiKey, version: int, direction: str) -> None:
    entity_type = kio_entity(api_key, version, direction)
    entity, size = entity_reader(entity_type)(body, 0)
    assert size == len(body)
    buffer = io.BytesIO()
    entity_writer(entity_type)(buffer, entity)
    assert buffer.getvalue() == body
    schema = getattr(SCHEMAS[api_key], direction)
    fields, _ = schema.read(body, 0, version)
    assert_same_fields(fields, plain(entity))


@given(requests)
def test_requests_equal_kio_byte_for_byte(request: Request) -> None:
    api_key = api_key_of(request)
    for version in versions_of(api_key):
        said = request_as_carried(request, version)
        leader = Endpoint("n1", 9093)
        payload = payload_of(encode_request(said, 7, "c", version=version, leader=leader))
        # Header 2: key, version, correlation id, one-letter client id, no tagged fields.
        assert payload[:12] == struct.pack(">hhih", api_key, version, 7, 1) + b"c\0"
        assert_kio_agrees(payload[12:], api_key, version, "request")


@given(answers, endpoint_maps)
def test_answers_equal_kio_byte_for_byte(answer: Answer, endpoints: dict[NodeId, Endpoint]) -> None:
    api_key = ANSWER_KEYS[type(answer)]
    for version in versions_of(api_key):
        header = RequestHeader(api_key, version, 7, None)
        payload = payload_of(encode_answer(answer, header, endpoints=endpoints))
        assert payload[:5] == struct.pack(">iB", 7, 0)
        assert_kio_agrees(payload[5:], api_key, version, "response")


@pytest.mark.parametrize("api_key", list(KIO_NAMES))
def test_refusals_equal_kio_byte_for_byte(api_key: ApiKey) -> None:
    for version in versions_of(api_key):
        refusal = encode_refusal(RequestHeader(api_key, version, 3, None), ErrorCode.NONE)
        assert_kio_agrees(refusal[9:], api_key, version, "response")


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_what_kio_reads(version: int) -> None:
    framed = encode_api_versions(RequestHeader(ApiKey.API_VERSIONS, version, 3, None))
    module = importlib.import_module(f"kio.schema.api_versions.v{version}.response")
    entity, size = entity_reader(module.ApiVersionsResponse)(framed[8:], 0)
    assert size == len(framed) - 8
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in entity.api_keys}
    assert listed == {int(key): tuple(versions) for key, versions in SUPPORTED_VERSIONS.items()}
