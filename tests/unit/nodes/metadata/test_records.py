"""Metadata records: Kafka's own bytes, round trips, and what is refused."""

import base64
import json
import tracemalloc
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.errors import RecordError, UnknownRecordError
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import (
    RECORD_TYPES,
    decode_record,
    encode_record,
    record_type_of,
    written_version,
)
from splitbrain.nodes.wire import codec
from splitbrain.nodes.wire.declared import columns
from splitbrain.nodes.wire.varints import encode_unsigned
from tests.unit.nodes.metadata.definitions import (
    DEFINITIONS,
    FOLDER,
    NESTED,
    VERSIONS,
    Definition,
    FieldDefinition,
    any_records,
    records_of,
)
from tests.unit.nodes.wire.declared_messages import item_of, without_rules

UUID = "0123456789abcdef" * 2
TOPIC = records.TopicRecord(name="t", topic_id=UUID)


def test_all_types_and_versions_of_kafka_are_known() -> None:
    ours = [(known.api_key, known.struct.__name__, known.version_max) for known in RECORD_TYPES]
    assert ours == [(each.api_key, each.name, each.version_max) for each in DEFINITIONS]
    assert (len(ours), len(VERSIONS)) == (26, 37)


def from_json(data: dict[str, Any], fields: tuple[FieldDefinition, ...]) -> dict[str, Any]:
    """Field values of a vector, in our spelling."""
    values: dict[str, Any] = {}
    for field in fields:
        name = field.kafka_name[0].lower() + field.kafka_name[1:]
        if name in data:
            said = data[name]
            values[field.name] = (
                tuple(item_from_json(item, field) for item in said)
                if field.is_array and said is not None
                else item_from_json(said, field)
            )
    return values


def item_from_json(said: Any, field: FieldDefinition) -> Any:
    if said is None:
        return None
    if field.fields:
        return NESTED[field.type](**from_json(said, field.fields))
    if field.type == "uuid":
        return base64.urlsafe_b64decode(said + "==").hex()
    return base64.b64decode(said) if field.type == "bytes" else said


def test_bytes_are_those_of_kafka() -> None:
    by_key = {definition.api_key: definition for definition in DEFINITIONS}
    seen: list[tuple[Definition, int]] = []
    for line in (FOLDER / "record_vectors.tsv").read_text().splitlines():
        said, _, encoded = line.partition("\t")
        vector = json.loads(said)
        definition = by_key[vector["type"]]
        record = definition.struct(**from_json(vector["data"], definition.fields))
        assert encode_record(record, vector["version"]).hex() == encoded
        assert decode_record(bytes.fromhex(encoded)) == record
        seen.append((definition, vector["version"]))
    assert [pair for pair in VERSIONS if pair not in seen] == []


@given(any_records())
def test_what_is_written_by_default_is_read_back(record: MetadataRecord) -> None:
    encoded = encode_record(record)
    assert decode_record(encoded) == record
    assert encoded[2] == written_version(record) <= record_type_of(record).version_max


def test_registration_changes_are_written_in_the_lowest_version_that_can_say_them() -> None:
    change = records.BrokerRegistrationChangeRecord
    said = [
        change(1, 2, fenced=1),
        change(1, 2, in_controlled_shutdown=1),
        change(1, 2, log_dirs=(UUID,)),
        change(1, 2, cordoned_log_dirs=()),
    ]
    assert [written_version(record) for record in said] == [0, 1, 2, 3]
    assert [encode_record(record)[2] for record in said] == [0, 1, 2, 3]


def test_a_version_without_a_place_for_what_is_said_is_refused() -> None:
    change = records.BrokerRegistrationChangeRecord(1, 2, log_dirs=(UUID,))
    with pytest.raises(ValueError, match="version 1 has no log_dirs"):
        encode_record(change, 1)
    with pytest.raises(ValueError, match="TopicRecord has no version 1"):
        encode_record(TOPIC, 1)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (records.TopicRecord(None, UUID), "null where"),  # pyright: ignore[reportArgumentType]
        (records.TopicRecord(name="t", topic_id="ab"), "not a UUID"),
        (records.UnregisterBrokerRecord(1 << 31, 0), "does not fit"),
        (records.PartitionChangeRecord(topic_id=UUID, isr=(1, 1 << 31)), "does not fit"),
        (
            records.DelegationTokenRecord("o", "r", None, 0, 0, 0, "t"),  # pyright: ignore[reportArgumentType]
            "null where",
        ),
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(
    record: MetadataRecord, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        encode_record(record)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ((1, 6, 0), "record type 6 "),
        ((1, 29, 0), "record type 29 "),
        ((1, 1 << 20, 3), "record type 1048576 "),
        ((1, 2, 1), "TopicRecord .* has version 1; this build reads up to 0"),
        ((1, 3, 3), "PartitionRecord .* has version 3; this build reads up to 2"),
    ],
)
def test_unknown_types_and_versions_are_refused_by_name(
    head: tuple[int, int, int], problem: str
) -> None:
    data = b"".join(map(encode_unsigned, head)) + encode_record(TOPIC)[3:]
    with pytest.raises(UnknownRecordError, match=problem) as caught:
        decode_record(data)
    assert (caught.value.api_key, caught.value.version) == head[1:]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut short"),
        (b"\0" + encode_record(TOPIC)[1:], "unknown frame version 0"),
        (b"\2" + encode_record(TOPIC)[1:], "unknown frame version 2"),
        (encode_record(TOPIC) + b"\0\0", "2 bytes are left over after a TopicRecord"),
    ],
)
def test_frames_that_are_no_record_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        decode_record(data)


