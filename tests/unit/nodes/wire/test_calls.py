"""Every message of every API, in every version: as ``kio`` has it, back, never a crash.

``kio`` generates its schemas from Kafka's own message definitions, so it stands for Kafka here.
"""

import contextlib
import dataclasses
import datetime as dt
import importlib
import io
import pkgutil
import struct
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import (
    TABLES,
    ReceivedCall,
    ReceivedReply,
    decode_call,
    decode_reply,
    encode_call,
    encode_reply,
)
from splitbrain.nodes.wire.declared import NO_UUID, columns
from splitbrain.nodes.wire.errors import UnsupportedApiError, WireError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, UnregisterBrokerRequest
from splitbrain.nodes.wire.families.topics import (
    CreateTopicsResponse,
)
from tests.unit.nodes.wire.declared_messages import CASES, message_type, messages
from tests.unit.nodes.wire.mutations import mutate

EXAMPLES_COUNT = 12
ids = [f"{key.name.lower()}-v{version}-{direction}" for key, version, direction in CASES]


def kio_type(api_key: ApiKey, version: int, direction: str) -> Any:
    name = api_key.name.lower()
    module = importlib.import_module(f"kio.schema.{name}.v{version}.{direction}")
    return getattr(module, message_type(api_key, direction).__name__)


def framed(message: msgspec.Struct, api_key: ApiKey, version: int, direction: str) -> bytes:
    if direction == "request":
        return encode_call(message, version, 7, "c")
    return encode_reply(message, RequestHeader(api_key, version, 7, "c"))


def body_of(frame: bytes, api_key: ApiKey, version: int, direction: str) -> bytes:
    """A frame's message without size and header; the header is checked on the way."""
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    flexible = TABLES[api_key].is_flexible(version)
    if direction == "request":
        head = struct.pack(">hhih", api_key, version, 7, 1) + b"c" + (b"\0" if flexible else b"")
    else:
        tagged = flexible and api_key is not ApiKey.API_VERSIONS
        head = struct.pack(">i", 7) + (b"\0" if tagged else b"")
    assert frame[4:].startswith(head)
    return frame[4 + len(head) :]


def as_kio_names(name: str) -> str:
    """kio keeps clear of Python's words and makes durations of milliseconds."""
    return name.removesuffix("_").removesuffix("_ms")


def assert_same_meaning(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, msgspec.Struct):
        present = [column for column in columns(type(ours)) if column.is_in(version)]
        their_names = [field.name for field in dataclasses.fields(theirs)]
        assert [as_kio_names(column.name) for column in present] == [
            as_kio_names(name) for name in their_names
        ]
        for column, name in zip(present, their_names, strict=True):
            assert_same_meaning(getattr(ours, column.name), getattr(theirs, name), version)
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_meaning(our_item, their_item, version)
    elif isinstance(theirs, uuid.UUID):
        assert ours == theirs.hex
    elif isinstance(theirs, dt.timedelta):
        assert ours == round(theirs.total_seconds() * 1000)
    else:
        # kio reads the id that stands for none as None.
        assert ours == theirs or (ours == NO_UUID and theirs is None)


@pytest.mark.parametrize(("api_key", "version", "direction"), CASES, ids=ids)
def test_messages_equal_kio_byte_for_byte_and_come_back(
    api_key: ApiKey, version: int, direction: str
) -> None:
    entity_type = kio_type(api_key, version, direction)
    read, write = entity_reader(entity_type), entity_writer(entity_type)

    @settings(max_examples=EXAMPLES_COUNT)
    @given(messages(message_type(api_key, direction), version))
    def check(message: msgspec.Struct) -> None:
        frame = framed(message, api_key, version, direction)
        body = body_of(frame, api_key, version, direction)
        entity, size = read(body, 0)
        assert size == len(body)
        buffer = io.BytesIO()
        write(buffer, entity)
        assert buffer.getvalue() == body
        assert_same_meaning(message, entity, version)
        if direction == "request":
            header = RequestHeader(api_key, version, 7, "c")
            assert decode_call(frame[4:]) == ReceivedCall(header, message)
        else:
            assert decode_reply(frame[4:], api_key, version) == ReceivedReply(7, message)

    check()


@pytest.mark.parametrize("api_key", TABLES, ids=lambda api_key: api_key.name.lower())
def test_the_table_has_every_version_that_kafka_supports(api_key: ApiKey) -> None:
    package = importlib.import_module(f"kio.schema.{api_key.name.lower()}")
    theirs = {int(module.name[1:]) for module in pkgutil.iter_modules(package.__path__)}
    lowest, highest = TABLES[api_key].versions
    ours = set(range(lowest, highest + 1))
    assert ours == theirs or (api_key in SUPPORTED_VERSIONS and ours < theirs)
    for version in ours:
        for direction in ("request", "response"):
            entity_type = kio_type(api_key, version, direction)
            assert entity_type.__api_key__ == api_key
            assert entity_type.__flexible__ == TABLES[api_key].is_flexible(version)


