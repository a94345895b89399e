"""Base of systems whose nodes are one server program each: deployment, ``ready`` and a client.

An adapter says how a node is started and how a client asks; the rest has defaults. It may override
anything of ``contracts.system.System`` besides.
"""

import asyncio
import contextlib
import socket
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from splitbrain.contracts.errors import HarnessError, not_written
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.contracts.runtime import (
    Address,
    DeploymentSpec,
    ImageSource,
    Mount,
    NodeSpec,
    Placement,
    Runtime,
)
from splitbrain.contracts.system import CLIENT_PORT, Place, Route, System
from splitbrain.history.plan import voters
from splitbrain.history.run_folder import RunFolder

_CONNECT_TIMEOUT_S: Final = 1.0
#: Longest wait for a connection to one node while others could be asked instead.
_PATIENCE_S: Final = 0.7
#: A connection that lives so long without a word is one to the node.
_KEPT_S: Final = 0.2
#: Time in which such an end is seen.
_ENDED_S: Final = 0.01
_PLAIN: Final = ImageSource("splitbrain-plain", "plain")

_ConnectionT = TypeVar("_ConnectionT")


class Refused(Exception):
    """The system answered that it did not do it; its text is the error class, kebab-case."""


class Unclear(Exception):
    """The answer leaves open whether it happened; its text is the error class, kebab-case."""


