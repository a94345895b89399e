"""One connection to a server or a Sentinel, which tells what was certainly not sent.

It never reconnects and never repeats a command: whether an operation may have happened must stand
in the history, and a library that retries behind the caller's back would hide it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from splitbrain.contracts.runtime import Address
from splitbrain.systems.redis.resp import ProtocolError, Reply, ReplyParser, encode_command

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
    """A connection on which nothing was sent yet.

    Raises:
        NotSentError: nobody listens, or not in time.
    """
    if timeout_s <= 0:
        raise NotSentError("no time left")
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        raise NotSentError(str(error) or "no connection in time") from error
    return RespConnection(reader, writer)
