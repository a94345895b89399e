"""Messages declared once: a struct's annotations are the table that the codec works from.

A message is a frozen ``msgspec.Struct`` whose fields stand in the order of the wire. A field's
annotation says its type there (``Int32``, ``String``, ``tuple[Int32, ...]``, another struct, with
``| None`` where null is allowed) and, inside ``Annotated``, which versions have it. ``kind_of``
turns the struct into what reads and writes it, in the flexible form or the older one.

A version that lacks a field reads its default, so such a field must have one. Writing a version
that cannot say what the struct says is refused, unless the field is ``IGNORABLE``: a message never
silently says less. Reading trusts no size, as everywhere in this room.

Source: Kafka's message definitions (``clients/src/main/resources/common/message/README.md``).
"""

from collections.abc import Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, Union, get_args, get_origin
from typing import get_type_hints as type_hints

import msgspec

from splitbrain.nodes.wire.codec import (
    BOOLEAN,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_BYTES,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    Field,
    Kind,
    StructureOf,
)
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.legacy import (
    LEGACY_BYTES,
    LEGACY_NULLABLE_BYTES,
    LEGACY_NULLABLE_STRING,
    LEGACY_STRING,
    read_item_count,
    write_item_count,
)
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned

#: Highest version of a field that has not been removed.
_NEVER: Final = 1 << 15
#: The id that stands for none, 32 hex digits.
NO_UUID: Final = "0" * 32


class Scalar(NamedTuple):
    """A primitive type: how each of the two forms writes it."""

    flexible: Kind
    legacy: Kind


class Rule(NamedTuple):
    """What ``Annotated`` says of a field besides its type; unset where None."""

    since: int | None = None
    until: int | None = None
    tag: int | None = None
    nullable_since: int | None = None
    ignorable: bool = False


#: Left out without a word where the version lacks the field.
IGNORABLE: Final = Rule(ignorable=True)

Int8: TypeAlias = Annotated[int, Scalar(INT8, INT8)]
Int16: TypeAlias = Annotated[int, Scalar(INT16, INT16)]
Uint16: TypeAlias = Annotated[int, Scalar(UINT16, UINT16)]
Int32: TypeAlias = Annotated[int, Scalar(INT32, INT32)]
Int64: TypeAlias = Annotated[int, Scalar(INT64, INT64)]
Boolean: TypeAlias = Annotated[bool, Scalar(BOOLEAN, BOOLEAN)]
#: 32 hex digits.
Uuid: TypeAlias = Annotated[str, Scalar(UUID, UUID)]
String: TypeAlias = Annotated[str, Scalar(STRING, LEGACY_STRING)]
NullableString: TypeAlias = Annotated[str | None, Scalar(NULLABLE_STRING, LEGACY_NULLABLE_STRING)]
Bytes: TypeAlias = Annotated[bytes, Scalar(BYTES, LEGACY_BYTES)]
NullableBytes: TypeAlias = Annotated[bytes | None, Scalar(NULLABLE_BYTES, LEGACY_NULLABLE_BYTES)]


def since(version: int) -> Rule:
    """First version that has the field."""
    return Rule(since=version)


def until(version: int) -> Rule:
    """Last version that has the field."""
    return Rule(until=version)


def tag(number: int) -> Rule:
    """Number under which the field is written where it is not its default (KIP-482)."""
    return Rule(tag=number)


def nullable_since(version: int) -> Rule:
    """First version in which the field may be null; its type says ``| None``."""
    return Rule(nullable_since=version)


class Column(NamedTuple):
    """One field of a declared message, as its annotation says."""

    name: str
    hint: Any
    default: Any
    since: int
    until: int
    tag: int | None
    nullable_since: int
    ignorable: bool

    def is_in(self, version: int) -> bool:
        """Whether a version has the field."""
        return self.since <= version <= self.until


@cache
def columns(message: type[msgspec.Struct]) -> tuple[Column, ...]:
    """The fields of a message in the order of the wire.

    Raises:
        TypeError: a field that some version lacks, or a tagged one, has no default.
    """
    hints = type_hints(message, include_extras=True)
    defaults = {field.name: field for field in msgspec.structs.fields(message)}
    return tuple(_column(message, hints[name], defaults[name]) for name in _names(message, hints))


@cache
def kind_of(message: type[msgspec.Struct], *, flexible: bool) -> Kind:
    """What reads and writes a message; values are instances of it.

    Writing raises ValueError where the version lacks a field that is not ignorable and not its
    default, or a value does not fit; reading raises WireError where the bytes are malformed.
    """
    return _StructOf(message, flexible=flexible)


