"""The client against fake nodes on loopback; its rules are the machine's."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest, Reply
from splitbrain.systems.kraft import client_machine
from splitbrain.systems.kraft.client import KraftClient
from tests.unit.systems.kraft.fake_nodes import (
    N1,
    N2,
    N3,
    Behaviour,
    FakeNodes,
    is_frozen,
    is_silent,
)

WRITE = Operation("write", "k", 1)
READ = Operation("read", "k", None)


def leads(request: ClientRequest, reply: Reply) -> None:
    reply(ClientAnswer(request.id, "ok", definite=True, result=1, epoch=1, offset=1))


def follows(leader_id: int | None) -> Behaviour:
    def behave(request: ClientRequest, reply: Reply) -> None:
        reply(ClientAnswer(request.id, "not-leader", definite=True, leader_id=leader_id))

    return behave


def run(
    behaviours: dict[NodeName, Behaviour | None],
    route: Route,
    body: Callable[[KraftClient, FakeNodes], Awaitable[None]],
) -> None:
    async def main() -> None:
        async with FakeNodes(behaviours) as nodes:
            client = KraftClient(nodes.endpoint, (N1, N2, N3), route)
            try:
                await body(client, nodes)
            finally:
                await client.close()

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
        assert outcome(await client.invoke(WRITE, 1.0)) == ("info", "timed-out")
        assert nodes.asked == [N1]

    run({N1: is_silent, N2: leads, N3: leads}, Route("leader", N1), body)


def test_a_late_answer_never_meets_a_later_operation() -> None:
    replies: list[tuple[int, Reply]] = []

    def late(request: ClientRequest, reply: Reply) -> None:
        replies.append((request.id, reply))
        if len(replies) == 1:
            leads(request, reply)
        if len(replies) == 3:
            late_id, answer = replies[1]
            answer(ClientAnswer(late_id, "ok", definite=True, result=111))
            reply(ClientAnswer(request.id, "ok", definite=True, result=222))

    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        # Once connected, it sends however short the time is.
        await client.invoke(READ, 5)
        assert outcome(await client.invoke(READ, 0.1)) == ("fail", "timed-out")
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


def test_a_following_client_does_not_wait_for_a_frozen_leader_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine nodes greet late, and time is up early: when it is, and for how long a node
    # is left out, is the machine's (tests/golden/client/rounds.txt).
    monkeypatch.setattr(client_machine, "CONNECT_TIMEOUT_US", 500_000)
    monkeypatch.setattr(client_machine, "AVOIDANCE_US", 60_000_000)

    def elects(request: ClientRequest, reply: Reply) -> None:
        named = follows(1) if request.id < 6 else leads
        named(request, reply)

    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        assert (await client.invoke(WRITE, 30)).type == "ok"
        assert nodes.visited.count(N1) == 1
        assert nodes.visited[:2] == [N1, N2]
        assert len(nodes.asked) == 6

    run({N1: is_frozen, N2: elects, N3: elects}, Route("leader", N1), body)


def test_after_an_operation_whose_node_has_no_address_another_is_performed() -> None:
    async def body(client: KraftClient, nodes: FakeNodes) -> None:
        port = nodes.ports.pop((N1, "client"))
        with pytest.raises(KeyError):
            await client.invoke(WRITE, 5)
        nodes.ports[N1, "client"] = port
        assert (await client.invoke(WRITE, 5)).type == "ok"
        assert nodes.visited[:2] == [N1, N1]

    run({N1: leads, N2: leads, N3: leads}, Route("leader", N1), body)
