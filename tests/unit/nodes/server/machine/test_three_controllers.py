"""Three controllers in one event loop: each is known to all, and a new active one goes on."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.controller.roles.standby import wrong_controller
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.transport.control_links import ControlLinks
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import DescribeClusterRequest
from splitbrain.nodes.wire.families.partitions import ListPartitionReassignmentsRequest
from splitbrain.nodes.wire.families.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.nodes.server.nodes_in_one_loop import PATIENCE_S, Nodes, on_three_nodes

DESCRIBE = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)


def image(nodes: Nodes, node: NodeName) -> MetadataImage:
    machine = nodes.servers[node].node.parts.applier.machine
    assert isinstance(machine, MetadataMachine)
    return machine.image


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nobody tells of an image
            await asyncio.sleep(0.01)


async def ask(nodes: Nodes, node: NodeName, message: msgspec.Struct) -> Any:
    """Ask one controller as a stranger does."""
    voters = nodes.configuration(node).voters
    (voter,) = [each for each in voters if f"n{each.node_id}" == node]
    links = ControlLinks(NodeId(0), (voter,))
    answered: asyncio.Future[msgspec.Struct | None] = asyncio.get_running_loop().create_future()
    links.call(voter.node_id, message, answered.set_result)
    try:
        return await asyncio.wait_for(answered, PATIENCE_S)
    finally:
        links.close()


@on_three_nodes("metadata")
async def test_all_controllers_are_known_everywhere_also_in_their_next_life(nodes: Nodes) -> None:
    leader = await nodes.leader()
    everyone = {1, 2, 3}
    await until(lambda: all(set(image(nodes, n).controllers) == everyone for n in nodes.nodes()))
    for node in nodes.nodes():
        described = await ask(nodes, node, DESCRIBE)
        assert {each.broker_id for each in described.brokers} == everyone
        assert described.controller_id == int(leader[1:])
    number = int(leader[1:])
    first = image(nodes, leader).controllers[number].incarnation_id
    nodes.servers[leader].stop()
    assert await nodes.end_of(leader) == exit_codes.STOPPED
    await nodes.leader()
    await nodes.start(leader)

    def knows_next_life(node: NodeName) -> bool:
        known = image(nodes, node).controllers.get(number)
        return known is not None and known.incarnation_id != first

    await until(lambda: all(knows_next_life(node) for node in nodes.nodes()))


@on_three_nodes("metadata")
async def test_each_controller_tells_its_figures(nodes: Nodes) -> None:
    leader = await nodes.leader()
    await until(lambda: all(len(image(nodes, n).controllers) == 3 for n in nodes.nodes()))
    by_node: dict[str, dict[str, float]] = {}
    for node in nodes.nodes():
        figures = await asyncio.to_thread(nodes.system.metrics, nodes, node, PATIENCE_S)
        assert figures is not None
        by_node[node] = figures
    prefix = "kafka_controller_kafkacontroller"
    active = {node: by_node[node][f"{prefix}_activecontrollercount"] for node in by_node}
    assert active == {node: int(node == leader) for node in nodes.nodes()}
    for figures in by_node.values():
        assert figures[f"{prefix}_metadatalogendoffset"] >= figures["high_watermark"] > 0
        elections = "kafka_controller_controllerstats_leaderelectionrateandtimems"
        assert figures[f"{elections}_count"] >= 1
    queue = "kafka_controller_controllereventmanager_eventqueuetimems_count"
    assert by_node[leader][queue] > 0


@on_three_nodes("metadata")
async def test_who_is_not_active_says_so(nodes: Nodes) -> None:
    leader = await nodes.leader()
    await until(lambda: image(nodes, leader).metadata_version is not None)
    topic = CreatableTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=1_000)
    known = (None, NodeId(1), NodeId(2), NodeId(3))
    for node in nodes.nodes():
        answer = await ask(nodes, node, request)
        (created,) = answer.topics
        if node == leader:
            # There is no broker yet.
            assert created.error_code == ApiError.INVALID_REPLICATION_FACTOR
        else:
            assert created.error_code == ApiError.NOT_CONTROLLER
            assert created.error_message in {wrong_controller(each) for each in known}
            moves = await ask(nodes, node, ListPartitionReassignmentsRequest(topics=None))
            assert (moves.error_code, moves.topics) == (ApiError.NONE, ())
