"""Kafka's message encoding, driven by tables: integers, compact strings and arrays, tagged fields.

Covers the *flexible* form (KIP-482), which every message of the quorum has; ``nodes.wire.legacy``
adds what older versions of the other messages need. Values are plain: ints,
bools, strings, bytes, 32 hex digits for a UUID, lists for arrays and dicts by field name for
structures. Reading never trusts a length: it checks it against the bytes that are there before it
allocates, and it skips tagged fields that it does not know.

Why not ``kio``, which the tests use as the oracle: its native reader (0.6.5) allocates what an
array announces, so that a frame of ten bytes ends the process, and it refuses unknown tagged
fields, which Kafka's rules say to skip.

Source: Kafka's protocol guide, "Protocol Primitive Types"; KIP-482.
"""

import struct
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned

#: Decoded fields of one structure.
Fields = dict[str, Any]
#: Highest version of a field that has not been removed.
_NEVER: Final = 1 << 15
_REQUIRED: Final = object()


class Kind(Protocol):
    """How values of one type are written and read in one version of a message."""

    def write(self, value: Any, version: int, parts: list[bytes]) -> None:
        """Append the encoded value to ``parts``."""
        ...

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        """The value at ``position``, and the position after it; raises WireError."""
        ...


class _Packed:
    """A value of fixed size."""

    def __init__(self, layout: str) -> None:
        self.layout = layout
        self._struct = struct.Struct(">" + layout)

    def write(self, value: Any, version: int, parts: list[bytes]) -> None:
        try:
            parts.append(self._struct.pack(value))
        except struct.error as error:
            raise ValueError(f"{value!r} does not fit its field: {error}") from error

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        end = position + self._struct.size
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        return self._struct.unpack_from(buffer, position)[0], end

    @property
    def size_bytes(self) -> int:
        """Bytes of every value."""
        return self._struct.size

    def write_all(self, values: Sequence[Any]) -> bytes:
        """Values without a gap."""
        try:
            return struct.pack(f">{len(values)}{self.layout}", *values)
        except struct.error as error:
            raise ValueError(f"{values!r} does not fit its field: {error}") from error

    def read_all(self, buffer: bytes, position: int, count: int) -> tuple[Any, ...]:
        """Values without a gap; the buffer holds them."""
        return struct.unpack_from(f">{count}{self.layout}", buffer, position)


class _Uuid:
    """16 bytes, as 32 hex digits."""

    size_bytes: Final = 16

    def write(self, value: str, version: int, parts: list[bytes]) -> None:
        raw = bytes.fromhex(value)
        if len(raw) != 16:
            raise ValueError(f"{value!r} is not a UUID of 32 hex digits")
        parts.append(raw)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[str, int]:
        end = position + 16
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        return buffer[position:end].hex(), end

    def write_all(self, values: Sequence[str]) -> bytes:
        """Values without a gap."""
        parts: list[bytes] = []
        for value in values:
            self.write(value, 0, parts)
        return b"".join(parts)

    def read_all(self, buffer: bytes, position: int, count: int) -> tuple[str, ...]:
        """Values without a gap; the buffer holds them."""
        digits = buffer[position : position + 16 * count].hex()
        return tuple([digits[at : at + 32] for at in range(0, 32 * count, 32)])


class _Blob:
    """Compact bytes; None where null is allowed."""

    def __init__(self, *, nullable: bool) -> None:
        self._nullable = nullable

    def write(self, value: bytes | None, version: int, parts: list[bytes]) -> None:
        if value is None:
            if not self._nullable:
                raise ValueError("null where the field has none")
            parts.append(b"\0")
            return
        parts.append(encode_unsigned(len(value) + 1))
        parts.append(value)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[bytes | None, int]:
        size, position = decode_unsigned(buffer, position)
        if size == 0:
            if not self._nullable:
                raise WireError(f"null before byte {position}, where the field has none")
            return None, position
        end = position + size - 1
        if end > len(buffer):
            raise WireError(f"a field of {size - 1} bytes at byte {position} runs past the end")
        return buffer[position:end], end


