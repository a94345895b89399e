"""One connection to one server in NATS' text protocol, over asyncio: a request and its answers.

Each request has a subject of its own for its answers, below one subscription. Must never repeat a
request: whether it may have been done is decided above.

Source: NATS' page on its client protocol, and its ADR-4 on headers.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.runtime import Address

_VERSION_LINE: Final = "NATS/1.0"
_CONNECT: Final[Mapping[str, Any]] = {
    "verbose": False,
    "pedantic": False,
    "headers": True,
    "no_responders": True,
    "protocol": 1,
    "lang": "python",
    "version": "0",
    "name": "splitbrain",
}
_SUBSCRIPTION: Final = "1"


class Reply(msgspec.Struct, frozen=True):
    """A message that came as an answer."""

    body: bytes
    #: Of a message without one: 0.
    status: int = 0
    #: Words behind the status.
    reason: str = ""
    #: By their names, in the server's spelling.
    headers: Mapping[str, str] = {}
    #: Subject that an answer to it goes to, if it asks for one.
    reply_to: str = ""


class NatsConnection:
    """A connection with one subscription for all answers; made by ``connect``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._inbox = ""
        self._requests = 0

    @property
    def is_open(self) -> bool:
        """Whether the server has not ended it yet, as far as is known."""
        return self._reader.exception() is None and not self._reader.at_eof()

    async def handshake(self, login: Mapping[str, str]) -> None:
        """Return once the server has taken the connection; raises as the other methods do.

        ``login`` has ``user`` and ``pass``; empty: clients' own account.
        """
        name, rest = await self._line()
        if name != "INFO":
            raise EOFError
        told = msgspec.json.decode(rest, type=dict[str, Any])
        self._inbox = f"_INBOX.{told['server_id']}.{told['client_id']}"
        options = msgspec.json.encode({**_CONNECT, **login})
        self._writer.write(
            b"CONNECT %b\r\n" % options
            + f"SUB {self._inbox}.* {_SUBSCRIPTION}\r\nPING\r\n".encode()
        )
        while name != "PONG":
            name, _ = await self._line()

    def send(self, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> str:
        """Publish a message that asks for answers; returns the subject of these."""
        self._requests += 1
        inbox = f"{self._inbox}.{self._requests}"
        if headers:
            lines = [_VERSION_LINE, *(f"{name}: {value}" for name, value in headers.items())]
            head = "\r\n".join([*lines, "", ""]).encode()
            sizes = f"{len(head)} {len(head) + len(body)}"
            start = f"HPUB {subject} {inbox} {sizes}\r\n".encode() + head
        else:
            start = f"PUB {subject} {inbox} {len(body)}\r\n".encode()
        self._writer.write(start + body + b"\r\n")
        return inbox

    async def answer(self, inbox: str) -> Reply:
        """Return the next answer that comes to a subject.

        Raises:
            OSError, EOFError: the connection is of no more use.
            msgspec.DecodeError, UnicodeDecodeError, KeyError, ValueError: the server does not keep
                to the protocol.
        """
        while True:
            name, rest = await self._line()
            if name not in ("MSG", "HMSG"):
                continue
            fields = rest.split()
            # Subject, subscription, perhaps where to answer, and one size or two.
            has_head = name == "HMSG"
            heads = int(fields[-2]) if has_head else 0
            content = await self._reader.readexactly(int(fields[-1]) + 2)
            # A consumer's message keeps the subject that it was published to.
            if fields[0] == inbox or not fields[0].startswith(f"{self._inbox}."):
                reply_to = "".join(fields[2 : -1 - has_head])
                return _reply(content[:heads].decode(), content[heads:-2], reply_to)

    async def request(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Publish a message and return the first answer; raises as ``answer``."""
        return await self.answer(self.send(subject, body, headers))

    def close(self) -> None:
        """Drop the connection."""
        self._writer.close()

    async def _line(self) -> tuple[str, str]:
        """Return the next line, its first word apart; answer a server that asks for a sign of life.

        Raises ConnectionError where the server says that it ends the connection.
        """
        while True:
            try:
                line = (await self._reader.readuntil(b"\r\n"))[:-2].decode()
            except asyncio.LimitOverrunError as error:
                raise EOFError from error
            name, _, rest = line.partition(" ")
            if name == "PING":
                self._writer.write(b"PONG\r\n")
            elif name == "-ERR":
                raise ConnectionError(rest)
            else:
                return name, rest


async def connect(there: Address, login: Mapping[str, str] | None = None) -> NatsConnection:
    """Connect and return a connection that was taken; raises as ``NatsConnection.answer``."""
    reader, writer = await asyncio.open_connection(there.host, there.port)
    connection = NatsConnection(reader, writer)
    try:
        await connection.handshake(login or {})
    except BaseException:
        writer.close()
        raise
    return connection


def _reply(head: str, body: bytes, reply_to: str) -> Reply:
    if not head:
        return Reply(body, reply_to=reply_to)
    first, *lines = head.strip().split("\r\n")
    status, _, reason = first.removeprefix(_VERSION_LINE).strip().partition(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name: value.strip() for name, _, value in pairs}
    return Reply(body, int(status or 0), reason, headers, reply_to)
