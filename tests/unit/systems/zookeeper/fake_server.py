"""A server of ZooKeeper's protocol with a tree in memory, which can be told to misbehave."""

import asyncio
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from splitbrain.contracts.runtime import Address
from splitbrain.systems.zookeeper.session import (
    ANY_VERSION,
    BAD_VERSION,
    CHECK,
    CREATE,
    DELETE,
    EPHEMERAL,
    GET_CHILDREN,
    GET_DATA,
    MULTI,
    NO_NODE,
    NODE_EXISTS,
    OK,
    SEQUENTIAL,
    SET_DATA,
    SYNC,
)

#: Epoch of the leader that orders the fake's transactions.
EPOCH = 7


class Hang(Exception):
    """Raised by an interruption: close the connection instead of answering."""


#: Called with the kind and path of each request before it is done; a code refuses it.
Interruption = Callable[[int, str], int | None]


class FakeServer:
    def __init__(self) -> None:
        self.tree: dict[str, tuple[bytes, int]] = {"/": (b"", 0)}
        self.numbers = 0
        #: Sessions opened so far; the last one has this number.
        self.sessions = 0
        self.owners: dict[str, int] = {}
        self.zxid = EPOCH << 32
        self.asked: list[tuple[int, str]] = []
        self.before: Interruption = lambda kind, path: None
        #: Called once a request is done, before it is answered.
        self.after: Callable[[int, str], None] = lambda kind, path: None
        self.serves = True

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (seen_zxid,) = struct.unpack_from(">q", await _frame(reader), 4)
            if not self.serves or seen_zxid > self.zxid:
                return
            self.sessions += 1
            _answer(writer, struct.pack(">iiqi", 0, 4000, self.sessions, 16) + bytes(17))
            while True:
                frame = await _frame(reader)
                number, kind = struct.unpack_from(">ii", frame)
                path, rest = ("/", frame[8:]) if kind == MULTI else _text(frame[8:])
                self.asked.append((kind, path))
                code = self.before(kind, path)
                body = b""
                if code is None:
                    code, body = self._do(kind, path, rest)
                    self.after(kind, path)
                _answer(writer, struct.pack(">iqi", number, self.zxid, code) + body)
        except (asyncio.IncompleteReadError, Hang, ConnectionError):
            pass
        finally:
            writer.close()

    def _do(self, kind: int, path: str, rest: bytes) -> tuple[int, bytes]:
        parent = path.rpartition("/")[0] or "/"
        match kind:
            case _ if kind == CREATE:
                content, after = _data(rest)
                (flags,) = struct.unpack(">i", after[-4:])
                if parent not in self.tree:
                    return NO_NODE, b""
                if flags == SEQUENTIAL:
                    path = f"{path}{self.numbers:010}"
                    self.numbers += 1
                if path in self.tree:
                    return NODE_EXISTS, b""
                self.tree[path] = (content, 0)
                self.owners[path] = self.sessions if flags == EPHEMERAL else 0
            case _ if kind == MULTI:
                return OK, self._do_all(rest)
            case _ if path not in self.tree and kind != SYNC:
                return NO_NODE, b""
            case _ if kind == DELETE:
                del self.tree[path]
            case _ if kind == SET_DATA:
                content, after = _data(rest)
                (wanted,) = struct.unpack(">i", after)
                version = self.tree[path][1]
                if wanted not in (ANY_VERSION, version):
                    return BAD_VERSION, b""
                self.tree[path] = (content, version + 1)
            case _ if kind == GET_DATA:
                content, version = self.tree[path]
                owner = self.owners.get(path, 0)
                stat = struct.pack(">qqqqiiiqiiq", 0, 0, 0, 0, version, 0, 0, owner, 0, 0, 0)
                return OK, struct.pack(">i", len(content)) + content + stat
            case _ if kind == GET_CHILDREN:
                names = [name[len(path) + 1 :] for name in self.tree if name.startswith(f"{path}/")]
                parts = b"".join(struct.pack(">i", len(n)) + n.encode() for n in names)
                return OK, struct.pack(">i", len(names)) + parts
            case _:
                return OK, b""
        self.zxid += 1
        return OK, b""

    def _do_all(self, rest: bytes) -> bytes:
        """All parts of a transaction, or none."""
        before, codes = dict(self.tree), list[int]()
        while True:
            kind, is_last, _ = struct.unpack_from(">i?i", rest)
            if is_last:
                break
            path, rest = _text(rest[9:])
            if kind == SET_DATA:
                content, rest = _data(rest)
                fields = struct.pack(">i", len(content)) + content + rest[:4]
                codes.append(self._do(SET_DATA, path, fields)[0])
            else:
                (wanted,) = struct.unpack_from(">i", rest)
                _, version = self.tree.get(path, (b"", None))
                codes.append(OK if version == wanted else BAD_VERSION)
            rest = rest[4:]
        end = struct.pack(">i?i", -1, True, -1)
        if not any(codes):
            return b"".join(struct.pack(">i?i", CHECK, False, 0) for _ in codes) + end
        self.tree = before
        return b"".join(struct.pack(">i?ii", -1, False, code, code) for code in codes) + end


def _answer(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


def _data(raw: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">i", raw)
    return raw[4 : 4 + length], raw[4 + length :]


def _text(raw: bytes) -> tuple[str, bytes]:
    content, rest = _data(raw)
    return content.decode(), rest