class _Text:
    """Compact UTF-8; None where null is allowed."""

    def __init__(self, *, nullable: bool) -> None:
        self._blob = _Blob(nullable=nullable)

    def write(self, value: str | None, version: int, parts: list[bytes]) -> None:
        self._blob.write(None if value is None else value.encode(), version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[str | None, int]:
        raw, end = self._blob.read(buffer, position, version)
        try:
            return None if raw is None else raw.decode(), end
        except UnicodeDecodeError as error:
            raise WireError(f"the string before byte {end} is not UTF-8") from error


class ArrayOf:
    """A compact array of one kind, as a list, or as a tuple where ``frozen``.

    Null, where it is allowed, is read as an empty list; or as None where ``frozen``, for those to
    whom the difference means something.
    """

    def __init__(self, item: Kind, *, nullable: bool = False, frozen: bool = False) -> None:
        self._item = item
        self._nullable = nullable
        self._frozen = frozen
        self._collect: type[list[Any] | tuple[Any, ...]] = tuple if frozen else list
        #: Items of fixed size are read and written at once.
        self._fixed = item if isinstance(item, _Packed | _Uuid) else None
        # Every item takes a byte at least.
        self._item_bytes = self._fixed.size_bytes if self._fixed else 1

    def write(self, value: Sequence[Any] | None, version: int, parts: list[bytes]) -> None:
        """Append the encoded array."""
        if value is None:
            if not self._nullable:
                raise ValueError("null where the array has none")
            parts.append(b"\0")
            return
        parts.append(encode_unsigned(len(value) + 1))
        if self._fixed is not None:
            if value:
                parts.append(self._fixed.write_all(value))
            return
        for item in value:
            self._item.write(item, version, parts)

    def read(
        self, buffer: bytes, position: int, version: int
    ) -> tuple[list[Any] | tuple[Any, ...] | None, int]:
        """The items, and the position after the array; raises WireError."""
        size, position = decode_unsigned(buffer, position)
        if size <= 1:
            return self._read_nothing(size, position), position
        end = position + (size - 1) * self._item_bytes
        if end > len(buffer):
            raise WireError(f"an array of {size - 1} items at byte {position} runs past the end")
        if self._fixed is not None:
            return self._collect(self._fixed.read_all(buffer, position, size - 1)), end
        items: list[Any] = []
        for _ in range(size - 1):
            item, position = self._item.read(buffer, position, version)
            items.append(item)
        return self._collect(items), position

    def _read_nothing(self, size: int, position: int) -> list[Any] | tuple[Any, ...] | None:
        if size == 1:
            return self._collect()
        if not self._nullable:
            raise WireError(f"null array before byte {position}")
        return None if self._frozen else self._collect()


class Field(NamedTuple):
    """A field of a structure."""

    name: str
    kind: Kind
    #: Written where the caller gives nothing, and read where a version lacks the field.
    default: Any = _REQUIRED
    #: None for a field in its place; else the number under which it is written if not default.
    tag: int | None = None
    #: First and last version that has it.
    since: int = 0
    until: int = _NEVER


class _Run:
    """Neighbouring fields of fixed size, packed at once: most of a message's time goes there."""

    def __init__(self, fields: tuple[Field, ...], layout: str) -> None:
        self._fields = fields
        self._names = tuple(field.name for field in fields)
        self._struct = struct.Struct(">" + layout)

    def write(self, value: Mapping[str, Any], version: int, parts: list[bytes]) -> None:
        try:
            parts.append(self._struct.pack(*[_given(field, value) for field in self._fields]))
        except struct.error as error:
            raise ValueError(f"{value!r} does not fit {self._names}: {error}") from error

    def read(self, buffer: bytes, position: int, version: int, fields: Fields) -> int:
        end = position + self._struct.size
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        fields.update(zip(self._names, self._struct.unpack_from(buffer, position), strict=True))
        return end


class _Single:
    """One field of any kind."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._kind = field.kind

    def write(self, value: Mapping[str, Any], version: int, parts: list[bytes]) -> None:
        self._kind.write(_given(self._field, value), version, parts)

    def read(self, buffer: bytes, position: int, version: int, fields: Fields) -> int:
        fields[self._field.name], position = self._kind.read(buffer, position, version)
        return position


class StructureOf:
    """Fields in their order, then the tagged ones, which only the flexible form has."""

    def __init__(self, *fields: Field, flexible: bool = True) -> None:
        self._flexible = flexible
        self._plain = tuple(field for field in fields if field.tag is None)
        tagged = [field for field in fields if field.tag is not None]
        self._tagged = {field.tag or 0: field for field in sorted(tagged, key=_tag)}
        #: What a version lacks, and every tagged field: what they are if nothing says otherwise.
        self._defaults: dict[int, Fields] = {}
        self._steps: dict[int, tuple[_Run | _Single, ...]] = {}

    def write(self, value: Mapping[str, Any], version: int, parts: list[bytes]) -> None:
        """Append the encoded structure.

        Raises:
            ValueError: a field without default is missing, or a value does not fit.
        """
        for step in self._steps.get(version) or self._plan(version):
            step.write(value, version, parts)
        if not self._flexible:
            return
        if not self._tagged:
            parts.append(b"\0")
            return
        tagged: list[tuple[int, bytes]] = []
        for tag, field in self._tagged.items():
            given = _given(field, value)
            if field.since <= version <= field.until and given != field.default:
                content: list[bytes] = []
                field.kind.write(given, version, content)
                tagged.append((tag, b"".join(content)))
        parts.append(encode_unsigned(len(tagged)))
        for tag, encoded in tagged:
            parts += (encode_unsigned(tag), encode_unsigned(len(encoded)), encoded)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Fields, int]:
        """The structure at ``position``; every field of the table is in the result.

        Raises:
            WireError: it is malformed.
        """
        steps = self._steps.get(version) or self._plan(version)
        fields = self._defaults[version].copy()
        for step in steps:
            position = step.read(buffer, position, version, fields)
        if not self._flexible:
            return fields, position
        count, position = decode_unsigned(buffer, position)
        previous = -1
        for _ in range(count):
            tag, position = decode_unsigned(buffer, position)
            size, position = decode_unsigned(buffer, position)
            end = position + size
            if tag <= previous or end > len(buffer):
                raise WireError(f"tagged field {tag} before byte {position} is malformed")
            previous = tag
            field = self._tagged.get(tag)
            if field is not None and field.since <= version <= field.until:
                fields[field.name], position = field.kind.read(buffer[:end], position, version)
                if position != end:
                    raise WireError(f"tagged field {tag} is not as long as it announces")
            position = end
        return fields, position

    def _plan(self, version: int) -> tuple[_Run | _Single, ...]:
        """The fields of a version, grouped for speed; made when the version is first used."""
        there = [field for field in self._plain if field.since <= version <= field.until]
        absent = [field for field in self._plain if field not in there]
        self._defaults[version] = {
            field.name: field.default for field in (*absent, *self._tagged.values())
        }
        steps: list[_Run | _Single] = []
        for packed, group in groupby(there, key=lambda field: isinstance(field.kind, _Packed)):
            members = tuple(group)
            if packed:
                steps.append(_Run(members, "".join(_layout(field) for field in members)))
            else:
                steps += [_Single(field) for field in members]
        self._steps[version] = tuple(steps)
        return self._steps[version]


def _tag(field: Field) -> int:
    return field.tag or 0


def _layout(field: Field) -> str:
    return field.kind.layout if isinstance(field.kind, _Packed) else ""


def _given(field: Field, value: Mapping[str, Any]) -> Any:
    given = value.get(field.name, field.default)
    if given is _REQUIRED:
        raise ValueError(f"field {field.name} is missing")
    return given


INT8: Final[Kind] = _Packed("b")
INT16: Final[Kind] = _Packed("h")
UINT16: Final[Kind] = _Packed("H")
INT32: Final[Kind] = _Packed("i")
INT64: Final[Kind] = _Packed("q")
FLOAT64: Final[Kind] = _Packed("d")
BOOLEAN: Final[Kind] = _Packed("?")
UUID: Final[Kind] = _Uuid()
STRING: Final[Kind] = _Text(nullable=False)
NULLABLE_STRING: Final[Kind] = _Text(nullable=True)
BYTES: Final[Kind] = _Blob(nullable=False)
NULLABLE_BYTES: Final[Kind] = _Blob(nullable=True)
