"""The adapter's reading of the nodes' own reports."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest, NodeState, Reply
from splitbrain.systems.kraft.adapter import KraftSystem
from tests.unit.systems.kraft.fake_nodes import Behaviour, FakeNodes, is_silent

Result = TypeVar("Result")
LEADER = NodeState(1, 0, "leader", 2, 1, 10, 10, 10, "d")


def follower(node_id: int, **changes: object) -> NodeState:
    state = msgspec.structs.replace(LEADER, node_id=node_id, role="follower")
    return msgspec.structs.replace(state, **changes)


def says(*states: NodeState | None, without_figures: str = "") -> FakeNodes:
    """Nodes that answer ``status``; None is a node that accepts and stays silent."""

    def behaviour(state: NodeState | None) -> Behaviour:
        def handle(request: ClientRequest, reply: Reply) -> None:
            reply(ClientAnswer(request.id, "ok", definite=True, result=state))

        return is_silent if state is None else handle

    named = {NodeName(f"n{number}"): behaviour(s) for number, s in enumerate(states, 1)}
    return FakeNodes(named, without_figures)


def ask(nodes: FakeNodes, question: Callable[[KraftSystem], Result]) -> Result:
    async def main() -> Result:
        async with nodes:
            return await asyncio.to_thread(question, KraftSystem())

    return asyncio.run(main())


def test_of_two_claims_the_higher_epoch_wins() -> None:
    old = msgspec.structs.replace(LEADER, node_id=2, epoch=1)
    nodes = says(LEADER, old, follower(3))
    view = ask(nodes, lambda system: system.leader(nodes, 5.0))
    assert (view.leader, view.epoch) == ("n1", 2)


def test_a_silent_node_does_not_cost_the_whole_time() -> None:
    nodes = says(LEADER, follower(2), None)
    start = time.monotonic()
    view = ask(nodes, lambda system: system.leader(nodes, 5.0))
    assert view.leader == "n1"
    assert time.monotonic() - start < 4.5


def test_without_a_claim_there_is_no_leader() -> None:
    nodes = says(follower(1, leader_id=None), follower(2, epoch=7), None)
    view = ask(nodes, lambda system: system.leader(nodes, 0.3))
    assert (view.leader, view.epoch) == (None, 7)


def test_ready_and_converged_want_all_behind_one_leader_at_the_same_ends() -> None:
    for question in (KraftSystem.ready, KraftSystem.converged):
        nodes = says(LEADER, follower(2), follower(3))
        ask(nodes, lambda system, question=question, nodes=nodes: question(system, nodes))


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((LEADER, follower(2), follower(3, leader_id=2)), "no leader that all nodes follow"),
        ((follower(1), follower(2), follower(3)), "no leader that all nodes follow"),
        (
            tuple(
                msgspec.structs.replace(state, high_watermark=-1)
                for state in (LEADER, follower(2), follower(3))
            ),
            "n1 has not committed",
        ),
    ],
)
def test_ready_says_what_is_missing(states: tuple[NodeState, ...], told: str) -> None:
    nodes = says(*states)
    with pytest.raises(HarnessError, match=told):
        ask(nodes, lambda system: system.ready(nodes))


@pytest.mark.parametrize(
    "behind",
    [
        follower(3, high_watermark=9),
        follower(3, applied_offset=9),
        follower(3, log_end_offset=11),
        follower(3, high_watermark=9, applied_offset=9, log_end_offset=9),
    ],
)
def test_converged_names_who_is_behind(behind: NodeState) -> None:
    nodes = says(LEADER, follower(2), behind)
    with pytest.raises(HarnessError, match="n3 has committed"):
        ask(nodes, lambda system: system.converged(nodes))


def test_metrics_say_where_a_node_stands_and_what_it_tells_of_itself() -> None:
    behind = follower(2, high_watermark=-1, applied_offset=7)
    nodes = says(LEADER, behind, without_figures="n2")
    figures = ask(nodes, lambda system: [system.metrics(nodes, n, 5.0) for n in nodes.nodes()])
    assert figures == [
        {
            "node_id": 1,
            "epoch": 2,
            "high_watermark": 10,
            "log_end_offset": 10,
            "applied_offset": 10,
            "leads": 1,
        },
        {"epoch": 2, "high_watermark": -1, "log_end_offset": 10, "applied_offset": 7, "leads": 0},
    ]


def test_a_silent_node_has_no_metrics_and_costs_no_more_than_its_time() -> None:
    nodes = says(LEADER, None)
    start = time.monotonic()
    assert ask(nodes, lambda system: system.metrics(nodes, NodeName("n2"), 0.2)) is None
    assert time.monotonic() - start < 2.0


def test_a_missing_node_is_named() -> None:
    nodes = says(LEADER, follower(2), follower(3))

    async def main() -> None:
        async with nodes:
            pass
        with pytest.raises(HarnessError, match="no answer from n1, n2, n3"):
            await asyncio.to_thread(KraftSystem().ready, nodes)

    asyncio.run(main())


def test_versions_name_the_source_that_ran() -> None:
    versions = KraftSystem().versions()
    assert set(versions) == {"kraft", "kraft_source"}
    assert len(versions["kraft_source"]) == 16
