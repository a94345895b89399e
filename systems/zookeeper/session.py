"""A session with one ZooKeeper server: requests and answers in their order, over asyncio.

The client port's protocol, as far as workloads need it. Must never send a request twice, and never
connect again by itself: whether an operation may have happened is decided above.

Source: ``zookeeper.jute``, ``ZooDefs`` and ``DataTree`` of Apache ZooKeeper 3.9.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.runtime import Address

CREATE: Final = 1
DELETE: Final = 2
GET_DATA: Final = 4
SET_DATA: Final = 5
GET_CHILDREN: Final = 8
SYNC: Final = 9
CHECK: Final = 13
MULTI: Final = 14
#: Requests that change something, and so go through the quorum.
CHANGES: Final = frozenset({CREATE, DELETE, SET_DATA, MULTI})

OK: Final = 0
NO_NODE: Final = -101
BAD_VERSION: Final = -103
NODE_EXISTS: Final = -110

#: Flags of a node: it goes with the session; its name gets the next number of its parent.
EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2
#: Version that fits every node.
ANY_VERSION: Final = -1

#: A server notes the digest of its data after each transaction whose number this divides.
DIGEST_INTERVAL: Final = 128

#: A session without a request for so long ends; also that of a client that has gone.
SESSION_TIMEOUT_MS: Final = 4000
_HEADERS_BEFORE_ANSWERS: Final = frozenset({-1, -2})  # watches and pings
_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">ii")
_ANSWER: Final = struct.Struct(">iqi")
_CONNECT: Final = struct.Struct(">iqiqi")
_CONNECTED: Final = struct.Struct(">iiq")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_VERSION_IN_STAT: Final = 4
_OWNER_IN_STAT: Final = 7
_PART: Final = struct.Struct(">i?i")
_LAST_PART: Final = _PART.pack(-1, True, -1)
#: Type of a part of an answer, followed by the code of an error.
_FAILED_PART: Final = -1
#: All may do everything.
_OPEN_ACL: Final = struct.pack(">ii", 1, 31) + b"\0\0\0\x05world\0\0\0\x06anyone"


class Answer(msgspec.Struct, frozen=True):
    """One answer of a server."""

    #: Of a change its own transaction, else the last one that the server has applied.
    zxid: int
    #: 0, or the code of the error.
    code: int
    body: bytes

    def position(self) -> tuple[int, int]:
        """Epoch of the leader that ordered the transaction, and its number in that epoch."""
        return self.zxid >> 32, self.zxid & 0xFFFFFFFF


class Session:
    """An open session; made by ``open_session``."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        #: The servers' own number of it.
        self.number = number
        self._reader, self._writer = reader, writer
        self._sent = 0
        self._used_at = asyncio.get_running_loop().time()

    def is_fresh(self) -> bool:
        """Whether the server will not have ended it for want of requests."""
        idle_s = asyncio.get_running_loop().time() - self._used_at
        return idle_s * 1000 < SESSION_TIMEOUT_MS / 2

    async def ask(self, kind: int, *fields: bytes) -> Answer:
        """Send one request and return its answer.

        Raises:
            OSError, EOFError: the connection is of no more use.
        """
        (answer,) = await self.ask_all(kind, [b"".join(fields)])
        return answer

    async def ask_all(self, kind: int, requests: Sequence[bytes]) -> Sequence[Answer]:
        """Send requests of one kind at once and return their answers; the server keeps the order.

        Raises as ``ask``.
        """
        first = self._sent + 1
        self._sent += len(requests)
        for place, fields in enumerate(requests):
            _send(self._writer, _REQUEST.pack(first + place, kind) + fields)
        return [await self._answer(first + place) for place in range(len(requests))]

    async def _answer(self, expected: int) -> Answer:
        while True:
            frame = await _receive(self._reader)
            if len(frame) < _ANSWER.size:
                raise EOFError
            number, zxid, code = _ANSWER.unpack_from(frame)
            if number in _HEADERS_BEFORE_ANSWERS:
                continue
            if number != expected:
                raise EOFError
            self._used_at = asyncio.get_running_loop().time()
            return Answer(zxid, code, frame[_ANSWER.size :])

    def close(self) -> None:
        """Drop the connection; the server ends the session after its timeout."""
        self._writer.close()