class _StructOf:
    """Values are instances of one struct."""

    def __init__(self, message: type[msgspec.Struct], *, flexible: bool) -> None:
        self._message = message
        self._columns = columns(message)
        fields = [
            Field(
                column.name,
                _column_kind(column, flexible=flexible),
                **({} if column.default is msgspec.NODEFAULT else {"default": column.default}),
                tag=column.tag,
                since=column.since,
                until=column.until,
            )
            for column in self._columns
        ]
        self._structure = StructureOf(*fields, flexible=flexible)
        self._unsaid: dict[int, tuple[Column, ...]] = {}

    def write(self, value: msgspec.Struct, version: int, parts: list[bytes]) -> None:
        fields = msgspec.structs.asdict(value)
        for column in self._lacking(version):
            if fields[column.name] != column.default:
                raise ValueError(
                    f"{self._message.__name__} version {version} has no {column.name}, "
                    f"which is {fields[column.name]!r}"
                )
        self._structure.write(fields, version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[msgspec.Struct, int]:
        fields, position = self._structure.read(buffer, position, version)
        return self._message(**fields), position

    def _lacking(self, version: int) -> tuple[Column, ...]:
        """Fields that a version cannot say and that may not be left out; made at first use."""
        lacking = self._unsaid.get(version)
        if lacking is None:
            lacking = self._unsaid[version] = tuple(
                column
                for column in self._columns
                if not column.ignorable and not column.is_in(version)
            )
        return lacking


class _NullableStruct:
    """A struct behind a byte that says whether it is there."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def write(self, value: msgspec.Struct | None, version: int, parts: list[bytes]) -> None:
        INT8.write(-1 if value is None else 1, version, parts)
        if value is not None:
            self._kind.write(value, version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        presence, position = INT8.read(buffer, position, version)
        if presence < 0:
            return None, position
        return self._kind.read(buffer, position, version)


class _TupleOf:
    """An array of one kind as a tuple; None for a null one."""

    def __init__(self, item: Kind, *, nullable: bool, flexible: bool) -> None:
        self._item = item
        self._nullable = nullable
        self._flexible = flexible

    def write(self, value: Sequence[Any] | None, version: int, parts: list[bytes]) -> None:
        if value is None and not self._nullable:
            raise ValueError("a null array where the field has none")
        count = None if value is None else len(value)
        if self._flexible:
            parts.append(encode_unsigned(0 if count is None else count + 1))
        else:
            write_item_count(count, parts)
        for item in value or ():
            self._item.write(item, version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        if self._flexible:
            size, position = decode_unsigned(buffer, position)
            count = size - 1 if size else None
        else:
            count, position = read_item_count(buffer, position)
        if count is None:
            if not self._nullable:
                raise WireError(f"null array before byte {position}")
            return None, position
        # Every item takes a byte at least.
        if count > len(buffer) - position:
            raise WireError(f"an array of {count} items at byte {position} runs past the end")
        items: list[Any] = []
        for _ in range(count):
            item, position = self._item.read(buffer, position, version)
            items.append(item)
        return tuple(items), position


class _NullableSince:
    """A nullable kind that earlier versions have without null."""

    def __init__(self, kind: Kind, version: int) -> None:
        self._kind = kind
        self._since = version

    def write(self, value: Any, version: int, parts: list[bytes]) -> None:
        if value is None and version < self._since:
            raise ValueError(f"null in version {version}, where the field has none")
        self._kind.write(value, version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        value, position = self._kind.read(buffer, position, version)
        if value is None and version < self._since:
            raise WireError(f"null before byte {position}, where version {version} has none")
        return value, position


def _names(message: type[msgspec.Struct], hints: dict[str, Any]) -> list[str]:
    """Names in the order of declaration, which keyword-only structs keep."""
    return [name for name in hints if name in message.__struct_fields__]


def _column(message: type[msgspec.Struct], hint: Any, field: msgspec.structs.FieldInfo) -> Column:
    markers = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    rules = [marker for marker in markers if isinstance(marker, Rule)]
    column = Column(
        name=field.name,
        hint=hint,
        default=field.default,
        since=max((rule.since or 0 for rule in rules), default=0),
        until=min((_NEVER if rule.until is None else rule.until for rule in rules), default=_NEVER),
        tag=next((rule.tag for rule in rules if rule.tag is not None), None),
        nullable_since=max((rule.nullable_since or 0 for rule in rules), default=0),
        ignorable=any(rule.ignorable for rule in rules),
    )
    sometimes = column.since > 0 or column.until < _NEVER or column.tag is not None
    if sometimes and column.default is msgspec.NODEFAULT:
        raise TypeError(
            f"{message.__name__}.{field.name} is not in every version; it has no default"
        )
    return column


def _column_kind(column: Column, *, flexible: bool) -> Kind:
    kind = _kind(column.hint, flexible=flexible)
    return _NullableSince(kind, column.nullable_since) if column.nullable_since else kind


def _kind(hint: Any, *, flexible: bool) -> Kind:
    """The kind that an annotation means.

    Raises:
        TypeError: it means none.
    """
    if get_origin(hint) is Annotated:
        base, *markers = get_args(hint)
        for marker in markers:
            if isinstance(marker, Scalar):
                return marker.flexible if flexible else marker.legacy
        return _kind(base, flexible=flexible)
    nullable = get_origin(hint) in (Union, UnionType)
    if nullable:
        (hint,) = [choice for choice in get_args(hint) if choice is not NoneType]
    if get_origin(hint) is tuple:
        item = _kind(get_args(hint)[0], flexible=flexible)
        return _TupleOf(item, nullable=nullable, flexible=flexible)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        kind = kind_of(hint, flexible=flexible)
        return _NullableStruct(kind) if nullable else kind
    raise TypeError(f"no type of the wire is meant by {hint!r}")
