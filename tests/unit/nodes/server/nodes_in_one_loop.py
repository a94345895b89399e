"""Whole nodes in one event loop on loopback ports, with real storage, for the tests here."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvloop

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import Route
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.state_machine import StateMachineName
from splitbrain.nodes.server.machine.assembly import Server
from splitbrain.nodes.server.machine.configuration import (
    Listener,
    NodeConfiguration,
    read_configuration,
)
from splitbrain.nodes.server.machine.data_folder import format_data_folder_if_empty
from splitbrain.nodes.server.start.metadata_settings import quorums_part
from splitbrain.nodes.server.start.quorum_settings import quorum_settings
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.state_machines import with_replicas

PATIENCE_S = 20.0
Result = TypeVar("Result")
#: Brokers of a cluster with metadata, where a test adds all of them.
BROKERS = 2
#: Brokers that find out soon.
BROKER_TIMES = {"broker.heartbeat.interval.ms": "200", "controlled_shutdown_timeout_ms": "5000"}
#: Controllers that give a silent broker up after fifteen of its heartbeats.
CONTROLLER_TIMES = {"broker.session.timeout.ms": "3000"}
ANY = Route("leader", NodeName("n1"))


class Nodes:
    """The nodes of one test, and how clients reach them."""

    def __init__(self, folder: Path, state_machine: StateMachineName = "registers") -> None:
        self.folder = folder
        self._state_machine: StateMachineName = state_machine
        self.system = KraftSystem()
        # It gives each node an address of its own, and starts nothing here.
        runtime = LocalRuntime("processes")
        self.spec = self.system.deployment(
            RunId("unit"), folder, Experiment(system="kraft", nodes=3), runtime.place
        )
        runtime.teardown()
        self.servers: dict[NodeName, Server] = {}
        #: Of nodes that are no voters.
        self.others: dict[NodeName, NodeConfiguration] = {}
        self._ends: dict[NodeName, asyncio.Task[int]] = {}

    def nodes(self) -> list[NodeName]:
        return [node.name for node in self.spec.nodes]

    def endpoint(self, node: NodeName, port: str) -> Address:
        (spec,) = [each for each in self.spec.nodes if each.name == node]
        return Address(self.configuration(node).client_listener.host, spec.ports[port])

    def add_broker(self, node_id: int) -> NodeName:
        """A node that is no voter, and runs nowhere yet."""
        name = NodeName(f"n{node_id}")
        voter = self.configuration(self.nodes()[0])
        host = voter.quorum_listener.host
        self.others[name] = msgspec.structs.replace(
            voter,
            name=name,
            node_id=node_id,
            directory_id=f"b{node_id:031x}",
            quorum_listener=Listener(host, free_port(host)),
            client_listener=Listener(host, free_port(host)),
            metrics_listener=None,
            data_folder=str(self.folder / name / "data"),
            state_event_file=str(self.folder / f"{name}.jsonl"),
            durable_length_file=None,
            settings=BROKER_TIMES,
        )
        return name

    def configuration(self, node: NodeName) -> NodeConfiguration:
        if node in self.others:
            return self.others[node]
        written = read_configuration(self.folder / "nodes" / node / "config" / "node.json")
        settings = written.settings
        if self._state_machine == "metadata":
            settings = with_replicas({**settings, **CONTROLLER_TIMES}, BROKERS)
        return msgspec.structs.replace(
            written, state_machine=self._state_machine, settings=settings
        )

    async def start(
        self, node: NodeName, before: Callable[[Server], None] = lambda _: None
    ) -> Server:
        """``before`` is called with the node made, and nothing sent or heard."""
        configuration = self.configuration(node)
        format_data_folder_if_empty(configuration)
        settings = {} if node in self.others else configuration.settings
        server = Server(configuration, quorum_settings(quorums_part(settings)))
        self.servers[node] = server
        before(server)
        await server.listen()
        self._ends[node] = asyncio.create_task(server.finished())
        return server

    async def end_of(self, node: NodeName) -> int:
        """Waits until the node has ended; its exit code. It counts as down from then on."""
        code = await asyncio.wait_for(self._ends.pop(node), PATIENCE_S)
        del self.servers[node]
        return code

    async def leader(self) -> NodeName:
        """Waits until one node leads, has committed, and all running ones follow it."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                states = {node: server.state() for node, server in self.servers.items()}
                leaders = [node for node, state in states.items() if state.role == "leader"]
                beliefs = {(state.leader_id, state.epoch) for state in states.values()}
                if len(leaders) == len(beliefs) == 1 and states[leaders[0]].high_watermark >= 0:
                    return leaders[0]
                await asyncio.sleep(0.01)

    async def invoke(self, operation: Operation, route: Route = ANY) -> tuple[str, object]:
        client = self.system.open_client(self, route)
        try:
            completion = await client.invoke(operation, PATIENCE_S)
        finally:
            await client.close()
        return completion.type, completion.value

    async def stop(self) -> None:
        for server in self.servers.values():
            server.node.end(exit_codes.STOPPED, "end of the test")
        await asyncio.gather(*self._ends.values())

    def events(self, node: NodeName) -> list[StateEvent]:
        if node in self.others:
            path = Path(str(self.others[node].state_event_file))
        else:
            path = self.folder / "nodes" / node / "state" / "state_events.jsonl"
        return [
            msgspec.json.decode(line, type=StateEvent) for line in path.read_bytes().splitlines()
        ]


def free_port(host: str) -> int:
    """A port that nobody listens on just now."""
    with socket.create_server((host, 0)) as listening:
        return listening.getsockname()[1]


def on_uvloop(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs as a node does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def run(
    tmp_path: Path,
    body: Callable[[Nodes], Awaitable[None]],
    state_machine: StateMachineName = "registers",
) -> Nodes:
    nodes = Nodes(tmp_path, state_machine)

    async def main() -> None:
        try:
            for node in nodes.nodes():
                await nodes.start(node)
            await body(nodes)
        finally:
            await nodes.stop()

    on_uvloop(main())
    return nodes


def on_three_nodes(
    state_machine: StateMachineName = "registers",
) -> Callable[[Callable[[Nodes], Awaitable[None]]], Callable[[Path], None]]:
    """Makes a test of what is to be done with three nodes."""

    def decorate(body: Callable[[Nodes], Awaitable[None]]) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            run(tmp_path, body, state_machine)

        return test

    return decorate
