"""Strings, bytes and array sizes as versions before KIP-482 write them: with sizes of fixed width.

Tools still ask in such versions (librdkafka creates topics in one). Reading checks every size
against the bytes that are there before it allocates, as the flexible form does.

Source: Kafka's protocol guide, "Protocol Primitive Types".
"""

from struct import Struct
from typing import Final

from splitbrain.nodes.wire.codec import Kind
from splitbrain.nodes.wire.errors import WireError

_NULL: Final = -1


class _SizedBytes:
    """Bytes behind a size of fixed width; the size -1 means null."""

    def __init__(self, size: Struct, size_max: int, *, nullable: bool) -> None:
        self._size = size
        self._size_max = size_max
        self._nullable = nullable

    def write(self, value: bytes | None, version: int, parts: list[bytes]) -> None:
        if value is None:
            if not self._nullable:
                raise ValueError("null where the field has none")
            parts.append(self._size.pack(_NULL))
            return
        if len(value) > self._size_max:
            raise ValueError(f"{len(value)} bytes do not fit a field of {self._size_max}")
        parts += (self._size.pack(len(value)), value)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[bytes | None, int]:
        size, position = _read_size(self._size, buffer, position)
        if size == _NULL and self._nullable:
            return None, position
        end = position + size
        if size < 0 or end > len(buffer):
            raise WireError(f"a field of {size} bytes at byte {position} runs past the end")
        return buffer[position:end], end


class _SizedText:
    """UTF-8 behind a size of two bytes."""

    def __init__(self, *, nullable: bool) -> None:
        self._raw = _SizedBytes(_SHORT, 0x7FFF, nullable=nullable)

    def write(self, value: str | None, version: int, parts: list[bytes]) -> None:
        self._raw.write(None if value is None else value.encode(), version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[str | None, int]:
        raw, end = self._raw.read(buffer, position, version)
        try:
            return None if raw is None else raw.decode(), end
        except UnicodeDecodeError as error:
            raise WireError(f"the string before byte {end} is not UTF-8") from error


def write_item_count(count: int | None, parts: list[bytes]) -> None:
    """Append the size of an array; None for a null array."""
    parts.append(_INT.pack(_NULL if count is None else count))


def read_item_count(buffer: bytes, position: int) -> tuple[int | None, int]:
    """Size of an array, None for a null one, and the position of its first item.

    Raises:
        WireError: it is cut short or negative.
    """
    count, position = _read_size(_INT, buffer, position)
    if count < _NULL:
        raise WireError(f"an array of {count} items before byte {position}")
    return None if count == _NULL else count, position


def _read_size(size: Struct, buffer: bytes, position: int) -> tuple[int, int]:
    end = position + size.size
    if end > len(buffer):
        raise WireError(f"the message is cut short at byte {len(buffer)}")
    return size.unpack_from(buffer, position)[0], end


_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")

LEGACY_STRING: Final[Kind] = _SizedText(nullable=False)
LEGACY_NULLABLE_STRING: Final[Kind] = _SizedText(nullable=True)
LEGACY_BYTES: Final[Kind] = _SizedBytes(_INT, 0x7FFFFFFF, nullable=False)
LEGACY_NULLABLE_BYTES: Final[Kind] = _SizedBytes(_INT, 0x7FFFFFFF, nullable=True)