class Server(msgspec.Struct, frozen=True):
    """One node that is to be started."""

    name: NodeName
    #: 1 for the first.
    number: int
    placement: Placement
    #: The node's folder of configuration on this machine.
    folder: Path

    def address(self, port: str = CLIENT_PORT) -> str:
        """Return ``host:port`` by which the other nodes reach a port of it."""
        return f"{self.placement.peer_host}:{self.placement.ports[port]}"

    def listen_address(self, port: str = CLIENT_PORT) -> str:
        """Return ``host:port`` that its own program binds to."""
        return f"{self.placement.listen_host}:{self.placement.ports[port]}"

    def file(self, name: str, text: str) -> str:
        """Write a file that its program is to read; return the path as the program sees it.

        Raises:
            HarnessError: the run folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise not_written("write a node's configuration", self.folder / name, error) from error
        return f"{self.placement.config_path}/{name}"

    def json_file(self, name: str, content: Mapping[str, object]) -> str:
        """As ``file``, for a program whose own notation has JSON within."""
        text = msgspec.json.format(msgspec.json.encode(content)).decode()
        return self.file(name, f"{text}\n")


class ServerSystem(System):
    """A system of one server program a node."""

    #: For ``--runtime docker``, an image with its tag, or a recipe of one. By default Python alone,
    #: which a program of ``Server.file`` needs.
    image: str | ImageSource = _PLAIN
    #: Ports by name, with the numbers that they get where each node has a network of its own;
    #: ``client`` is where clients connect.
    ports: Mapping[str, int] = {CLIENT_PORT: 7000}
    #: As of ``NodeSpec``.
    collected: tuple[str, ...] | None = None

    def images(self) -> Sequence[ImageSource]:
        """Return the recipe of the nodes' image, if they have one."""
        return () if isinstance(self.image, str) else (self.image,)

    @abstractmethod
    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str | float | Path]:
        """Return the program and the arguments of a node, given the other nodes.

        ``server.placement`` has its addresses, the folder for its data and a Python interpreter;
        ``server.file`` writes what it is to read.
        """
        ...

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation
    ) -> Any:
        """Perform one operation over a connection to a node and return the value of its ``ok``.

        An adapter with a client library overrides ``open_client`` instead.

        Raises:
            Refused: the system answered that it did not do it.
            Unclear: it answered, and may have done it or not.
            OSError, EOFError: the connection is of no more use.
        """
        raise NotImplementedError

    async def ask_digest(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> MemberDigest | None:
        """Return a node's digest of its state, over a fresh connection to it.

        Asked of systems that declare digests; one that needs no such connection overrides
        ``digest``. Raises as ``ask``.
        """
        raise NotImplementedError

    def digest(self, runtime: Runtime, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Connect to the node and ask; None where the connection is of no use."""
        there = runtime.endpoint(node, CLIENT_PORT)

        async def connect_and_ask() -> MemberDigest | None:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(there.host, there.port)
                try:
                    return await self.ask_digest(reader, writer)
                finally:
                    writer.close()

        with contextlib.suppress(OSError, EOFError):  # a TimeoutError is an OSError
            return asyncio.run(connect_and_ask())
        return None

    def environment(self, server: Server) -> dict[str, str]:
        """Return the variables of a node's program."""
        return {"PYTHONUNBUFFERED": "1"}

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Describe a cluster of such nodes."""
        servers: list[Server] = []
        names = (*voters(options.nodes), *self.observers(options))
        for number, name in enumerate(names, 1):
            folder = RunFolder(run_folder).node(name)
            placement = place(name, folder, self.ports_of(name))
            servers.append(Server(name, number, placement, folder / "config"))
        nodes = tuple(
            self.node_spec(server, [other for other in servers if other is not server])
            for server in servers
        )
        return DeploymentSpec(run_id=run_id, run_folder=run_folder, nodes=nodes)

    def ports_of(self, node: NodeName) -> Mapping[str, int]:
        """Return the node's ``ports``."""
        return self.ports

    def node_spec(self, server: Server, others: Sequence[Server]) -> NodeSpec:
        """Describe one node, given the others."""
        command = tuple(map(str, self.command(server, others)))
        mounts: tuple[Mount, ...] = ()
        if server.folder.is_dir():
            mounts = (Mount(server.folder, server.placement.config_path, read_only=True),)
        return NodeSpec(
            name=server.name,
            image=self.image if isinstance(self.image, str) else self.image.name,
            command=command,
            environment=self.environment(server),
            ports=server.placement.ports,
            data_path=server.placement.data_path,
            collected=self.collected,
            mounts=mounts,
        )

    def ready(self, runtime: Runtime) -> None:
        """Return when every node takes connections from clients, and keeps them."""
        for node in runtime.nodes():
            there = runtime.endpoint(node, CLIENT_PORT)
            problem = _problem_of_connection(there)
            if problem is not None:
                raise HarnessError(
                    "wait for the nodes to take connections",
                    f"{node}, {there.host}:{there.port}",
                    problem,
                    "Look at the node's output in the run folder",
                )

    def open_client(self, runtime: Runtime, route: Route) -> Client:
        """Return a fresh client of the route's node."""
        return ServerClient(self.ask, route.node, runtime.endpoint(route.node, CLIENT_PORT))


def _problem_of_connection(there: Address) -> str | None:
    try:
        connection = socket.create_connection((there.host, there.port), _CONNECT_TIMEOUT_S)
    except OSError as error:
        return error.strerror or str(error)
    with connection:
        connection.settimeout(_KEPT_S)
        try:
            # Whatever publishes the port of a node that is not there takes connections, too, and
            # ends them.
            is_kept = bool(connection.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            is_kept = True
        except OSError as error:
            return error.strerror or str(error)
    return None if is_kept else "it ended the connection at once"


class Asking(Protocol):
    """Does one operation over a connection, as ``ServerSystem.ask``."""

    async def __call__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Return the value of its ``ok``; raises as ``ServerSystem.ask``."""
        ...


class ServerClient:
    """Client of one node, by a way of asking; connects when it must."""

    def __init__(self, ask: Asking, node: NodeName, there: Address) -> None:
        self._ask, self._node, self._there = ask, node, there
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation: what broke before it was sent is ``fail``, afterwards ``info``."""
        is_sent = False
        try:
            async with asyncio.timeout(timeout_s):
                if self._reader is None or self._writer is None:
                    self._reader, self._writer = await asyncio.open_connection(
                        self._there.host, self._there.port
                    )
                    # Whatever publishes a port takes connections for a node that is down, too, and
                    # ends them at once; an operation sent there would be of unknown outcome.
                    await asyncio.sleep(_ENDED_S)
                    if self._reader.at_eof():
                        raise ConnectionError
                is_sent = True
                value = await self._ask(self._reader, self._writer, operation)
        except Refused as answer:
            return Completion("fail", error=str(answer), node=self._node)
        except Unclear as answer:
            error = str(answer)
        except TimeoutError:
            error = "timeout"
        except (OSError, EOFError):
            error = "connection-broken" if is_sent else "no-connection"
        else:
            return Completion("ok", value, node=self._node)
        # A late answer must never meet a later operation.
        await self.close()
        return Completion("info" if is_sent else "fail", error=error)

    async def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


async def connected_to_first(
    nodes: deque[tuple[NodeName, Address]], connect: Callable[[Address], Awaitable[_ConnectionT]]
) -> _ConnectionT:
    """Connect to the first node that takes it, which is the first of ``nodes`` from then on.

    Raises OSError or EOFError where the last of them does not either; it gets the caller's time.
    """
    for _ in range(len(nodes) - 1):
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await connect(nodes[0][1])
        except (OSError, EOFError):
            nodes.rotate(-1)
    return await connect(nodes[0][1])