def test_tagged_fields_that_nobody_knows_are_skipped() -> None:
    encoded = encode_record(TOPIC)
    assert encoded.endswith(b"\0")
    later = encoded[:-1] + b"\2" + b"\x03\1x" + b"\x90\x4e\2yz"
    assert decode_record(later) == TOPIC
    # A tag that only a later version knows, in an earlier one.
    change = records.BrokerRegistrationChangeRecord(1, 2, cordoned_log_dirs=(UUID,))
    encoded = encode_record(change)
    assert encoded[2] == 3
    earlier = encoded[:2] + b"\0" + encoded[3:]
    assert decode_record(earlier) == records.BrokerRegistrationChangeRecord(1, 2)


@settings(max_examples=600)
@given(any_records(), st.data())
@example(TOPIC, None)
def test_mutated_bytes_raise_the_typed_error_or_are_read(
    record: MetadataRecord, data: st.DataObject | None
) -> None:
    encoded = bytearray(encode_record(record))
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            position = data.draw(st.integers(0, len(encoded) - 1))
            encoded[position] = data.draw(st.integers(0, 255))
        end = data.draw(st.integers(0, len(encoded)) | st.just(len(encoded)))
        del encoded[end:]
    try:
        read = decode_record(bytes(encoded))
    except RecordError:
        return
    assert isinstance(read, MetadataRecord)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes_raise_the_typed_error_or_are_read(
    which: tuple[Definition, int], body: bytes
) -> None:
    definition, version = which
    try:
        read = decode_record(bytes((1, definition.api_key, version)) + body)
    except RecordError:
        return
    assert type(read) is definition.struct


@pytest.mark.parametrize("size", [30, 1 << 20, (1 << 31) - 1, (1 << 63) - 1])
def test_a_huge_array_is_refused_before_anything_is_allocated(size: int) -> None:
    partition = b"\1\3\2" + b"\0" * 4 + bytes(16) + encode_unsigned(size) + bytes(100)
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="runs past the end"):
            decode_record(partition)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("definition", "version"), VERSIONS)
@settings(max_examples=10)
@given(data=st.data())
def test_every_cut_of_a_record_is_refused(
    definition: Definition, version: int, data: st.DataObject
) -> None:
    encoded = encode_record(data.draw(records_of(definition, version)), version)
    for end in range(len(encoded)):
        with pytest.raises(RecordError):
            decode_record(encoded[:end])


ZEROS: dict[str, Any] = {"bool": False, "string": "", "bytes": b"", "uuid": "0" * 32}
WORDS: dict[str | None, Any] = {"null": None, "true": True, "false": False}
NULLABLE = {codec.NULLABLE_STRING: codec.STRING, codec.NULLABLE_BYTES: codec.BYTES}


def assert_declared(hint: Any, field: FieldDefinition) -> None:
    """That a field's annotation says its type, and whether it is an array and may be null."""
    hint, is_nullable = item_of(without_rules(hint))
    is_array = get_origin(hint) is tuple
    hint = without_rules(get_args(hint)[0]) if is_array else hint
    if field.fields:
        assert hint is NESTED[field.type]
        assert_fields(hint, field.fields)
    else:
        scalar = get_args(hint)[1]
        is_nullable |= scalar in NULLABLE
        assert NULLABLE.get(scalar, scalar) is getattr(
            codec, field.type.upper().replace("BOOL", "BOOLEAN")
        )
    assert (is_array, is_nullable) == (field.is_array, field.is_nullable)


def assert_fields(struct: type[msgspec.Struct], fields: tuple[FieldDefinition, ...]) -> None:
    for column, field in zip(columns(struct), fields, strict=True):
        assert (column.name, column.since, column.tag) == (field.name, field.since, field.tag)
        assert not column.ignorable
        assert_declared(column.hint, field)
        zero = () if field.is_array else ZEROS.get(field.type, 0)
        said = field.default and WORDS.get(field.default, field.default)
        default = zero if field.default is None else said
        assert column.default is msgspec.NODEFAULT or str(column.default) == str(default)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_every_record_is_declared_as_kafka_defines_it(definition: Definition) -> None:
    # That declarations have the bytes that they should is for ``test_calls``, by kio.
    assert_fields(definition.struct, definition.fields)
