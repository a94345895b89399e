"""A broker of AMQP 0-9-1 with queues in memory, which can be told to misbehave."""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from splitbrain.contracts.runtime import Address

DECLARE, QOS, PUBLISH, GET, ACK = (50, 10), (60, 10), (60, 40), (60, 70), (60, 80)
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8


class Hang(Exception):
    """Raised by an interruption: close the connection instead of answering."""


class FakeBroker:
    def __init__(self) -> None:
        self.queues: dict[str, deque[bytes]] = {}
        #: Called with each request before it is done.
        self.before: Callable[[tuple[int, int]], None] = lambda method: None
        #: Called once a request is done, before it is answered.
        self.after: Callable[[tuple[int, int]], None] = lambda method: None
        #: Answers to publishes instead of a confirm: methods with their fields.
        self.confirms: list[tuple[tuple[int, int], bytes]] | None = None
        #: Code with which declarations are refused.
        self.refusal: int | None = None
        self.declared_with: dict[str, bytes] = {}
        self.serves = True

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(self, writer).serve(reader)


class Connection:
    def __init__(self, broker: FakeBroker, writer: asyncio.StreamWriter) -> None:
        self.broker, self.writer = broker, writer
        self.published = self.handed = 0
        self.unacknowledged: dict[int, tuple[str, bytes]] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        try:
            await reader.readexactly(8)
            if not self.broker.serves:
                return
            self._send((10, 10), b"\0\x09" + bytes(12))
            target = ""
            while True:
                kind, payload = await _frame(reader)
                if kind == BODY:
                    self.broker.before(PUBLISH)
                    self._publish(target, payload)
                if kind != METHOD:
                    continue
                method = struct.unpack_from(">HH", payload)
                fields = payload[4:]
                if method == PUBLISH:
                    target = fields[4 : 4 + fields[3]].decode()
                    continue
                self.broker.before(method)
                self._do(method, fields)
        except (asyncio.IncompleteReadError, Hang, ConnectionError):
            pass
        finally:
            for queue, body in self.unacknowledged.values():
                self.broker.queues[queue].appendleft(body)
            self.writer.close()

    def _publish(self, queue: str, body: bytes) -> None:
        self.published += 1
        confirm = struct.pack(">QB", self.published, 0)
        if self.broker.confirms is None:
            self.broker.queues[queue].append(body)
            self.broker.after(PUBLISH)
            # A frame that says nothing may come at any time.
            self._frame(HEARTBEAT, b"", 0)
            self._send(ACK, confirm)
            return
        for method, fields in self.broker.confirms:
            self._send(method, fields or confirm)
            if method == (60, 50):
                self._content(body)

    def _do(self, method: tuple[int, int], fields: bytes) -> None:
        match method:
            case (10, 11):
                self._send((10, 30), struct.pack(">HIH", 2047, 131072, 60))
            case (10, 31) | (10, 41):
                return
            case (10, 40):
                self._send((10, 41), b"\0")
            case (20, 10) | (85, 10) | (60, 10):
                self._send((method[0], method[1] + 1), bytes(4))
            case (50, 10):
                queue = fields[3 : 3 + fields[2]].decode()
                if self.broker.refusal is not None:
                    text = b"\x02no"
                    self._send((20, 40), struct.pack(">H", self.broker.refusal) + text + bytes(4))
                    return
                self.broker.queues.setdefault(queue, deque())
                self.broker.declared_with[queue] = fields[4 + fields[2] :]
                self._send((50, 11), bytes([len(queue)]) + queue.encode() + bytes(8))
            case (60, 70):
                queue = fields[3 : 3 + fields[2]].decode()
                if not self.broker.queues[queue]:
                    self._send((60, 72), b"\0")
                    return
                body = self.broker.queues[queue].popleft()
                self.handed += 1
                self.unacknowledged[self.handed] = (queue, body)
                self.broker.after(method)
                self._send((60, 71), struct.pack(">QB", self.handed, 0) + bytes(6))
                self._content(body)
            case (60, 80):
                (tag,) = struct.unpack_from(">Q", fields)
                del self.unacknowledged[tag]
                self.broker.after(method)
            case _:
                raise AssertionError(method)

    def _content(self, body: bytes) -> None:
        self._frame(HEADER, struct.pack(">HHQH", 60, 0, len(body), 0), 1)
        for place in range(0, len(body), 2):
            self._frame(BODY, body[place : place + 2], 1)

    def _send(self, method: tuple[int, int], fields: bytes) -> None:
        self._frame(METHOD, struct.pack(">HH", *method) + fields, int(method[0] != 10))

    def _frame(self, kind: int, payload: bytes, channel: int) -> None:
        self.writer.write(struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce")


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    kind, _, length = struct.unpack(">BHI", await reader.readexactly(7))
    return kind, (await reader.readexactly(length + 1))[:-1]
