"""Values of Kafka's messages as bytes, and back: integers, strings, bytes and arrays.

Versions before KIP-482 give a size a fixed width (tools still ask in such versions: librdkafka
creates topics in one), the *flexible* form is compact. Reading checks a length against the bytes
that are there before it allocates. ``kio``, the tests' oracle, does not: its native reader (0.6.5)
allocates what an array announces, so that a frame of ten bytes ends the process, and it refuses
unknown tagged fields, which Kafka's rules say to skip.

Source: Kafka's protocol guide, "Protocol Primitive Types"; KIP-482.
"""

from collections.abc import Callable, Sequence
from struct import Struct, error, pack, unpack_from
from typing import Any, Final, NamedTuple, Protocol

from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned

_NULL: Final = -1


class Kind(Protocol):
    """How values of one type are written and read in one version of a message."""

    def write(self, value: Any, version: int, parts: list[bytes]) -> None:
        """Append the encoded value to ``parts``."""

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        """Return the value at ``position``, and the position after it; raises WireError."""
        ...


class Size(NamedTuple):
    """How one form writes the size of what follows; None for null."""

    #: Raises ValueError where the form has no room for it.
    write: Callable[[int | None], bytes]
    #: The size, and the position after it; raises WireError.
    read: Callable[[bytes, int], tuple[int | None, int]]


def _write_compact(count: int | None) -> bytes:
    return encode_unsigned(0 if count is None else count + 1)


def _read_compact(buffer: bytes, position: int) -> tuple[int | None, int]:
    # Nearly all are one byte long.
    if position < len(buffer) and 0 < (byte := buffer[position]) < 128:
        return byte - 1, position + 1
    size, position = decode_unsigned(buffer, position)
    return size - 1 if size else None, position


def _size_of_width(layout: str) -> Size:
    packed = Struct(">" + layout)
    count_max = (1 << 8 * packed.size - 1) - 1

    def write(count: int | None) -> bytes:
        if count is not None and count > count_max:
            raise ValueError(f"{count} bytes do not fit a field of {count_max}")
        return packed.pack(_NULL if count is None else count)

    def read(buffer: bytes, position: int) -> tuple[int | None, int]:
        end = position + packed.size
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        (count,) = packed.unpack_from(buffer, position)
        if count < _NULL:
            raise WireError(f"a size of {count} before byte {end}")
        return None if count == _NULL else count, end

    return Size(write, read)


COMPACT: Final = Size(_write_compact, _read_compact)
SHORT: Final = _size_of_width("h")
LONG: Final = _size_of_width("i")


class Packed:
    """A value of fixed size."""

    def __init__(self, layout: str) -> None:
        self.layout = layout
        self._struct = Struct(">" + layout)
        self.size_bytes = self._struct.size

    def write(self, value: Any, version: int, parts: list[bytes]) -> None:
        """Append the value; raises ValueError where it does not fit."""
        try:
            parts.append(self._struct.pack(value))
        except error as problem:
            raise ValueError(f"{value!r} does not fit its field: {problem}") from problem

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        """Return the value, and the position after it; raises WireError."""
        end = position + self.size_bytes
        if end > len(buffer):
            raise WireError(f"the message is cut short at byte {len(buffer)}")
        return self._struct.unpack_from(buffer, position)[0], end

    def write_all(self, values: Sequence[Any]) -> bytes:
        """Values without a gap."""
        try:
            return pack(f">{len(values)}{self.layout}", *values)
        except error as problem:
            raise ValueError(f"{values!r} does not fit its field: {problem}") from problem

    def read_all(self, buffer: bytes, position: int, count: int) -> tuple[Any, ...]:
        """Values without a gap; the buffer holds them."""
        return unpack_from(f">{count}{self.layout}", buffer, position)


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
    """Bytes behind their size; None where null is allowed."""

    def __init__(self, size: Size, *, nullable: bool) -> None:
        self._write_size, self._read_size = size
        self._nullable = nullable

    def write(self, value: bytes | None, version: int, parts: list[bytes]) -> None:
        if value is not None:
            parts += (self._write_size(len(value)), value)
        elif self._nullable:
            parts.append(self._write_size(None))
        else:
            raise ValueError("null where the field has none")

    def read(self, buffer: bytes, position: int, version: int) -> tuple[bytes | None, int]:
        size, position = self._read_size(buffer, position)
        if size is None:
            if not self._nullable:
                raise WireError(f"null before byte {position}, where the field has none")
            return None, position
        end = position + size
        if end > len(buffer):
            raise WireError(f"a field of {size} bytes at byte {position} runs past the end")
        return buffer[position:end], end


