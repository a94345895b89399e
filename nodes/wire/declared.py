"""Messages declared once: a struct's annotations are the table that the codec works from.

A message is a frozen ``msgspec.Struct`` whose fields stand in the order of the wire. A field's
annotation says its type there and, inside ``Annotated``, which versions have it. A version that
lacks a field reads its default. Writing a version that cannot say what the struct says is refused,
unless the field is ``IGNORABLE``: a message never silently says less. Tagged fields that a version
does not know are skipped (KIP-482).

Source: Kafka's message definitions (``clients/src/main/resources/common/message/README.md``).
"""

from functools import cache
from itertools import groupby
from operator import attrgetter
from struct import Struct, error
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, Union, get_args, get_origin
from typing import get_type_hints as type_hints

import msgspec

from splitbrain.nodes.wire import codec
from splitbrain.nodes.wire.codec import Kind, Packed, Scalar
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned

#: Highest version of a field that has not been removed.
_NEVER: Final = 1 << 15
#: The id that stands for none, 32 hex digits.
NO_UUID: Final = "0" * 32


class Rule(NamedTuple):
    """Facts that ``Annotated`` adds to a field's type; unset where None."""

    since: int | None = None
    until: int | None = None
    tag: int | None = None
    nullable_since: int | None = None
    ignorable: bool = False


#: Left out without a word where the version lacks the field.
IGNORABLE: Final = Rule(ignorable=True)

