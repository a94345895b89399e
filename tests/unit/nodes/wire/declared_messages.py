"""Strategies for every declared message in every version, made from the declarations themselves."""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import TABLES
from splitbrain.nodes.wire.declared import (
    NO_UUID,
    Boolean,
    Bytes,
    Column,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableBytes,
    NullableString,
    String,
    Uint16,
    Uuid,
    columns,
)
from splitbrain.nodes.wire.errors import ApiError

CASES = [
    (api_key, version, direction)
    for api_key, table in TABLES.items()
    for version in range(table.versions.lowest, table.versions.highest + 1)
    for direction in ("request", "response")
]


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


texts = st.text(max_size=12)
blobs = st.binary(max_size=12)
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Int8, _integers(8)),
    (Int16, _integers(16)),
    (Uint16, st.integers(0, 0xFFFF)),
    (Int32, _integers(32)),
    (Int64, _integers(64)),
    (Boolean, st.booleans()),
    (Float64, st.floats(allow_nan=False)),
    (Uuid, st.just(NO_UUID) | st.binary(min_size=16, max_size=16).map(bytes.hex)),
    (String, texts),
    (NullableString, st.none() | texts),
    (Bytes, blobs),
    (NullableBytes, st.none() | blobs),
]


def message_type(api_key: ApiKey, direction: str) -> type[msgspec.Struct]:
    return getattr(TABLES[api_key], direction)


@cache
def messages(message: type[msgspec.Struct], version: int) -> st.SearchStrategy[Any]:
    """Draw a message of a version: its own fields at will, the others at their defaults."""
    present = {
        column.name: _column_values(column, version)
        for column in columns(message)
        if column.is_in(version)
    }
    return st.builds(message, **present)


def without_rules(hint: Any) -> Any:
    """A type as it is on the wire, without the versions that have it."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *markers = get_args(hint)
    for scalar, _ in SCALARS:
        if get_args(scalar)[1] in markers and get_args(scalar)[0] == base:
            return scalar
    return base


def item_of(hint: Any) -> tuple[Any, bool]:
    """The type without its null, and whether it may be null."""
    if get_origin(hint) in (Union, UnionType):
        (choice,) = [choice for choice in get_args(hint) if choice is not NoneType]
        return choice, True
    return hint, False


def _column_values(column: Column, version: int) -> st.SearchStrategy[Any]:
    if column.name.endswith("error_code"):
        # kio refuses the numbers that Kafka has no name for.
        return st.sampled_from(ApiError).map(int)
    if column.name == "unaligned_records":
        # Kafka has no null there, and we write none.
        return blobs
    values = _values(column.hint, version)
    if version < column.nullable_since:
        return values.filter(lambda value: value is not None)
    return values


def _values(hint: Any, version: int) -> st.SearchStrategy[Any]:
    hint = without_rules(hint)
    for scalar, strategy in SCALARS:
        if hint is scalar:
            return strategy
    hint, nullable = item_of(hint)
    if get_origin(hint) is tuple:
        values = st.lists(_values(get_args(hint)[0], version), max_size=3).map(tuple)
    else:
        values = messages(hint, version)
    return st.none() | values if nullable else values
