"""One channel of AMQP 0-9-1 to one broker, over asyncio: declare, publish with confirms, get, ack.

Each method returns once the broker has answered. Must never repeat a request: whether it may have
been done is decided above.

Source: the AMQP 0-9-1 specification, and RabbitMQ's extensions (publisher confirms).
"""

import asyncio
import struct
from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.contracts.runtime import Address

_PROTOCOL: Final = b"AMQP\0\0\x09\x01"
_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_FRAME: Final = struct.Struct(">BHI")
_END: Final = b"\xce"
_CHANNEL: Final = 1
_MANDATORY: Final = 1
_DURABLE: Final = 2
#: One property: the delivery mode, of a message that is kept on disk.
_PERSISTENT: Final = struct.pack(">HB", 0x1000, 2)

Method = tuple[int, int]
_START, _START_OK, _TUNE, _TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
_OPEN, _OPEN_OK, _CLOSE, _CLOSE_OK = (10, 40), (10, 41), (10, 50), (10, 51)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK, _CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
_DECLARE, _DECLARE_OK = (50, 10), (50, 11)
_QOS, _QOS_OK = (60, 10), (60, 11)
_PUBLISH, _RETURN = (60, 40), (60, 50)
_GET, _GET_OK, _GET_EMPTY = (60, 70), (60, 71), (60, 72)
_ACK, _NACK = (60, 80), (60, 120)
_SELECT, _SELECT_OK = (85, 10), (85, 11)


