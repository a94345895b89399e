"""Variable-length integers of Kafka's record format: base-128 groups, signed ones zig-zag encoded.

Must never read past the end of the buffer nor accept more bytes than the widest legal form.
Source: Kafka's protocol guide, "Record" and "Protocol Primitive Types".
"""

from splitbrain.nodes.wire.errors import WireError

#: 64 bits in groups of seven.
VARLONG_BYTES_MAX = 10
_MASK_64 = (1 << 64) - 1

_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def encode_unsigned(value: int) -> bytes:
    """Unsigned form of ``value``; raises ValueError outside 0 to 2**64 - 1."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if not 0 <= value <= _MASK_64:
        raise ValueError(f"{value} does not fit an unsigned 64-bit integer")
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_signed(value: int) -> bytes:
    """Zig-zag form of ``value``; raises ValueError outside a signed 64-bit integer."""
    if 0 <= value < 64:
        return _ONE_BYTE[value << 1]
    return encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_unsigned(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return the unsigned integer at ``position`` and the position after it; raises WireError."""
    # Nearly all are one byte long.
    if position < len(buffer) and (byte := buffer[position]) < 128:
        return byte, position + 1
    value = 0
    shift = 0
    for index in range(VARLONG_BYTES_MAX):
        if position >= len(buffer):
            raise WireError(f"variable-length integer is cut short at byte {position}")
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if index == VARLONG_BYTES_MAX - 1 and byte > 1:
                break
            return value, position
        shift += 7
    raise WireError(f"variable-length integer before byte {position} is longer than 64 bits")


def decode_signed(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return the zig-zag integer at ``position`` and the position after it; raises WireError."""
    if position < len(buffer) and (byte := buffer[position]) < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = decode_unsigned(buffer, position)
    return (value >> 1) ^ -(value & 1), position


def skip_tagged_fields(buffer: bytes, position: int) -> int:
    """Return the position after a section of tagged fields, whatever they are; raises WireError."""
    count, position = decode_unsigned(buffer, position)
    for _ in range(count):
        _, position = decode_unsigned(buffer, position)
        size, position = decode_unsigned(buffer, position)
        position += size
        if position > len(buffer):
            raise WireError("a tagged field runs past the end of its message")
    return position
