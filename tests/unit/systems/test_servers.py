"""The base of short adapters: its deployment, readiness, and its client's reading of answers."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address, ImageSource
from splitbrain.contracts.system import PEER_PORT, Route
from splitbrain.systems.servers import Refused, Server, ServerClient, ServerSystem, Unclear
from tests.unit.systems.pod_place import pod_place

N1 = NodeName("n1")


class Parrot(ServerSystem):
    name = "parrot"
    ports: Mapping[str, int] = MappingProxyType({"client": 7000, "peer": 7001})

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        config = server.file("parrot.json", json.dumps([other.address("peer") for other in others]))
        return ("parrot", server.listen_address(), config, str(server.number))

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation
    ) -> Any:
        writer.write(json.dumps([operation.value, operation.final]).encode() + b"\n")
        line = await reader.readline()
        if not line:
            raise EOFError
        value = json.loads(line)
        if value == "no":
            raise Refused("said-no")
        if value == "perhaps":
            raise Unclear("said-perhaps")
        return value


def test_each_node_is_told_of_the_others_and_has_what_was_written_for_it(tmp_path: Path) -> None:
    options = Experiment(system="parrot", nodes=3)
    spec = Parrot().deployment(RunId("r"), tmp_path, options, pod_place)
    assert [node.name for node in spec.nodes] == ["n1", "n2", "n3"]
    second = spec.nodes[1]
    assert second.command == ("parrot", "0.0.0.0:7000", "/config/parrot.json", "2")
    (mount,) = second.mounts
    assert mount.node_path == "/config"
    assert json.loads((mount.host_path / "parrot.json").read_text()) == ["n1:7001", "n3:7001"]
    assert second.ports == {"client": 7000, "peer": 7001}


def test_a_node_without_files_has_no_mount(tmp_path: Path) -> None:
    class Fileless(Parrot):
        def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
            return ("parrot",)

    spec = Fileless().deployment(RunId("r"), tmp_path, Experiment(system="x", nodes=1), pod_place)
    assert spec.nodes[0].mounts == ()


def test_its_image_is_a_tag_or_a_recipe_or_python_alone(tmp_path: Path) -> None:
    class Tagged(Parrot):
        image = "registry/parrot:1"

    class Built(Parrot):
        image = ImageSource("parrot", "/elsewhere/parrot", build=("go", "build"))

    images = {Parrot: "splitbrain-plain", Tagged: "registry/parrot:1", Built: "parrot"}
    for kind, image in images.items():
        options = Experiment(system="parrot", nodes=1)
        spec = kind().deployment(RunId("r"), tmp_path, options, pod_place)
        assert spec.nodes[0].image == image
    assert Tagged().images() == ()
    assert [source.folder for source in Built().images()] == ["/elsewhere/parrot"]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_harness(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("in the way")
    with pytest.raises(HarnessError, match=r"parrot\.json"):
        Parrot().deployment(RunId("r"), tmp_path, Experiment(system="x", nodes=1), pod_place)


class OneNode:
    """As much of a runtime as is asked for an address."""

    def __init__(self, port: int) -> None:
        self._there = Address("127.0.0.1", port)

    def nodes(self) -> Sequence[NodeName]:
        return (N1,)

    def endpoint(self, node: NodeName, port: str) -> Address:
        assert (node, port) == (N1, "client")
        return self._there


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def asked(
    handler: Handler, *operations: Operation, timeouts_s: Sequence[float] = ()
) -> list[Completion]:
    """Have one client ask a server for these operations, each with its timeout."""

    async def ask() -> list[Completion]:
        over: list[asyncio.Event] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            over.append(asyncio.Event())
            mine = over[-1]
            await handler(reader, writer)
            mine.set()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        runtime: Any = OneNode(server.sockets[0].getsockname()[1])
        async with server:
            await asyncio.to_thread(Parrot().ready, runtime)
            client = Parrot().open_client(runtime, Route("pinned", N1))
            times_s = timeouts_s or [30.0] * len(operations)
            answers = [await client.invoke(*each) for each in zip(operations, times_s, strict=True)]
            await client.close()
            await asyncio.gather(*(each.wait() for each in over))
            return answers

    return asyncio.run(ask())


def operation(value: Any, *, final: bool = False) -> Operation:
    return Operation("write", "k", value, final)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        value, final = json.loads(line)
        writer.write(json.dumps([value, final] if final else value).encode() + b"\n")
    await end(writer)


async def end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


def test_an_answer_is_ok_and_a_refusal_fails_and_keeps_the_connection() -> None:
    answers = asked(_echo, operation(1), operation("no"), operation(2, final=True))
    assert answers == [
        Completion("ok", 1, node="n1"),
        Completion("fail", error="said-no", node="n1"),
        Completion("ok", [2, True], node="n1"),
    ]


def test_an_answer_that_leaves_it_open_is_unknown_and_the_next_connects_anew() -> None:
    connections: list[int] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await _echo(reader, writer)

    answers = asked(echo, operation("perhaps"), operation(1))
    assert answers == [Completion("info", error="said-perhaps"), Completion("ok", 1, node="n1")]
    assert len(connections) == 3  # with the look whether it is ready


def test_a_connection_that_ends_at_once_is_none_and_nothing_was_sent() -> None:
    heard: list[bytes] = []

    async def end_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(b"")
        if len(heard) == 1:
            heard[0] = await reader.read()
        await end(writer)

    (answer,) = asked(end_second, operation(1))
    assert answer == Completion("fail", error="no-connection")
    assert heard == [b"", b""]


def test_what_broke_after_it_was_sent_is_unknown_and_the_next_connects_anew() -> None:
    connections: list[int] = []

    async def break_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if not line:  # the look whether it is ready
            await end(writer)
            return
        connections.append(1)
        if len(connections) > 1:
            writer.write(b"7\n")
        await end(writer)

    answers = asked(break_first, operation(1), operation(2))
    assert answers[0] == Completion("info", error="connection-broken")
    assert answers[1] == Completion("ok", 7, node="n1")


def test_a_late_answer_never_meets_a_later_operation() -> None:
    quick = asyncio.Event()

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked_for = 0
        while line := await reader.readline():
            asked_for += 1
            if json.loads(line)[0] == "slow":
                await quick.wait()
            else:
                quick.set()
            writer.write(json.dumps(asked_for).encode() + b"\n")
        await end(writer)

    # The first must have connected within its time, however busy the machine is.
    timeouts_s = (1.0, 30.0)
    answers = asked(answer_late, operation("slow"), operation("quick"), timeouts_s=timeouts_s)
    assert answers[0] == Completion("info", error="timeout")
    # The first of a new connection.
    assert answers[1] == Completion("ok", 1, node="n1")


def test_a_port_that_ends_its_connections_at_once_has_no_node_behind_it() -> None:
    async def end_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await end(writer)

    with pytest.raises(HarnessError, match="it ended the connection at once"):
        asked(end_at_once)


def test_without_a_server_it_fails_for_sure_and_is_not_ready(unused_tcp_port: int) -> None:
    runtime: Any = OneNode(unused_tcp_port)
    with pytest.raises(HarnessError, match="wait for the nodes to take connections"):
        Parrot().ready(runtime)
    client = ServerClient(Parrot().ask, N1, Address("127.0.0.1", unused_tcp_port))
    answer = asyncio.run(client.invoke(operation(1), 5.0))
    assert answer == Completion("fail", error="no-connection")


@pytest.fixture
def unused_tcp_port() -> int:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


class Tuned(Parrot):
    settings: Mapping[str, str | tuple[str, ...]] = MappingProxyType(
        {"mode": ("fast", "slow"), "words": "100"}
    )


def test_settings_have_usual_values_and_given_ones() -> None:
    parrot = Tuned()
    assert (parrot.setting("mode"), parrot.setting("words")) == ("fast", "100")
    parrot.experiment = Experiment(system="parrot", settings={"mode": "slow", "words": "7"})
    parrot.check_options(parrot.experiment)
    assert (parrot.setting("mode"), parrot.setting("words")) == ("slow", "7")


@pytest.mark.parametrize(
    ("system", "settings", "says"),
    [
        (Tuned, {"mode": "quick"}, "does not know 'quick' as mode. Choose fast or slow"),
        (Tuned, {"mood": "fast"}, "has no setting 'mood'. Did you mean 'mode'?"),
        (Parrot, {"mode": "fast"}, "has no setting 'mode'. Leave --setting out"),
    ],
)
def test_unknown_settings_and_values_are_refused(
    system: type[ServerSystem], settings: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        system().check_options(Experiment(system="parrot", settings=settings))


def test_nodes_without_a_port_for_each_other_are_probed_at_their_clients_port(
    tmp_path: Path,
) -> None:
    class OnePort(Parrot):
        ports: Mapping[str, int] = MappingProxyType({"client": 7000})

    for kind, port in ((Parrot, "peer"), (OnePort, "client")):
        options = Experiment(system="parrot", nodes=1)
        (node,) = kind().deployment(RunId("r"), tmp_path, options, pod_place).nodes
        assert node.probed_port(PEER_PORT) == port


class Digesting(Parrot):
    async def ask_digest(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> MemberDigest | None:
        writer.write(b"[3, false]\n")
        line = await reader.readline()
        if not line:
            raise EOFError
        return MemberDigest(json.loads(line), "ab")


def digest_from(handler: Handler, system: ServerSystem, timeout_s: float) -> MemberDigest | None:
    async def ask() -> MemberDigest | None:
        over = asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await handler(reader, writer)
            over.set()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        runtime: Any = OneNode(server.sockets[0].getsockname()[1])
        async with server:
            try:
                return await asyncio.to_thread(system.digest, runtime, N1, timeout_s)
            finally:
                await over.wait()

    return asyncio.run(ask())


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    await end(writer)


def test_a_node_tells_its_digest_over_a_connection_of_its_own() -> None:
    assert digest_from(_echo, Digesting(), 5.0) == MemberDigest(3, "ab")


def test_a_node_that_breaks_off_or_is_silent_tells_no_digest() -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await end(writer)

    assert digest_from(break_off, Digesting(), 5.0) is None
    assert digest_from(_silent, Digesting(), 0.05) is None


def test_an_adapter_that_declares_digests_must_say_how_to_ask() -> None:
    with pytest.raises(NotImplementedError):
        digest_from(_echo, Parrot(), 5.0)
