"""A struct's annotations as the table of the wire."""

from typing import Annotated

import msgspec
import pytest

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Int32,
    NullableString,
    String,
    columns,
    kind_of,
    since,
    tag,
)
from splitbrain.nodes.wire.errors import WireError


class Point(msgspec.Struct, frozen=True, kw_only=True):
    x: Int32
    label: Annotated[NullableString, since(2), IGNORABLE] = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    name: String = "line"
    start: Point
    end: Point | None
    others: Annotated[tuple[Point, ...], since(1), tag(3)] = ()


LINE = Line(start=Point(x=1), end=None, others=(Point(x=2),))


def written(value: msgspec.Struct, version: int, *, flexible: bool) -> bytes:
    parts: list[bytes] = []
    kind_of(type(value), flexible=flexible).write(value, version, parts)
    return b"".join(parts)


def test_fields_go_in_the_order_of_the_declaration() -> None:
    assert [column.name for column in columns(Line)] == ["name", "start", "end", "others"]


def test_both_forms_have_the_bytes_that_the_protocol_says() -> None:
    bare = msgspec.structs.replace(LINE, others=())
    assert written(bare, 0, flexible=False) == b"\0\4line" + b"\0\0\0\1" + b"\xff"
    assert written(LINE, 1, flexible=True) == (
        b"\5line" + b"\0\0\0\1\0" + b"\xff" + b"\1\3\6" + b"\2\0\0\0\2\0"
    )


def test_a_nullable_struct_that_is_there_comes_back() -> None:
    whole = msgspec.structs.replace(LINE, end=Point(x=9, label="z"))
    raw = written(whole, 2, flexible=True)
    assert kind_of(Line, flexible=True).read(raw, 0, 2) == (whole, len(raw))


def test_an_ignorable_field_is_left_out_and_another_one_refused() -> None:
    assert written(Point(x=1, label="p"), 1, flexible=True) == b"\0\0\0\1\0"
    with pytest.raises(ValueError, match="Line version 0 has no others"):
        written(LINE, 0, flexible=True)


def test_null_and_numbers_that_do_not_fit_are_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        written(Point(x=1 << 40), 0, flexible=True)
    with pytest.raises(ValueError, match="do not fit a field of 32767"):
        written(Line(name="n" * 0x8000, start=Point(x=1), end=None), 0, flexible=False)


@pytest.mark.parametrize("raw", [b"\xff\xff", b"\x80\0", b"\0\4lin", b"\0"])
def test_a_string_with_a_wrong_size_is_refused(raw: bytes) -> None:
    with pytest.raises(WireError):
        kind_of(Line, flexible=False).read(raw, 0, 0)


def test_a_field_that_some_version_lacks_must_have_a_default() -> None:
    class Careless(msgspec.Struct, frozen=True, kw_only=True):
        late: Annotated[Int32, since(1)]

    with pytest.raises(TypeError, match=r"Careless\.late is not in every version"):
        kind_of(Careless, flexible=True)


def test_an_annotation_without_a_wire_type_is_refused() -> None:
    class Vague(msgspec.Struct, frozen=True, kw_only=True):
        number: int

    with pytest.raises(TypeError, match="no type of the wire"):
        kind_of(Vague, flexible=True)