class ClosedByBroker(Exception):
    """The broker closed the channel or the connection, and said why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        #: Reply code, such as 404.
        self.code = code


class Message(msgspec.Struct, frozen=True):
    """A message that was handed out and not acknowledged yet."""

    tag: int
    body: bytes


class AmqpChannel:
    """A connection with one channel in confirm mode; made by ``open_channel``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._published = 0

    async def handshake(self, user: str, password: str) -> None:
        """Open the connection and its channel; raises as the other methods do."""
        self._writer.write(_PROTOCOL)
        await self._await(_START)
        plain = _long(f"\0{user}\0{password}".encode())
        self._send(_START_OK, _table({}) + _short("PLAIN") + plain + _short("en_US"), channel=0)
        tuned = await self._await(_TUNE)
        channels, frame_bytes = struct.unpack_from(">HI", tuned)
        # No heartbeats: who waits for an answer gives up by its own time.
        self._send(_TUNE_OK, struct.pack(">HIH", channels, frame_bytes, 0), channel=0)
        self._send(_OPEN, _short("/") + b"\0\0", channel=0)
        await self._await(_OPEN_OK)
        self._send(_CHANNEL_OPEN, b"\0")
        await self._await(_CHANNEL_OPEN_OK)
        self._send(_SELECT, b"\0")
        await self._await(_SELECT_OK)

    async def declare(self, queue: str, arguments: Mapping[str, str]) -> None:
        """Make a durable queue unless it is there.

        Raises:
            ClosedByBroker: the broker refused, and closed the channel.
            OSError, EOFError: the connection is of no more use.
        """
        fields = b"\0\0" + _short(queue) + bytes([_DURABLE]) + _table(arguments)
        self._send(_DECLARE, fields)
        await self._await(_DECLARE_OK)

    async def publish(self, queue: str, body: bytes) -> str:
        """Publish a persistent message; returns ``confirmed``, ``unroutable`` or ``rejected``.

        Raises as ``declare``.
        """
        self._send(_PUBLISH, b"\0\0" + _short("") + _short(queue) + bytes([_MANDATORY]))
        header = struct.pack(">HHQ", _PUBLISH[0], 0, len(body)) + _PERSISTENT
        self._write(_HEADER, header, _CHANNEL)
        self._write(_BODY, body, _CHANNEL)
        self._published += 1
        is_returned = False
        while True:
            method, fields = await self._method()
            if method == _RETURN:
                await self._content()
                is_returned = True
            elif method in (_ACK, _NACK) and _confirmed_up_to(fields, self._published):
                if method == _NACK:
                    return "rejected"
                return "unroutable" if is_returned else "confirmed"

    async def get(self, queue: str) -> Message | None:
        """Return the next message, to be acknowledged; None where the queue is empty.

        Raises as ``declare``.
        """
        self._send(_GET, b"\0\0" + _short(queue) + b"\0")
        while True:
            method, fields = await self._method()
            if method == _GET_EMPTY:
                return None
            if method == _GET_OK:
                (tag,) = struct.unpack_from(">Q", fields)
                return Message(tag, await self._content())

    async def acknowledge(self, message: Message) -> None:
        """Acknowledge a message and return once the broker has taken it in.

        An acknowledgement has no answer; that to a later request of the same channel stands for it.
        Raises as ``declare``.
        """
        self._send(_ACK, struct.pack(">QB", message.tag, 0))
        self._send(_QOS, struct.pack(">IHB", 0, 0, 0))
        await self._await(_QOS_OK)

    def close(self) -> None:
        """Drop the connection; messages that were not acknowledged go back to their queues."""
        self._writer.close()

    def _send(self, method: Method, fields: bytes, channel: int = _CHANNEL) -> None:
        self._write(_METHOD, struct.pack(">HH", *method) + fields, channel)

    def _write(self, kind: int, payload: bytes, channel: int) -> None:
        self._writer.write(_FRAME.pack(kind, channel, len(payload)) + payload + _END)

    async def _frame(self) -> tuple[int, bytes]:
        """Return the next frame's kind and payload, heartbeats left out."""
        while True:
            kind, _, length = _FRAME.unpack(await self._reader.readexactly(_FRAME.size))
            payload = (await self._reader.readexactly(length + 1))[:-1]
            if kind != _HEARTBEAT:
                return kind, payload

    async def _method(self) -> tuple[Method, bytes]:
        kind, payload = await self._frame()
        if kind != _METHOD or len(payload) < 4:
            raise EOFError
        method: Method = struct.unpack_from(">HH", payload)
        fields = payload[4:]
        if method in (_CLOSE, _CHANNEL_CLOSE):
            (code,) = struct.unpack_from(">H", fields)
            raise ClosedByBroker(code, fields[3 : 3 + fields[2]].decode(errors="replace"))
        return method, fields

    async def _await(self, wanted: Method) -> bytes:
        while True:
            method, fields = await self._method()
            if method == wanted:
                return fields

    async def _content(self) -> bytes:
        """Return the body that follows a method."""
        kind, header = await self._frame()
        if kind != _HEADER or len(header) < 12:
            raise EOFError
        (length,) = struct.unpack_from(">Q", header, 4)
        body = b""
        while len(body) < length:
            kind, part = await self._frame()
            if kind != _BODY:
                raise EOFError
            body += part
        return body


async def open_channel(there: Address, user: str, password: str) -> AmqpChannel:
    """Connect and return a channel.

    Raises:
        ClosedByBroker: the broker refused.
        OSError, EOFError: nobody listens, or it is no broker that serves.
    """
    reader, writer = await asyncio.open_connection(there.host, there.port)
    channel = AmqpChannel(reader, writer)
    try:
        await channel.handshake(user, password)
    except BaseException:
        writer.close()
        raise
    return channel


def _confirmed_up_to(fields: bytes, published: int) -> bool:
    tag, is_multiple = struct.unpack_from(">QB", fields)
    return tag == published or (bool(is_multiple) and (tag == 0 or tag >= published))


def _short(text: str) -> bytes:
    raw = text.encode()
    return bytes([len(raw)]) + raw


def _long(raw: bytes) -> bytes:
    return struct.pack(">I", len(raw)) + raw


def _table(entries: Mapping[str, str]) -> bytes:
    pairs = (_short(name) + b"S" + _long(value.encode()) for name, value in entries.items())
    return _long(b"".join(pairs))
