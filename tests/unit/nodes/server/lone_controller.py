"""One node that is the whole quorum and its controller, and whoever calls it."""

import random
from typing import Any

import msgspec

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.controller.controller_service import metadata_layer
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS
from splitbrain.nodes.wire.families import brokers, topics
from splitbrain.nodes.wire.families.parts import AdvertisedListener, SupportedFeature
from tests.unit.nodes.server.hand_made_world import CLUSTER, SETTINGS, World


class Controller:
    """One node that is the whole quorum, and whoever calls it."""

    def __init__(self, quorum_settings: QuorumSettings = SETTINGS, **settings: Any) -> None:
        self.world = World()
        self.quorum_settings = quorum_settings
        self.call_count = 0
        chosen: dict[str, Any] = {"max_idle_interval_ms": 0, **settings}
        self.settings = ControllerSettings(**chosen)
        self.node = self.begin()

    def begin(self) -> Node:
        """A life of the node; it does not lead yet."""
        self.machine: MetadataMachine | None = None
        return self.world.assemble(make_layer=self._layer, settings=self.quorum_settings)

    def _layer(self) -> Layer:
        identity = Identity(
            cluster_id=CLUSTER,
            node_id=self.world.identity.node_id,
            settings=self.settings,
            random=random.Random(self.world.time_us),
        )
        layer = metadata_layer(identity)
        assert isinstance(layer.machine, MetadataMachine)
        self.machine = layer.machine
        return layer

    @property
    def image(self) -> MetadataImage:
        assert self.machine is not None
        return self.machine.image

    def lead(self) -> None:
        """Start, and wait until the controller's own registration is committed."""
        self.world.lead(self.node)
        self.world.until(lambda: 1 in self.image.controllers)

    def call(self, api_key: ApiKey, message: msgspec.Struct, version: int) -> int:
        """Ask; the number by which the answer is found."""
        self.call_count += 1
        number = self.call_count
        header = RequestHeader(api_key, version, number, "test")
        self.node.called(ConnectionId(1), CorrelationId(number), header, message)
        return number

    def ask(self, api_key: ApiKey, message: msgspec.Struct, version: int) -> Any:
        """Ask, and run until it is answered."""
        number = self.call(api_key, message, version)
        self.world.until(lambda: number in self.world.replies)
        return self.world.replies[number]

    def register(self, broker_id: int = 5) -> brokers.BrokerRegistrationResponse:
        """A broker with one directory registers."""
        message = brokers.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER,
            incarnation_id=f"{broker_id:032x}",
            listeners=(AdvertisedListener("PLAINTEXT", "localhost", 9092, 0),),
            features=tuple(SupportedFeature(name, 0, 30) for name in PINNED_LEVELS),
            rack=None,
            log_dirs=(f"7{broker_id:031x}",),
        )
        return self.ask(ApiKey.BROKER_REGISTRATION, message, 4)

    def beat(self, epoch: int, broker_id: int = 5) -> brokers.BrokerHeartbeatResponse:
        """The broker has applied everything."""
        message = brokers.BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch,
            current_metadata_offset=self.image.provenance.last_offset,
            want_fence=False,
            want_shut_down=False,
        )
        return self.ask(ApiKey.BROKER_HEARTBEAT, message, 1)


def creation(name: str) -> topics.CreateTopicsRequest:
    topic = topics.CreatableTopic(
        name=name, num_partitions=2, replication_factor=1, assignments=(), configs=()
    )
    return topics.CreateTopicsRequest(topics=(topic,), timeout_ms=1_000)
