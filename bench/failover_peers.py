"""Systems side by side in ``python -m bench.failover --all``, and how Kafka's controllers are hit.

Everywhere the node that decides is hit, and changes are asked of the nodes that clients ask: writes
of a register, and of Kafka, whose brokers lead what clients write, topics that are created. Each of
these has one replica, so that no other broker is waited for.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import LeaderView, Route, System
from splitbrain.systems.kafka.access import OPEN
from splitbrain.systems.kafka.adapter import KafkaSystem
from splitbrain.systems.kafka.errors import (
    NO_ERROR,
    TOPIC_ALREADY_EXISTS,
    NotKafkaError,
    error_name,
)
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.questions import Endpoints
from splitbrain.systems.registry import system as make_system

_CONTROLLERS: Final = {"controllers": "3"}


class Peer(msgspec.Struct, frozen=True):
    """One row of the table."""

    title: str
    #: As ``--system`` takes it.
    system: str
    settings: Mapping[str, str] = {}
    #: Of ``failover_profiles.toml``, beside the settings.
    profile: str | None = None

    def adapter(self) -> System:
        """Return an adapter whose leader is the node that decides."""
        if not self.system.startswith("kafka"):
            return make_system(self.system)
        system = KafkaControllers()
        _, _, version = self.system.partition("@")
        system.chosen_version = version or None
        return system


PEERS: Final = (
    Peer("splitbrain", "kraft"),
    Peer("splitbrain with Kafka's time-outs", "kraft", profile="kafka-defaults"),
    Peer("etcd", "etcd"),
    Peer("ZooKeeper", "zookeeper"),
    Peer("Kafka with KRaft", "kafka", _CONTROLLERS),
    Peer(
        "Kafka with KRaft, tuned",
        "kafka",
        {
            **_CONTROLLERS,
            "controller.quorum.fetch.timeout.ms": "500",
            "controller.quorum.election.timeout.ms": "300",
            "controller.quorum.election.backoff.max.ms": "300",
            "controller.quorum.request.timeout.ms": "500",
        },
    ),
    Peer("Kafka on splitbrain's controllers", "kafka", {**_CONTROLLERS, "metadata": "splitbrain"}),
    Peer("Kafka with ZooKeeper", "kafka@3.9.2", {**_CONTROLLERS, "metadata": "zookeeper"}),
)


class KafkaControllers(KafkaSystem):
    """Kafka, as far as its metadata go."""

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Return who decides about metadata; changes tell no epoch."""
        return LeaderView(super().leader(runtime, timeout_s).controller, None)

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a client that creates topics at the route's broker."""
        return TopicCreator(route.node, self._driver_at(runtime).targets[route.node])


class TopicCreator:
    """Creates a topic for each write."""

    def __init__(self, node: NodeName, there: Address) -> None:
        self._node, self._there = node, there
        self._connection: KafkaConnection | None = None

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Create the topic that the operation's value numbers; a refusal sends the client on."""
        try:
            async with asyncio.timeout(timeout_s):
                if self._connection is None:
                    self._connection = await KafkaConnection.open(self._there, OPEN)
                name, patience_ms = f"failover-{operation.value}", round(timeout_s * 1000)
                code = await self._connection.create(name, 1, 1, patience_ms)
        except (OSError, EOFError, NotKafkaError) as error:
            return Completion("info", error=type(error).__name__, node=self._node)
        if code in (NO_ERROR, TOPIC_ALREADY_EXISTS):
            return Completion("ok", operation.value, node=self._node)
        return Completion("info", error=error_name(code), node=self._node)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