class _Text:
    """UTF-8 behind its size; None where null is allowed."""

    def __init__(self, size: Size, *, nullable: bool) -> None:
        self._blob = _Blob(size, nullable=nullable)

    def write(self, value: str | None, version: int, parts: list[bytes]) -> None:
        self._blob.write(None if value is None else value.encode(), version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[str | None, int]:
        raw, end = self._blob.read(buffer, position, version)
        try:
            return None if raw is None else raw.decode(), end
        except UnicodeDecodeError as problem:
            raise WireError(f"the string before byte {end} is not UTF-8") from problem


class TupleOf:
    """An array of one kind behind the number of its items; None where null is allowed."""

    def __init__(self, item: Kind, size: Size, *, nullable: bool) -> None:
        self._item = item
        self._write_size, self._read_size = size
        self._nullable = nullable
        #: Items of fixed size are read and written at once.
        self._fixed = item if isinstance(item, Packed | _Uuid) else None
        # Every item takes a byte at least.
        self._item_bytes = self._fixed.size_bytes if self._fixed else 1

    def write(self, value: Sequence[Any] | None, version: int, parts: list[bytes]) -> None:
        """Append the array; raises ValueError where it has no null."""
        if value is None and not self._nullable:
            raise ValueError("null where the array has none")
        parts.append(self._write_size(None if value is None else len(value)))
        if not value:
            return
        if self._fixed is not None:
            parts.append(self._fixed.write_all(value))
            return
        for item in value:
            self._item.write(item, version, parts)

    def read(
        self, buffer: bytes, position: int, version: int
    ) -> tuple[tuple[Any, ...] | None, int]:
        """Return the items, and the position after the array; raises WireError."""
        count, position = self._read_size(buffer, position)
        if count is None:
            if not self._nullable:
                raise WireError(f"null array before byte {position}")
            return None, position
        end = position + count * self._item_bytes
        if end > len(buffer):
            raise WireError(f"an array of {count} items at byte {position} runs past the end")
        if self._fixed is not None:
            return self._fixed.read_all(buffer, position, count), end
        items: list[Any] = []
        for _ in range(count):
            item, position = self._item.read(buffer, position, version)
            items.append(item)
        return tuple(items), position


class Scalar(NamedTuple):
    """A primitive type: how each of the two forms writes it."""

    flexible: Kind
    legacy: Kind


def _fixed(layout: str) -> Scalar:
    kind = Packed(layout)
    return Scalar(kind, kind)


def _sized(kind: type[_Blob | _Text], legacy: Size, *, nullable: bool) -> Scalar:
    return Scalar(kind(COMPACT, nullable=nullable), kind(legacy, nullable=nullable))


INT8: Final = _fixed("b")
INT16: Final = _fixed("h")
UINT16: Final = _fixed("H")
INT32: Final = _fixed("i")
INT64: Final = _fixed("q")
FLOAT64: Final = _fixed("d")
BOOLEAN: Final = _fixed("?")
UUID: Final = Scalar(_Uuid(), _Uuid())
STRING: Final = _sized(_Text, SHORT, nullable=False)
NULLABLE_STRING: Final = _sized(_Text, SHORT, nullable=True)
BYTES: Final = _sized(_Blob, LONG, nullable=False)
NULLABLE_BYTES: Final = _sized(_Blob, LONG, nullable=True)
