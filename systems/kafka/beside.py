"""Nodes beside the brokers that decide about their metadata and are no programs of Kafka's."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from splitbrain.contracts.runtime import ImageSource, NodeSpec
from splitbrain.systems.kafka.properties import SESSION_S, voters_of, zookeepers_of
from splitbrain.systems.kraft import deployment as kraft
from splitbrain.systems.servers import Server
from splitbrain.systems.zookeeper.adapter import ZooKeeperSystem


class Beside(Protocol):
    """Whoever decides about metadata."""

    @property
    def image(self) -> ImageSource:
        """Recipe of their image."""
        ...

    @property
    def ports(self) -> Mapping[str, int]:
        """Ports by name, as of ``ServerSystem``."""
        ...

    def node(self, server: Server, others: Sequence[Server]) -> NodeSpec:
        """Describe one of them, given the others of its kind."""
        ...

    def known_as(self, servers: Sequence[Server]) -> dict[str, str]:
        """Return the properties by which brokers find them."""
        ...


class ZooKeepers:
    """An ensemble of ZooKeeper, as the system ``zookeeper`` deploys it."""

    def __init__(self) -> None:
        self._system: Final = ZooKeeperSystem()

    @property
    def image(self) -> ImageSource:
        """That of the usual version."""
        return self._system.image

    @property
    def ports(self) -> Mapping[str, int]:
        """Those of its servers."""
        return self._system.ports

    def node(self, server: Server, others: Sequence[Server]) -> NodeSpec:
        """Describe a server."""
        return self._system.node_spec(server, others)

    def known_as(self, servers: Sequence[Server]) -> dict[str, str]:
        """Return their addresses for clients."""
        return zookeepers_of(servers)


class OwnControllers:
    """The quorum of ``nodes``."""

    image = kraft.IMAGE
    ports: Mapping[str, int] = kraft.PORTS

    def __init__(self, cluster: str, min_in_sync: str) -> None:
        self._cluster = cluster
        self._settings: Final = {
            "broker.session.timeout.ms": str(1000 * SESSION_S),
            "min.insync.replicas": min_in_sync,
        }

    def node(self, server: Server, others: Sequence[Server]) -> NodeSpec:
        """Describe a controller."""
        placed = {each.number: each.placement for each in (server, *others)}
        return kraft.controller(
            self._cluster, server.name, server.number, server.folder.parent, placed, self._settings
        )

    def known_as(self, servers: Sequence[Server]) -> dict[str, str]:
        """Return them as voters."""
        return voters_of(servers)
