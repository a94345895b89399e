"""Registers and sets as the records of a snapshot, and back: a private format, as the commands'.

Equal states give equal records in equal order, whatever way they came about: the order of keys,
elements and operations is that of the log.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from splitbrain.nodes.registers.commands import UnknownCommandError

#: First byte of every record; raised when the layout changes.
FORMAT_VERSION: Final = 1
#: A record of many parts is closed once they have so many bytes.
RECORD_BYTES: Final = 64 * 1024
_OPERATION_BYTES: Final = 16
_Part = TypeVar("_Part")


class RegisterImage(NamedTuple):
    """The state of a machine at one offset; nobody changes it any more."""

    #: Encoded value by key.
    registers: dict[str, bytes]
    #: Encoded elements by key, in the order in which they were first added.
    sets: dict[str, tuple[bytes, ...]]
    #: Offset by operation id, oldest first.
    operations: dict[str, int]


class RegisterRecord(msgspec.Struct, frozen=True, array_like=True, tag="register"):
    """One register."""

    key: str
    value: bytes


class ElementsRecord(msgspec.Struct, frozen=True, array_like=True, tag="elements"):
    """Further elements of a set."""

    key: str
    elements: tuple[bytes, ...]


class OperationsRecord(msgspec.Struct, frozen=True, array_like=True, tag="operations"):
    """Further operation ids that are remembered."""

    operations: tuple[tuple[str, int], ...]


_Record = RegisterRecord | ElementsRecord | OperationsRecord
_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_DECODER: Final[msgspec.msgpack.Decoder[_Record]] = msgspec.msgpack.Decoder(_Record)


def image_values(image: RegisterImage) -> Iterator[bytes]:
    """Yield the records that tell the whole state."""
    for record in _records(image):
        yield bytes((FORMAT_VERSION,)) + _ENCODER.encode(record)


class ImageLoader:
    """A state on its way from a snapshot: takes its records in order."""

    def __init__(self, adopt: Callable[[RegisterImage, int], None]) -> None:
        """``adopt`` takes the whole state and the end of the log that it stands for."""
        self._adopt = adopt
        self._registers: dict[str, bytes] = {}
        self._sets: dict[str, list[bytes]] = {}
        self._operations: dict[str, int] = {}

    def add(self, value: bytes) -> None:
        """Take a record; raises UnknownCommandError for another version or a malformed one."""
        if value[:1] != bytes((FORMAT_VERSION,)):
            raise UnknownCommandError(
                f"a snapshot's record starts with {value[:1].hex() or 'nothing'}, "
                f"this build reads version {FORMAT_VERSION}"
            )
        try:
            record = _DECODER.decode(memoryview(value)[1:])
        except (ValueError, RecursionError) as error:
            raise UnknownCommandError(f"malformed record of a snapshot: {error}") from error
        match record:
            case RegisterRecord(key, encoded):
                self._registers[key] = encoded
            case ElementsRecord(key, elements):
                self._sets.setdefault(key, []).extend(elements)
            case OperationsRecord(operations):
                self._operations.update(operations)

    def install(self, end_offset: int) -> None:
        """Let the machine be what was loaded."""
        sets = {key: tuple(elements) for key, elements in self._sets.items()}
        self._adopt(RegisterImage(self._registers, sets, self._operations), end_offset)


def _records(image: RegisterImage) -> Iterator[_Record]:
    for key, value in image.registers.items():
        yield RegisterRecord(key, value)
    for key, elements in image.sets.items():
        for part in _parts((element, len(element)) for element in elements):
            yield ElementsRecord(key, part)
    operations = image.operations.items()
    for part in _parts((item, len(item[0]) + _OPERATION_BYTES) for item in operations):
        yield OperationsRecord(part)


def _parts(items: Iterable[tuple[_Part, int]]) -> Iterator[tuple[_Part, ...]]:
    """Items with their sizes, in groups that fit into a record."""
    part: list[_Part] = []
    size_bytes = 0
    for item, item_bytes in items:
        part.append(item)
        size_bytes += item_bytes
        if size_bytes >= RECORD_BYTES:
            yield tuple(part)
            part, size_bytes = [], 0
    if part:
        yield tuple(part)
