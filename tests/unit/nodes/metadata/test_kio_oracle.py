"""Every record has the bytes and the meaning that ``kio`` gives to it, in every version.

``kio`` has no metadata records: its entities are declared here, from Kafka's definitions and not
from our structs.
"""

import dataclasses
import io
import uuid
from functools import cache
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import f64, i8, i16, i32, i64, u16

from splitbrain.nodes.metadata.serde import decode_record, encode_record
from tests.unit.nodes.metadata.definitions import (
    BY_NAME,
    VERSIONS,
    Definition,
    FieldDefinition,
    records_of,
)

PYTHON_TYPES: dict[str, Any] = {
    "bool": bool,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "uint16": u16,
    "float64": f64,
    "string": str,
    "bytes": bytes,
    "uuid": uuid.UUID | None,
}
CLASS_FIELDS = ("__type__", "__version__", "__flexible__", "__api_key__")
DEFAULTS: dict[str, Any] = {"null": None, "true": True, "false": False}


def entity(name: str, fields: tuple[FieldDefinition, ...], version: int, key: int | None) -> Any:
    """A dataclass as kio generates them."""
    columns: list[Any] = []
    for field in fields:
        if not field.there(version):
            continue
        metadata: dict[str, Any] = {} if field.fields else {"kafka_type": field.type}
        if field.tag is not None:
            metadata["tag"] = field.tag
        single = (
            entity(field.type, field.fields, version, key)
            if field.fields
            else PYTHON_TYPES[field.type]
        )
        whole = tuple[single, ...] if field.is_array else single
        kwargs: dict[str, Any] = {"metadata": metadata}
        if field.tag is not None:
            kwargs["default"] = default_of(field)
        columns.append(
            (
                field.name,
                whole | None if field.is_nullable else whole,
                dataclasses.field(**kwargs),
            )
        )
    namespace = {
        "__type__": EntityType.nested if key is None else EntityType.request,
        "__version__": i16(version),
        "__flexible__": True,
        "__api_key__": i16(key or 0),
        "__header_schema__": RequestHeader,
        "__annotations__": dict.fromkeys(CLASS_FIELDS, ClassVar),
    }
    return dataclasses.make_dataclass(name, columns, frozen=True, kw_only=True, namespace=namespace)


def default_of(field: FieldDefinition) -> Any:
    if field.default in DEFAULTS:
        return DEFAULTS[field.default]
    return () if field.is_array else int(field.default or 0)


@cache
def entity_of(definition_name: str, version: int) -> Any:
    definition = BY_NAME[definition_name]
    return entity(definition.name, definition.fields, version, definition.api_key)


def plain(value: Any) -> Any:
    """Ours and kio's values in one spelling; the UUID of zeros is None in kio."""
    if dataclasses.is_dataclass(value):
        return {
            column.name: plain(getattr(value, column.name)) for column in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.hex if isinstance(value, uuid.UUID) else value


def ours_plain(value: Any, fields: tuple[FieldDefinition, ...], version: int) -> Any:
    there = [field for field in fields if field.there(version)]
    return {field.name: _our_field(getattr(value, field.name), field, version) for field in there}


def _our_field(value: Any, field: FieldDefinition, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_our_item(item, field, version) for item in value]
    return _our_item(value, field, version)


def _our_item(value: Any, field: FieldDefinition, version: int) -> Any:
    if field.fields:
        return ours_plain(value, field.fields, version)
    return None if field.type == "uuid" and value == "0" * 32 else value


@pytest.mark.parametrize(("definition", "version"), VERSIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_records_equal_kio_byte_for_byte(
    definition: Definition, version: int, data: st.DataObject
) -> None:
    record = data.draw(records_of(definition, version))
    encoded = encode_record(record, version)
    assert encoded[:3] == bytes((1, definition.api_key, version))
    body = encoded[3:]
    of_kio = entity_of(definition.name, version)
    theirs, size = entity_reader(of_kio)(body, 0)
    assert size == len(body)
    assert plain(theirs) == ours_plain(record, definition.fields, version)
    buffer = io.BytesIO()
    entity_writer(of_kio)(buffer, theirs)
    assert buffer.getvalue() == body
    assert decode_record(encoded) == record
