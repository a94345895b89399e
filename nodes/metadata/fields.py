"""How a metadata record is declared: a struct whose annotations say how each field is written.

The struct is the table: its fields in their order are those of the wire, and each annotation holds
a kind of ``nodes.wire.codec``, which does all reading and writing (decision 0004). Arrays become
tuples and structures become structs, so that a record read is immutable and can be shared.

Source: Kafka's protocol guide, "Protocol Primitive Types"; KIP-482 for tagged fields.
"""

from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import msgspec

from splitbrain.nodes.wire.codec import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    ArrayOf,
    Field,
    Kind,
    StructureOf,
)


class Place(NamedTuple):
    """Where and how a field stands in its record."""

    kind: Kind
    #: None for a field in its place; else the number under which it is written if not default.
    tag: int | None = None
    #: First version that has it.
    since: int = 0


def tuple_of(item: Kind, *, nullable: bool = False) -> Kind:
    """An array as a tuple; None where null is allowed."""
    return ArrayOf(item, nullable=nullable, frozen=True)


class StructAs:
    """A structure as a struct; its fields are those that the struct's annotations say."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        places = _places(struct)
        defaults = {
            field.name: field.default
            for field in msgspec.structs.fields(struct)
            if field.default is not msgspec.NODEFAULT
        }
        self._struct = struct
        self._structure = StructureOf(
            *(
                Field(name, place.kind, tag=place.tag, since=place.since)
                if name not in defaults
                else Field(name, place.kind, defaults[name], tag=place.tag, since=place.since)
                for name, place in places.items()
            )
        )
        #: Fields that not every version has.
        self._later = tuple(
            (name, place.since, defaults[name]) for name, place in places.items() if place.since
        )

    def lowest_version(self, value: msgspec.Struct) -> int:
        """The first version that has a place for all that the struct says."""
        return max(
            (since for name, since, default in self._later if getattr(value, name) != default),
            default=0,
        )

    def write(self, value: msgspec.Struct, version: int, parts: list[bytes]) -> None:
        """Append the encoded structure.

        Raises:
            ValueError: a value does not fit its field, or the version has no place for it.
        """
        for name, since, default in self._later:
            if version < since and getattr(value, name) != default:
                raise ValueError(
                    f"{type(value).__name__} version {version} cannot say {name}; "
                    f"version {since} is the first that can"
                )
        self._structure.write(msgspec.structs.asdict(value), version, parts)

    def read(self, buffer: bytes, position: int, version: int) -> tuple[Any, int]:
        """The struct, and the position after it; raises WireError."""
        fields, position = self._structure.read(buffer, position, version)
        return self._struct(**fields), position


def _places(struct: type[msgspec.Struct]) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        found = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Place)]
        if len(found) != 1:
            raise TypeError(f"field {name} of {struct.__name__} does not say how it is written")
        places[name] = found[0]
    return places


NULLABLE_INT32S: Final[Kind] = tuple_of(INT32, nullable=True)
UUIDS: Final[Kind] = tuple_of(UUID)
NULLABLE_UUIDS: Final[Kind] = tuple_of(UUID, nullable=True)

Boolean = Annotated[bool, Place(BOOLEAN)]
Int8 = Annotated[int, Place(INT8)]
Int16 = Annotated[int, Place(INT16)]
UInt16 = Annotated[int, Place(UINT16)]
Int32 = Annotated[int, Place(INT32)]
Int64 = Annotated[int, Place(INT64)]
Float64 = Annotated[float, Place(FLOAT64)]
Bytes = Annotated[bytes, Place(BYTES)]
Text = Annotated[str, Place(STRING)]
NullableText = Annotated[str | None, Place(NULLABLE_STRING)]
#: 32 lower-case hex digits.
Uuid = Annotated[str, Place(UUID)]
Int32s = Annotated[tuple[int, ...], Place(tuple_of(INT32))]
Texts = Annotated[tuple[str, ...], Place(tuple_of(STRING))]
