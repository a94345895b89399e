"""Redis' wire protocol, version 2, and one connection that speaks it.

Must never guess: bytes that are no reply end the connection with ``ProtocolError``. Source: the
protocol specification of the Redis documentation (RESP2; the server speaks it unless told else).
A connection never reconnects and never repeats a command: whether an operation may have happened
must stand in the history, and a library that retries behind the caller's back would hide it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.runtime import Address

_LINE_END: Final = b"\r\n"
#: No reply of a workload comes near it; a length beyond it is no length.
_LENGTH_MAX: Final = 512 * 1024 * 1024


class ProtocolError(Exception):
    """The other side does not speak the protocol."""


class ErrorReply(msgspec.Struct, frozen=True):
    """A refusal or failure, ``-CODE text`` on the wire."""

    text: str

    @property
    def code(self) -> str:
        """Its first word, ``READONLY``, ``LOADING``, ``ERR``."""
        return self.text.split(" ", 1)[0]


#: Simple strings and integers as they are, bulk strings as bytes, null as None.
Reply = str | int | bytes | ErrorReply | list["Reply"] | None


class _IncompleteError(Exception):
    """More bytes are needed."""


def encode_command(arguments: Sequence[str | bytes]) -> bytes:
    """One command as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        raw = argument.encode() if isinstance(argument, str) else argument
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


class ReplyParser:
    """Bytes in, whole replies out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Reply]:
        """Return the replies that these bytes complete; ProtocolError: they are no replies."""
        self._buffer += data
        replies: list[Reply] = []
        place = 0
        while place < len(self._buffer):
            try:
                reply, place = self._reply(place)
            except _IncompleteError:
                break
            replies.append(reply)
        del self._buffer[:place]
        return replies

    def _reply(self, start: int) -> tuple[Reply, int]:
        end = self._buffer.find(_LINE_END, start)
        if end < 0:
            raise _IncompleteError
        kind, line = self._buffer[start : start + 1], bytes(self._buffer[start + 1 : end])
        place = end + len(_LINE_END)
        match bytes(kind):
            case b"+":
                return line.decode(errors="replace"), place
            case b"-":
                return ErrorReply(line.decode(errors="replace")), place
            case b":":
                return _number(line), place
            case b"$":
                return self._bulk(_length(line), place)
            case b"*":
                return self._array(_length(line), place)
            case other:
                raise ProtocolError(f"a reply cannot begin with {other!r}")

    def _bulk(self, length: int, start: int) -> tuple[Reply, int]:
        if length < 0:
            return None, start
        end = start + length
        if len(self._buffer) < end + len(_LINE_END):
            raise _IncompleteError
        if not self._buffer.startswith(_LINE_END, end):
            raise ProtocolError("a bulk string is longer than it says")
        return bytes(self._buffer[start:end]), end + len(_LINE_END)

    def _array(self, count: int, start: int) -> tuple[Reply, int]:
        if count < 0:
            return None, start
        items: list[Reply] = []
        place = start
        for _ in range(count):
            item, place = self._reply(place)
            items.append(item)
        return items, place


def _number(line: bytes) -> int:
    try:
        return int(line)
    except ValueError as error:
        raise ProtocolError(f"{line[:20]!r} is no number") from error


def _length(line: bytes) -> int:
    """Return a length, -1 for null."""
    length = _number(line)
    if not -1 <= length <= _LENGTH_MAX:
        raise ProtocolError(f"{length} is no length")
    return length


def text(reply: Reply) -> str:
    """Return a string reply as text, whichever kind of string it is; empty for all else."""
    if isinstance(reply, bytes):
        return reply.decode(errors="replace")
    return reply if isinstance(reply, str) else ""


def pairs(reply: Reply) -> dict[str, str]:
    """A flat array of names and values, as Sentinel describes an instance; empty for all else."""
    if not isinstance(reply, list):
        return {}
    items = [text(item) for item in reply]
    return dict(zip(items[::2], items[1::2], strict=False))


def info_fields(reply: Reply) -> dict[str, str]:
    """Return the ``name:value`` lines of an INFO reply."""
    lines = text(reply).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


_CHUNK_BYTES: Final = 65_536


class NotSentError(Exception):
    """Nothing of the commands left this process."""


class LostError(Exception):
    """The commands, or some of their bytes, may have arrived; the answer did not."""


class RespConnection:
    """An open connection; closed for good at the first thing that goes wrong."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = ReplyParser()

    @property
    def is_open(self) -> bool:
        """Whether neither side is known to have closed it."""
        return not (self._writer.is_closing() or self._reader.at_eof())

    async def ask(self, commands: Sequence[Sequence[str | bytes]], timeout_s: float) -> list[Reply]:
        """Send the commands in one piece and wait for a reply to each.

        Raises:
            NotSentError: the connection was already closed, or there is no time left.
            LostError: the other side closed it, fell silent, or answered nonsense.
        """
        if not self.is_open or timeout_s <= 0:
            self.close()
            raise NotSentError("the connection is closed" if timeout_s > 0 else "no time left")
        replies: list[Reply] = []
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(b"".join(encode_command(command) for command in commands))
                await self._writer.drain()
                while len(replies) < len(commands):
                    data = await self._reader.read(_CHUNK_BYTES)
                    if not data:
                        raise LostError("the other side closed the connection")
                    replies += self._parser.feed(data)
        except (OSError, ProtocolError) as error:  # a TimeoutError is an OSError
            self.close()
            raise LostError(str(error) or "no answer in time") from error
        except BaseException:
            self.close()  # a late answer must never meet a later command
            raise
        if len(replies) > len(commands):
            self.close()
            raise LostError("there are more replies than commands")
        return replies

    def close(self) -> None:
        """Drop the connection without waiting for outstanding answers."""
        if not self._writer.is_closing():
            self._writer.transport.abort()


async def connect(address: Address, timeout_s: float) -> RespConnection:
    """Return a connection on which nothing was sent; NotSentError: none could be had in time."""
    if timeout_s <= 0:
        raise NotSentError("no time left")
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        raise NotSentError(str(error) or "no connection in time") from error
    return RespConnection(reader, writer)