async def open_session(there: Address, seen_zxid: int = 0) -> Session:
    """Return a fresh session, which is itself a transaction: a server without quorum gives none.

    Nor does one that is behind ``seen_zxid``.

    Raises:
        OSError, EOFError: nobody listens, or the server does not serve.
    """
    reader, writer = await asyncio.open_connection(there.host, there.port)
    try:
        _send(writer, _CONNECT.pack(0, seen_zxid, SESSION_TIMEOUT_MS, 0, 16) + bytes(16) + b"\0")
        frame = await _receive(reader)
        if len(frame) < _CONNECTED.size:
            raise EOFError
        _, timeout_ms, session_number = _CONNECTED.unpack_from(frame)
        if timeout_ms <= 0:
            raise EOFError
    except BaseException:
        writer.close()
        raise
    return Session(session_number, reader, writer)


async def order_idle_transactions(there: Address, timeout_s: float) -> None:
    """Have as many transactions ordered as lie between two digests, none of which does anything.

    A change that is refused because its node is missing is ordered and applied as an error.

    Raises:
        OSError, EOFError: there is no session, or it broke off before all were ordered.
    """
    async with asyncio.timeout(timeout_s):
        session = await open_session(there)
        try:
            missing = text("/no-such-node") + number(ANY_VERSION)
            await session.ask_all(DELETE, [missing] * DIGEST_INTERVAL)
        finally:
            session.close()


def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(_LENGTH.pack(len(frame)) + frame)


async def _receive(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


def text(value: str) -> bytes:
    """Return a string as a field of a request."""
    return data(value.encode())


def data(value: bytes) -> bytes:
    """Return bytes as a field of a request."""
    return _LENGTH.pack(len(value)) + value


def number(value: int) -> bytes:
    """Return a version or flags as a field of a request."""
    return _LENGTH.pack(value)


def node_to_create(path: str, content: bytes, flags: int = 0) -> bytes:
    """Return the fields of a ``CREATE``."""
    return text(path) + data(content) + _OPEN_ACL + number(flags)


def node_to_watch(path: str) -> bytes:
    """Return the fields of a ``GET_DATA`` or ``GET_CHILDREN``, without a watch."""
    return text(path) + b"\0"


def part(kind: int, *fields: bytes) -> bytes:
    """Return one request as a part of a ``MULTI``."""
    return _PART.pack(kind, False, -1) + b"".join(fields)


def last_part() -> bytes:
    """Return the end of a ``MULTI``."""
    return _LAST_PART


def read_node(body: bytes) -> tuple[bytes, int]:
    """Content and version of a node; ValueError: the answer to a ``GET_DATA`` is none."""
    content, stat = _node(body)
    return content, stat[_VERSION_IN_STAT]


def read_owner(body: bytes) -> int:
    """Number of the session that a node goes with, 0 for none; ValueError as of ``read_node``."""
    return _node(body)[1][_OWNER_IN_STAT]


def _node(body: bytes) -> tuple[bytes, tuple[Any, ...]]:
    content, place = _field(body, 0)
    if len(body) < place + _STAT.size:
        raise ValueError
    return content, _STAT.unpack_from(body, place)


def read_refusal(body: bytes) -> int:
    """Code of the part for which a ``MULTI`` did nothing; ``OK``: it did all.

    Parts before that one are answered with ``OK`` as the code of their errors. ValueError: the
    answer is none.
    """
    place = 0
    while len(body) >= place + _PART.size:
        kind, is_last, _ = _PART.unpack_from(body, place)
        if kind != _FAILED_PART or is_last:
            return OK
        place += _PART.size
        (code,) = _LENGTH.unpack_from(body, place)
        if code != OK:
            return code
        place += _LENGTH.size
    raise ValueError


def read_children(body: bytes) -> Sequence[str]:
    """Names of a node's children; ValueError: the answer to a ``GET_CHILDREN`` is none."""
    if len(body) < _LENGTH.size:
        raise ValueError
    (count,) = _LENGTH.unpack_from(body)
    names: list[str] = []
    place = _LENGTH.size
    for _ in range(count):
        name, place = _field(body, place)
        names.append(name.decode())
    return names


def _field(body: bytes, place: int) -> tuple[bytes, int]:
    start = place + _LENGTH.size
    if len(body) < start:
        raise ValueError
    length = max(0, _LENGTH.unpack_from(body, place)[0])
    if len(body) < start + length:
        raise ValueError
    return body[start : start + length], start + length