@settings(max_examples=400)
@given(st.sampled_from(CASES), st.data())
def test_mutated_bytes_raise_wire_errors_only(
    case: tuple[ApiKey, int, str], data: st.DataObject
) -> None:
    api_key, version, direction = case
    message = data.draw(messages(message_type(api_key, direction), version))
    payload = mutate(data, framed(message, api_key, version, direction)[4:])
    with contextlib.suppress(WireError):
        if direction == "request":
            decode_call(payload)
        else:
            decode_reply(payload, api_key, version)


@settings(max_examples=30)
@given(st.binary(max_size=60))
def test_garbage_raises_wire_errors_only(garbage: bytes) -> None:
    for api_key, version, direction in CASES:
        with contextlib.suppress(WireError):
            if direction == "request":
                decode_call(struct.pack(">hhihB", api_key, version, 1, -1, 0) + garbage)
            else:
                decode_reply(garbage, api_key, version)


def test_an_array_that_announces_a_billion_items_is_refused_without_allocating() -> None:
    flexible = struct.pack(">hhihB", ApiKey.CREATE_TOPICS, 7, 1, -1, 0) + b"\xff\xff\xff\xff\x0f"
    legacy = struct.pack(">hhih", ApiKey.CREATE_TOPICS, 4, 1, -1) + b"\x7f\xff\xff\xff"
    for payload in (flexible, legacy):
        with pytest.raises(WireError, match=r"items at byte .* runs past the end"):
            decode_call(payload)
    # kio 0.6.5 ends the process on this answer: it allocates 32 GiB for the topics.
    with pytest.raises(WireError, match="runs past the end"):
        decode_reply(struct.pack(">iBh", 1, 0, 0) + b"\xff\xff\xff\xff\x0f", ApiKey.VOTE, 2)


def test_a_string_that_announces_more_than_there_is_is_refused() -> None:
    flexible = (
        struct.pack(">hhihB", ApiKey.CREATE_TOPICS, 7, 1, -1, 0) + b"\x02\xff\xff\xff\xff\x0f"
    )
    legacy = struct.pack(">hhihih", ApiKey.CREATE_TOPICS, 4, 1, -1, 1, 0x7FFF)
    for payload in (flexible, legacy):
        with pytest.raises(WireError, match=r"bytes at byte .* runs past the end"):
            decode_call(payload)


def test_null_is_refused_where_the_version_has_none() -> None:
    # Metadata asks for all topics by null from version 1 on.
    null_topics = b"\xff\xff\xff\xff"
    with pytest.raises(WireError, match="where version 0 has none"):
        decode_call(struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1) + null_topics)
    received = decode_call(struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + null_topics)
    assert getattr(received.message, "topics", ()) is None


def test_what_a_version_cannot_say_is_refused_not_left_out() -> None:
    heartbeat = BrokerHeartbeatRequest(
        broker_id=1,
        current_metadata_offset=5,
        want_fence=False,
        want_shut_down=False,
        offline_log_dirs=("ab" * 16,),
    )
    with pytest.raises(ValueError, match="version 0 has no offline_log_dirs"):
        encode_call(heartbeat, 0, 1, None)
    assert decode_call(encode_call(heartbeat, 1, 1, None)[4:]).message == heartbeat


@pytest.mark.parametrize(
    ("api_key", "version"), [(999, 0), (ApiKey.VOTE, 3), (ApiKey.METADATA, 14)]
)
def test_requests_without_a_table_are_named(api_key: int, version: int) -> None:
    with pytest.raises(UnsupportedApiError) as caught:
        decode_call(struct.pack(">hhihB", api_key, version, 1, -1, 0))
    assert (caught.value.api_key, caught.value.api_version) == (api_key, version)


def test_a_version_or_an_answer_of_another_api_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="UNREGISTER_BROKER version 1 is not spoken here"):
        encode_call(UnregisterBrokerRequest(broker_id=1), 1, 1, None)
    created = CreateTopicsResponse(throttle_time_ms=0, topics=())
    with pytest.raises(ValueError, match="CreateTopicsResponse does not answer DELETE_TOPICS"):
        encode_reply(created, RequestHeader(ApiKey.DELETE_TOPICS, 6, 1, None))
