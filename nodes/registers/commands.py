"""Commands of the register state machine: a format version byte, then msgpack, our own format.

A payload that it does not know is refused, so that no node applies what another would not.
"""

from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.errors import UnreadableRecordError

#: First byte of every payload; raised when the layout of a command changes.
FORMAT_VERSION: Final = 1


class Write(msgspec.Struct, frozen=True, array_like=True, tag="write"):
    """Sets a register."""

    #: Chosen by the client, unique for each attempt; a repeated one shows a repeated command.
    operation: str
    key: str
    value: Any


class CompareAndSet(msgspec.Struct, frozen=True, array_like=True, tag="cas"):
    """Sets a register if it holds the expected value; a register never written holds None."""

    operation: str
    key: str
    expected: Any
    value: Any


class Add(msgspec.Struct, frozen=True, array_like=True, tag="add"):
    """Adds an element to a set."""

    operation: str
    key: str
    element: Any


Command = Write | CompareAndSet | Add

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_DECODER: Final[msgspec.msgpack.Decoder[Command]] = msgspec.msgpack.Decoder(Command)


class UnknownCommandError(UnreadableRecordError):
    """A payload is no command of this format version."""


def encode_command(command: Command) -> bytes:
    """Payload of the record that carries the command."""
    return bytes((FORMAT_VERSION,)) + _ENCODER.encode(command)


def decode_command(payload: bytes) -> Command:
    """Return the command in a record's payload; raises UnknownCommandError."""
    if payload[:1] != bytes((FORMAT_VERSION,)):
        raise UnknownCommandError(
            f"record payload starts with {payload[:1].hex() or 'nothing'}, "
            f"this build reads version {FORMAT_VERSION}"
        )
    try:
        return _DECODER.decode(memoryview(payload)[1:])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UnknownCommandError(f"malformed command: {error}") from error


def command_fields(command: Command) -> tuple[str, str, Any]:
    """Operation kind, key and value as the neutral dump of a log shows them."""
    match command:
        case Write(_, key, value):
            return "write", key, value
        case CompareAndSet(_, key, expected, value):
            return "cas", key, [expected, value]
        case Add(_, key, element):
            return "add", key, element
