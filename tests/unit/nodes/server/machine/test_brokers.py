"""Three controllers and two small brokers in one event loop, over real connections."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic as ConfluentTopic
from kafka.admin import KafkaAdminClient, NewTopic

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.broker.lifecycle import BrokerState
from splitbrain.nodes.server.broker.broker_service import BrokerService
from splitbrain.nodes.server.broker.clean_stop import CLEAN_STOP_FILE
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.machine.assembly import Server
from splitbrain.nodes.transport.client_connection import connect
from splitbrain.nodes.transport.client_protocol import (
    ClientAnswer,
    ClientRequest,
    NodeState,
    decode_state,
)
from tests.unit.nodes.server.machine.test_three_controllers import image, until
from tests.unit.nodes.server.nodes_in_one_loop import PATIENCE_S, Nodes, on_three_nodes


def broker(nodes: Nodes, node: NodeName) -> BrokerService:
    service = nodes.servers[node].node.service
    assert isinstance(service, BrokerService)
    return service


async def ask(
    nodes: Nodes, node: NodeName, kind: Any, key: str = "t", value: Any = None
) -> ClientAnswer:
    """Ask one node over its client listener."""
    listener = nodes.configuration(node).client_listener
    connection, _ = await connect(listener.host, listener.port, PATIENCE_S)
    try:
        return await connection.ask(ClientRequest(1, kind, key, value), PATIENCE_S)
    finally:
        connection.close()


async def state(nodes: Nodes, node: NodeName) -> NodeState:
    return decode_state(await ask(nodes, node, "status"))


async def running(nodes: Nodes, *names: NodeName) -> None:
    """Waits until the brokers have been unfenced, and know it."""
    await until(lambda: not any(broker(nodes, name).lifecycle.is_fenced for name in names))


async def described(nodes: Nodes, node: NodeName, key: str, partitions: int | None) -> None:
    """Waits until the node describes the topic so."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await ask(nodes, node, "describe-topic", key)).result != partitions:
            assert answer.definite
            await asyncio.sleep(0.01)


def with_two_brokers(
    body: Callable[[Nodes, NodeName, NodeName], Awaitable[None]],
) -> Callable[[Path], None]:
    @on_three_nodes("metadata")
    async def test(nodes: Nodes) -> None:
        await nodes.leader()
        first, second = nodes.add_broker(11), nodes.add_broker(12)
        for name in (first, second):
            await nodes.start(name)
        await running(nodes, first, second)
        await body(nodes, first, second)

    return test


@with_two_brokers
async def test_brokers_are_registered_and_unfenced_and_everybody_tells_of_topics(
    nodes: Nodes, first: NodeName, second: NodeName
) -> None:
    leader = await nodes.leader()
    known = image(nodes, leader).brokers
    assert {11, 12} == set(known)
    for name in (first, second):
        status = await state(nodes, name)
        assert (status.broker_state, status.is_fenced) == ("RUNNING", False)
        assert status.broker_epoch == known[int(name[1:])].broker_epoch
    assert (await state(nodes, leader)).broker_state is None
    created = await ask(nodes, leader, "create-topic", "at-controller", 2)
    assert (created.outcome, created.result) == ("ok", True)
    through = await ask(nodes, first, "create-topic", "at-broker", 3)
    assert (through.outcome, through.definite, through.result) == ("ok", True, True)
    again = await ask(nodes, second, "create-topic", "at-broker", 3)
    assert (again.outcome, again.definite, again.result) == ("ok", True, False)
    for name in (first, second, leader):
        await described(nodes, name, "at-controller", 2)
        await described(nodes, name, "at-broker", 3)
    topic = image(nodes, leader).topics.named("at-broker")
    assert topic is not None
    assert {len(each.replicas) for each in topic.partitions} == {2}
    deleted = await ask(nodes, second, "delete-topic", "at-controller")
    assert (deleted.outcome, deleted.result) == ("ok", True)
    missing = await ask(nodes, first, "delete-topic", "at-controller")
    assert (missing.outcome, missing.result) == ("ok", False)
    for name in (first, second, leader):
        await described(nodes, name, "at-controller", None)
    refused = await ask(nodes, first, "create-topic", "a/b", 1)
    assert (refused.outcome, refused.definite) == ("invalid-request", True)


@with_two_brokers
async def test_brokers_outlive_the_active_controller_and_hand_on_to_the_next(
    nodes: Nodes, first: NodeName, second: NodeName
) -> None:
    controllers = set(nodes.nodes())
    await ask(nodes, first, "create-topic", "before", 1)
    epochs = {name: broker(nodes, name).lifecycle.broker_epoch for name in (first, second)}
    leader = await nodes.leader()
    nodes.servers[leader].node.end(exit_codes.DEFECT, "killed by the test")
    await nodes.end_of(leader)
    after = await nodes.leader()
    assert after in controllers - {leader}
    created = await ask(nodes, first, "create-topic", "after", 1)
    is_sure = True
    # A request that a leader took and lost with its office leaves open whether it was carried out.
    while created.outcome == "unknown":
        created, is_sure = await ask(nodes, first, "create-topic", "after", 1), False
    assert created.outcome == "ok"
    assert created.result or not is_sure
    for name in (first, second):
        await described(nodes, name, "before", 1)
        await described(nodes, name, "after", 1)
        assert broker(nodes, name).lifecycle.broker_epoch == epochs[name]
        assert broker(nodes, name).lifecycle.state is BrokerState.RUNNING