Int8: TypeAlias = Annotated[int, codec.INT8]
Int16: TypeAlias = Annotated[int, codec.INT16]
Uint16: TypeAlias = Annotated[int, codec.UINT16]
Int32: TypeAlias = Annotated[int, codec.INT32]
Int64: TypeAlias = Annotated[int, codec.INT64]
Float64: TypeAlias = Annotated[float, codec.FLOAT64]
Boolean: TypeAlias = Annotated[bool, codec.BOOLEAN]
#: 32 lower-case hex digits.
Uuid: TypeAlias = Annotated[str, codec.UUID]
String: TypeAlias = Annotated[str, codec.STRING]
NullableString: TypeAlias = Annotated[str | None, codec.NULLABLE_STRING]
Bytes: TypeAlias = Annotated[bytes, codec.BYTES]
NullableBytes: TypeAlias = Annotated[bytes | None, codec.NULLABLE_BYTES]


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
    """Return a message's fields in the wire's order; raises TypeError if one lacks its default."""
    struct = get_origin(message) or message
    hints = type_hints(struct, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    # The hints keep the order of declaration, which keyword-only structs do not.
    return tuple(
        _column(struct.__name__, _filled(hint, message), fields[name])
        for name, hint in hints.items()
        if name in fields
    )


def lowest_version(message: msgspec.Struct) -> int:
    """Return the first version that has a place for all that the message says."""
    needed = (
        column.since
        for column in columns(type(message))
        if getattr(message, column.name) != column.default
    )
    return max(needed, default=0)


@cache
def kind_of(message: type[msgspec.Struct], *, flexible: bool) -> Kind:
    """Base of messages that read and write themselves; values are instances of it.

    Writing raises ValueError where the version lacks a field that is not ignorable and not its
    default, or a value does not fit; reading raises WireError where the bytes are malformed.
    """
    return _StructOf(message, flexible=flexible)


class _Run:
    """Neighbouring fields of fixed size, packed at once: most of a message's time goes there."""

    def __init__(self, names: tuple[str, ...], layout: str) -> None:
        self._names = names
        self._values = attrgetter(*names)
        self._struct = Struct(">" + layout)

    def write(self, value: msgspec.Struct, version: int, parts: list[bytes]) -> None:
        try:
            parts.append(self._struct.pack(*self._values(value)))
        except error as problem:
            raise ValueError(f"{value!r} does not fit {self._names}: {problem}") from problem

    def read(self, buffer: bytes, position: int, version: int, fields: dict[str, Any]) -> int:
        end = position + self._struct.size
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        fields.update(zip(self._names, self._struct.unpack_from(buffer, position), strict=True))
        return end


class _Single:
    """One field of any kind."""

    def __init__(self, name: str, kind: Kind) -> None:
        self._name = name
        self._kind = kind

    def write(self, value: msgspec.Struct, version: int, parts: list[bytes]) -> None:
        self._kind.write(getattr(value, self._name), version, parts)

    def read(self, buffer: bytes, position: int, version: int, fields: dict[str, Any]) -> int:
        fields[self._name], position = self._kind.read(buffer, position, version)
        return position


class _Layout(NamedTuple):
    """One version of a message."""

    #: Fields in their place, grouped for speed.
    steps: tuple[_Run | _Single, ...]
    #: Those written by number, in its order.
    tagged: dict[int, tuple[Column, Kind]]
    #: Those that the version cannot say and that may not be left out.
    lacking: tuple[Column, ...]


class _StructOf:
    """Fields in their order, then the tagged ones, which only the flexible form has."""

    def __init__(self, message: type[msgspec.Struct], *, flexible: bool) -> None:
        self._message = get_origin(message) or message
        self._flexible = flexible
        self._kinds = [
            (column, _column_kind(column, flexible=flexible)) for column in columns(message)
        ]
        self._layouts: dict[int, _Layout] = {}

    def write(self, value: msgspec.Struct, version: int, parts: list[bytes]) -> None:
        layout = self._layouts.get(version) or self._lay_out(version)
        for column in layout.lacking:
            if getattr(value, column.name) != column.default:
                raise ValueError(
                    f"{self._message.__name__} version {version} has no {column.name}, "
                    f"which is {getattr(value, column.name)!r}"
                )
        for step in layout.steps:
            step.write(value, version, parts)
        if not self._flexible:
            return
        if not layout.tagged:
            parts.append(b"\0")
            return
        tagged: list[bytes] = []
        for number, (column, kind) in layout.tagged.items():
            given = getattr(value, column.name)
            if given != column.default:
                content: list[bytes] = []
                kind.write(given, version, content)
                size = sum(map(len, content))
                tagged.append(b"".join((encode_unsigned(number), encode_unsigned(size), *content)))
        parts += (encode_unsigned(len(tagged)), *tagged)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[msgspec.Struct, int]:
        layout = self._layouts.get(version) or self._lay_out(version)
        fields: dict[str, Any] = {}
        for step in layout.steps:
            position = step.read(buffer, position, version, fields)
        if not self._flexible:
            return self._message(**fields), position
        if buffer[position : position + 1] == b"\0":
            # Nearly all have no tagged fields.
            return self._message(**fields), position + 1
        position = _read_tagged(layout, buffer, position, version, fields)
        return self._message(**fields), position

    def _lay_out(self, version: int) -> _Layout:
        """Return a version's layout, made when it is first used."""
        there = [(column, kind) for column, kind in self._kinds if column.is_in(version)]
        placed = [(column.name, kind) for column, kind in there if column.tag is None]
        steps: list[_Run | _Single] = []
        for packed, group in groupby(placed, key=lambda pair: isinstance(pair[1], Packed)):
            members = tuple(group)
            if packed and len(members) > 1:
                layout = "".join(kind.layout for _, kind in members if isinstance(kind, Packed))
                steps.append(_Run(tuple(name for name, _ in members), layout))
            else:
                steps += [_Single(*member) for member in members]
        tagged = {column.tag: (column, kind) for column, kind in there if column.tag is not None}
        layout = self._layouts[version] = _Layout(
            steps=tuple(steps),
            tagged=dict(sorted(tagged.items())),
            lacking=tuple(
                column
                for column, _ in self._kinds
                if not column.ignorable and not column.is_in(version)
            ),
        )
        return layout


def _read_tagged(
    layout: _Layout, buffer: bytes, position: int, version: int, fields: dict[str, Any]
) -> int:
    """The position after the tagged fields; those that the version does not know are skipped."""
    count, position = decode_unsigned(buffer, position)
    previous = -1
    for _ in range(count):
        number, position = decode_unsigned(buffer, position)
        size, position = decode_unsigned(buffer, position)
        end = position + size
        if number <= previous or end > len(buffer):
            raise WireError(f"tagged field {number} before byte {position} is malformed")
        previous = number
        if number in layout.tagged:
            column, kind = layout.tagged[number]
            fields[column.name], position = kind.read(buffer[:end], position, version)
            if position != end:
                raise WireError(f"tagged field {number} is not as long as it announces")
        position = end
    return position


class _NullableStruct:
    """A struct behind a byte that says whether it is there."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def write(self, value: msgspec.Struct | None, version: int, parts: list[bytes]) -> None:
        codec.INT8.flexible.write(-1 if value is None else 1, version, parts)
        if value is not None:
            self._kind.write(value, version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        presence, position = codec.INT8.flexible.read(buffer, position, version)
        if presence < 0:
            return None, position
        return self._kind.read(buffer, position, version)


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


def _filled(hint: Any, message: Any) -> Any:
    """Return a field's annotation, with the parameters of a generic struct in their places."""
    given = get_args(message)
    return hint[given] if given and getattr(hint, "__parameters__", ()) else hint


def _column(message: str, hint: Any, field: msgspec.structs.FieldInfo) -> Column:
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
        raise TypeError(f"{message}.{field.name} is not in every version; it has no default")
    return column


def _column_kind(column: Column, *, flexible: bool) -> Kind:
    kind = _kind(column.hint, flexible=flexible)
    return _NullableSince(kind, column.nullable_since) if column.nullable_since else kind


def _kind(hint: Any, *, flexible: bool) -> Kind:
    """Return the kind that an annotation means; raises TypeError where it means none."""
    if get_origin(hint) is Annotated:
        base, *markers = get_args(hint)
        for marker in markers:
            if isinstance(marker, Scalar):
                return marker.flexible if flexible else marker.legacy
        return _kind(base, flexible=flexible)
    nullable = get_origin(hint) in (Union, UnionType)
    if nullable:
        (hint,) = [choice for choice in get_args(hint) if choice is not NoneType]
    origin = get_origin(hint) or hint
    if origin is tuple:
        item = _kind(get_args(hint)[0], flexible=flexible)
        return codec.TupleOf(item, codec.COMPACT if flexible else codec.LONG, nullable=nullable)
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        kind = kind_of(hint, flexible=flexible)
        return _NullableStruct(kind) if nullable else kind
    raise TypeError(f"no type of the wire is meant by {hint!r}")
