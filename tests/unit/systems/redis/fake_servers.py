"""Servers and Sentinels that answer as they are told, and count what they are asked."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Self

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.redis.resp import Reply, ReplyParser, text
from splitbrain.systems.redis.settings import SENTINEL_PORT, SERVER_PORT, Member, Membership

N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
NODES = (N1, N2, N3)

#: As the nodes know each other; clients reach them elsewhere.
MEMBERSHIP = Membership(tuple(Member(node, node, 6379, 26379, "0" * 40) for node in NODES))

#: From the words of a command to the bytes of its reply; None says nothing.
Behaviour = Callable[[list[str]], bytes | None]


class Close(Exception):
    """Raised by a behaviour: close the connection instead of answering."""


def bulk(value: str | int | None) -> bytes:
    if value is None:
        return b"$-1\r\n"
    raw = str(value).encode()
    return b"$%d\r\n%b\r\n" % (len(raw), raw)


def array(*items: bytes) -> bytes:
    return b"*%d\r\n" % len(items) + b"".join(items)


def primary(words: list[str]) -> bytes:
    """A server without data that claims to be the primary."""
    match words[0]:
        case "ROLE":
            return array(bulk("master"), b":0\r\n", array())
        case "EXEC":
            return array(array(bulk("master"), b":0\r\n", array()), bulk(5))
        case "SET" | "MULTI":
            return b"+OK\r\n"
        case _:
            return b":1\r\n"


def replica(words: list[str]) -> bytes:
    """A server that refuses what may write."""
    role = array(bulk("slave"), bulk("n1"), b":6379\r\n", bulk("connected"), b":0\r\n")
    match words[0]:
        case "ROLE":
            return role
        case "EXEC":
            return array(role, bulk(4))
        case "MULTI":
            return b"+OK\r\n"
        case "EVAL" if "no-writes" in words[1]:
            return b"+QUEUED\r\n"
        case _:
            return b"-READONLY You can't write against a read only replica.\r\n"


def alive_but(failing: Behaviour) -> Behaviour:
    """A primary that says its role and then does something else."""
    return lambda words: primary(words) if words[0] == "ROLE" else failing(words)


def silent(_words: list[str]) -> None:
    """Never answers."""


def closes(_words: list[str]) -> bytes:
    """As a proxy in front of a dead node, or a node that dies now."""
    raise Close


def refuses(error: str) -> Behaviour:
    return alive_but(lambda _: f"-{error}\r\n".encode())


def names(node: NodeName, epoch: int) -> Behaviour:
    """A Sentinel that names this primary."""
    fields = {"ip": node, "port": 6379, "config-epoch": epoch, "flags": "master"}
    items = [bulk(word) for pair in fields.items() for word in pair]
    return lambda _: array(*items)


class Fakes:
    """One server and one Sentinel a node, on the loopback interface; a context manager."""

    def __init__(
        self, servers: Mapping[NodeName, Behaviour], sentinels: Mapping[NodeName, Behaviour]
    ) -> None:
        self.behaviours = {
            **{(node, SERVER_PORT): behaviour for node, behaviour in servers.items()},
            **{(node, SENTINEL_PORT): behaviour for node, behaviour in sentinels.items()},
        }
        #: Node and first word of each command, ``ROLE`` apart; Sentinels' apart too.
        self.asked: list[tuple[NodeName, str]] = []
        self.sentinels_asked: list[NodeName] = []
        self.connections = 0
        self._servers: list[asyncio.Server] = []
        self._ports: dict[tuple[NodeName, str], int] = {}
        self._closed_port = 0
        #: Open connections, and whether there is none.
        self._writers: set[asyncio.StreamWriter] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        #: Set when a server is asked anything but its role.
        self.was_asked = asyncio.Event()

    async def __aenter__(self) -> Self:
        for place in self.behaviours:
            server = await asyncio.start_server(
                lambda reader, writer, place=place: self._serve(place, reader, writer),
                "127.0.0.1",
                0,
            )
            self._servers.append(server)
            self._ports[place] = server.sockets[0].getsockname()[1]
        vacant = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        self._closed_port = vacant.sockets[0].getsockname()[1]
        vacant.close()
        await vacant.wait_closed()
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._idle.wait()

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Where it listens; nobody does where the node has no behaviour."""
        return Address("127.0.0.1", self._ports.get((node, port), self._closed_port))

    async def _serve(
        self,
        place: tuple[NodeName, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.connections += 1
        self._writers.add(writer)
        self._idle.clear()
        parser = ReplyParser()
        try:
            while data := await reader.read(65_536):
                for command in parser.feed(data):
                    self._answer(place, _words(command), writer)
        except (Close, ConnectionError):
            return
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            if not self._writers:
                self._idle.set()

    def _answer(
        self, place: tuple[NodeName, str], words: list[str], writer: asyncio.StreamWriter
    ) -> None:
        node, port = place
        if port == SENTINEL_PORT:
            self.sentinels_asked.append(node)
        elif words[0] != "ROLE":
            self.asked.append((node, words[0]))
            self.was_asked.set()
        reply = self.behaviours[place](words)
        if reply is not None:
            writer.write(reply)


def _words(command: Reply) -> list[str]:
    assert isinstance(command, list)
    return [text(word) for word in command]
