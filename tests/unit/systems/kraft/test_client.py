"""The client against fake nodes on loopback; its rules are the machine's."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_listener import ClientListener
from splitbrain.nodes.transport.client_protocol import (
    PROTOCOL_VERSION,
    ClientAnswer,
    ClientRequest,
    Hello,
    Reply,
)
from splitbrain.systems.kraft.client import KraftClient
from splitbrain.systems.kraft.client_machine import CONNECT_TIMEOUT_US

CONNECT_TIMEOUT_S = CONNECT_TIMEOUT_US / 1_000_000
N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
WRITE = Operation("write", "k", 1)
READ = Operation("read", "k", None)
Behaviour = Callable[[ClientRequest, Reply], None]


def leads(request: ClientRequest, reply: Reply) -> None:
    reply(ClientAnswer(request.id, "ok", definite=True, result=1, epoch=1, offset=1))


def follows(leader_id: int | None) -> Behaviour:
    def behave(request: ClientRequest, reply: Reply) -> None:
        reply(ClientAnswer(request.id, "not-leader", definite=True, leader_id=leader_id))

    return behave


def is_silent(request: ClientRequest, reply: Reply) -> None:
    """Takes the request and never answers."""


def is_frozen(request: ClientRequest, reply: Reply) -> None:
    """Connections open, for the kernel takes them, and no node greets."""


class FakeNodes:
    """Listeners that count what they are asked; a node without behaviour does not listen."""

    def __init__(self, behaviours: dict[NodeName, Behaviour | None]) -> None:
        self.behaviours = behaviours
        self.asked: list[NodeName] = []
        self.requests: list[ClientRequest] = []
        #: Nodes whose address was asked for, to connect to them.
        self.visited: list[NodeName] = []
        self._listeners: dict[NodeName, ClientListener] = {}
        self._frozen: dict[NodeName, socket.socket] = {}
        self._ports: dict[NodeName, int] = {}

    async def start(self) -> None:
        for node, behaviour in self.behaviours.items():
            if behaviour is is_frozen:
                self._frozen[node] = socket.create_server(("127.0.0.1", 0))
                self._ports[node] = self._frozen[node].getsockname()[1]
                continue
            listener = ClientListener(
                Hello(PROTOCOL_VERSION, int(node[1]), 0), self._handler(node), lambda _: None
            )
            self._ports[node] = await listener.listen("127.0.0.1", 0)
            self._listeners[node] = listener
            if behaviour is None:
                await listener.close()

    async def stop(self) -> None:
        for listener in self._listeners.values():
            await listener.close()
        for server in self._frozen.values():
            server.close()

    def endpoint(self, node: NodeName) -> Address:
        self.visited.append(node)
        return Address("127.0.0.1", self._ports[node])

    def _handler(self, node: NodeName) -> Behaviour:
        def handle(request: ClientRequest, reply: Reply) -> None:
            self.asked.append(node)
            self.requests.append(request)
            behaviour = self.behaviours[node]
            if behaviour is not None:
                behaviour(request, reply)

        return handle


def run(
    behaviours: dict[NodeName, Behaviour | None],
    route: Route,
    body: Callable[[KraftClient, FakeNodes], Awaitable[None]],
) -> None:
    async def main() -> None:
        nodes = FakeNodes(behaviours)
        await nodes.start()
        client = KraftClient(nodes.endpoint, (N1, N2, N3), route)
        try:
            await body(client, nodes)
        finally:
            await client.close()
            await nodes.stop()

    asyncio.run(main())


def outcome(completion: Completion) -> tuple[str, str | None]:
    return completion.type, completion.error


def test_a_following_client_takes_the_hint() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        completion = await client.invoke(WRITE, 5)
        assert (completion.type, completion.node) == ("ok", N3)
        assert nodes.asked == [N1, N3]
        await client.invoke(WRITE, 5)
        assert nodes.asked == [N1, N3, N3]  # remembered

    run({N1: follows(3), N2: follows(3), N3: leads}, Route("leader", N1), body)


def test_a_following_client_goes_past_a_dead_node() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        assert (await client.invoke(WRITE, 5)).node == N3

    run({N1: None, N2: follows(1), N3: leads}, Route("leader", N1), body)


def test_a_change_that_is_not_answered_in_time_is_unknown() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        assert outcome(await client.invoke(WRITE, 0.2)) == ("info", "timed-out")
        assert nodes.asked == [N1]

    run({N1: is_silent, N2: leads, N3: leads}, Route("leader", N1), body)


def test_a_late_answer_never_meets_a_later_operation() -> None:
    replies: list[tuple[int, Reply]] = []

    def late(request: ClientRequest, reply: Reply) -> None:
        replies.append((request.id, reply))
        if len(replies) == 2:
            first_id, first = replies[0]
            first(ClientAnswer(first_id, "ok", definite=True, result=111))
            reply(ClientAnswer(request.id, "ok", definite=True, result=222))

    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        await client.invoke(READ, 0.1)
        assert (await client.invoke(READ, 5)).value == 222

    run({N1: late, N2: leads, N3: leads}, Route("pinned", N1), body)


def test_a_dead_node_was_certainly_not_asked() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        assert outcome(await client.invoke(WRITE, 1)) == ("fail", "not-sent")
        assert nodes.asked == []

    run({N1: None, N2: leads, N3: leads}, Route("pinned", N1), body)


def test_each_attempt_has_its_own_operation_id() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        await client.invoke(WRITE, 5)
        await client.invoke(WRITE, 5)
        ids = [request.operation for request in nodes.requests]
        assert len(set(ids)) == len(ids) == 3

    run({N1: follows(2), N2: leads, N3: leads}, Route("leader", N1), body)


def test_a_following_client_does_not_wait_for_a_frozen_leader_again_and_again() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        assert outcome(await client.invoke(WRITE, 2 * CONNECT_TIMEOUT_S)) == ("fail", "no-leader")
        assert nodes.visited.count(N1) == 1
        # How often it comes around is the machine's (tests/golden/client/rounds.txt).
        assert N2 in nodes.visited

    run({N1: is_frozen, N2: follows(1), N3: follows(1)}, Route("leader", N1), body)


def test_after_an_operation_whose_node_has_no_address_another_is_performed() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        port = nodes._ports.pop(N1)
        with pytest.raises(KeyError):
            await client.invoke(WRITE, 5)
        nodes._ports[N1] = port
        assert (await client.invoke(WRITE, 5)).type == "ok"
        assert nodes.visited[:2] == [N1, N1]

    run({N1: leads, N2: leads, N3: leads}, Route("leader", N1), body)