@with_two_brokers
async def test_a_broker_that_comes_back_fetches_what_it_missed_and_refuses_until_it_is_unfenced(
    nodes: Nodes, first: NodeName, second: NodeName
) -> None:
    await ask(nodes, first, "create-topic", "old", 1)
    await described(nodes, second, "old", 1)
    old_epoch = broker(nodes, second).lifecycle.broker_epoch
    nodes.servers[second].stop()
    assert await nodes.end_of(second) == exit_codes.STOPPED
    clean = Path(nodes.configuration(second).data_folder) / CLEAN_STOP_FILE
    assert str(old_epoch) in clean.read_text()
    leader = await nodes.leader()
    assert image(nodes, leader).brokers[12].fenced
    await ask(nodes, first, "create-topic", "missed", 1)
    end = nodes.servers[leader].node.replica.log_end_offset

    def looks(server: Server) -> None:
        assert not clean.exists()
        # Its earlier fetches are in its log.
        assert 0 < server.node.replica.log_end_offset < end
        answers: list[ClientAnswer] = []
        server.node.service.handle(ClientRequest(1, "describe-topic", "old"), answers.append)
        assert [(each.outcome, each.definite) for each in answers] == [("fenced", True)]

    await nodes.start(second, looks)
    await running(nodes, second)
    assert [each for each in nodes.events(second) if each.kind == "truncate"] == []
    assert broker(nodes, second).lifecycle.broker_epoch > old_epoch
    await described(nodes, second, "missed", 1)
    registered = image(nodes, await nodes.leader()).brokers[12]
    assert registered.broker_epoch == broker(nodes, second).lifecycle.broker_epoch


@with_two_brokers
async def test_a_broker_that_dies_is_fenced_and_its_next_life_is_in_sync_again(
    nodes: Nodes, first: NodeName, second: NodeName
) -> None:
    await ask(nodes, first, "create-topic", "t", 4)
    nodes.servers[second].node.end(exit_codes.DEFECT, "killed by the test")
    await nodes.end_of(second)
    clean = Path(nodes.configuration(second).data_folder) / CLEAN_STOP_FILE
    assert not clean.exists()
    leader = await nodes.leader()
    await nodes.start(second)
    await running(nodes, second)

    def all_in_sync() -> bool:
        topic = image(nodes, leader).topics.named("t")
        return topic is not None and all(len(each.isr) == 2 for each in topic.partitions)

    await until(all_in_sync)


def kafka_config(nodes: Nodes, node: NodeName) -> str:
    listener = nodes.configuration(node).quorum_listener
    return f"{listener.host}:{listener.port}"


def by_kafka_python(bootstrap: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=15_000)
    try:
        client.create_topics([NewTopic("by-kafka-python", 2, 2)])
        client.delete_topics(["first"])
    finally:
        client.close()


def listed_by_kafka_python(bootstrap: str) -> set[str]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=15_000)
    try:
        return set(client.list_topics())
    finally:
        client.close()


def by_confluent(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    made = client.create_topics([ConfluentTopic("by-confluent", 3, 1)], operation_timeout=15)
    made["by-confluent"].result(15)


@with_two_brokers
async def test_kafkas_python_clients_see_and_change_topics_through_a_broker(
    nodes: Nodes, first: NodeName, second: NodeName
) -> None:
    await ask(nodes, second, "create-topic", "first", 1)
    bootstrap = kafka_config(nodes, first)
    await asyncio.to_thread(by_kafka_python, bootstrap)
    await asyncio.to_thread(by_confluent, bootstrap)
    # An answer tells what is committed; a broker shows it once it has heard of that.
    for name in (first, second):
        await described(nodes, name, "first", None)
        await described(nodes, name, "by-kafka-python", 2)
        await described(nodes, name, "by-confluent", 3)
    topics = {"by-kafka-python", "by-confluent"}
    assert await asyncio.to_thread(listed_by_kafka_python, bootstrap) == topics
    client = AdminClient({"bootstrap.servers": kafka_config(nodes, second)})
    metadata = await asyncio.to_thread(client.list_topics, timeout=15)
    assert (set(metadata.topics), set(metadata.brokers)) == (topics, {11, 12})
    cluster = await asyncio.to_thread(client.describe_cluster(request_timeout=15).result, 15)
    assert {node.id for node in cluster.nodes} == {11, 12}
    assert cluster.cluster_id == nodes.configuration(first).cluster_id
