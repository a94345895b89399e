"""The properties of brokers and controllers: who listens where, who has the metadata. Pure.

A broker's peers find it at the port of clients where it is a controller as well, and else at the
port of peers, so that every node has both.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.contracts.system import CLIENT_PORT, PEER_PORT
from splitbrain.systems.kafka import group_settings
from splitbrain.systems.servers import Server

#: A broker that is gone is fenced after three seconds and not nine.
SESSION_S: Final = 3
_SESSION_MS: Final = str(1000 * SESSION_S)
#: How long controllers wait for each other.
QUORUM: Final[Mapping[str, str]] = {
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.request.timeout.ms": "2000",
}
#: Settings of brokers and controllers that are whole numbers, as Kafka has them, and their bounds.
NUMBERS: Final[Mapping[str, str]] = {
    "log.segment.bytes": str(1 << 30),
    "log.flush.interval.messages": str((1 << 63) - 1),
    "replica.lag.time.max.ms": "30000",
    **QUORUM,
}
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "log.segment.bytes": (1 << 20, (1 << 31) - 1),
    "log.flush.interval.messages": (1, (1 << 63) - 1),
    "replica.lag.time.max.ms": (1_000, 600_000),
    **dict.fromkeys(QUORUM, (50, 600_000)),
}
#: Setting of clients: whether they read at the replica that is named to them for their rack.
CLIENT_RACK: Final = "client.rack"
OWN_RACK: Final = "own"
RACKS: Final = ("none", OWN_RACK)
_REPLICAS_MAX: Final = 3
_IN_SYNC_OF_TRANSACTIONS: Final = 2
#: Buffers are small where nobody compacts.
_BROKER: Final[Mapping[str, str]] = {
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    **group_settings.OF_BROKERS,
}
#: A broker looks for another controller after two seconds, where Kafka's own make it 20 and more.
_ASKING_CONTROLLERS: Final[Mapping[str, str]] = {
    "controller.socket.timeout.ms": "2000",
    "socket.connection.setup.timeout.ms": "1000",
    "socket.connection.setup.timeout.max.ms": "2000",
}
_KRAFT: Final[Mapping[str, str]] = {
    "controller.listener.names": "CONTROLLER",
    "broker.session.timeout.ms": _SESSION_MS,
    "broker.heartbeat.interval.ms": "500",
}
#: The servers may start later than the brokers.
_ZOOKEEPER: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": _SESSION_MS,
    "zookeeper.connection.timeout.ms": "60000",
}


def text_of(lines: Mapping[str, str]) -> str:
    """Return a file of properties."""
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def voters_of(controllers: Sequence[Server]) -> dict[str, str]:
    """Return who decides about the metadata, by KRaft."""
    voters = (f"{each.number}@{each.address(PEER_PORT)}" for each in controllers)
    return {"controller.quorum.voters": ",".join(voters), **_KRAFT}


def zookeepers_of(servers: Sequence[Server]) -> dict[str, str]:
    """Return who keeps the metadata before KRaft; controllers are brokers then."""
    there = ",".join(server.address(CLIENT_PORT) for server in servers)
    return {"zookeeper.connect": there, **_ZOOKEEPER}


def combined(server: Server, *, advertises_controllers: bool) -> dict[str, str]:
    """Return what a node says of itself that is a broker and a controller."""
    listener = f"CONTROLLER://{server.address(PEER_PORT)}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(server.number),
        **_listening(server, "CONTROLLER"),
        "advertised.listeners": f"PLAINTEXT://{server.address()}"
        + (f",{listener}" if advertises_controllers else ""),
    }


def controller(server: Server, *, advertises_controllers: bool) -> dict[str, str]:
    """Return what a node says of itself that is a controller alone."""
    address = f"CONTROLLER://{server.address(PEER_PORT)}"
    return {
        "process.roles": "controller",
        "node.id": str(server.number),
        "listeners": f"CONTROLLER://{server.listen_address(PEER_PORT)}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        **({"advertised.listeners": address} if advertises_controllers else {}),
    }


def broker(server: Server, *, has_zookeeper: bool) -> dict[str, str]:
    """Return what a node says of itself that is a broker alone."""
    return {
        **({} if has_zookeeper else {"process.roles": "broker"}),
        "broker.id" if has_zookeeper else "node.id": str(server.number),
        **_listening(server, "INTERNAL", *(() if has_zookeeper else ("CONTROLLER",))),
        "advertised.listeners": f"PLAINTEXT://{server.address()},"
        f"INTERNAL://{server.address(PEER_PORT)}",
        "inter.broker.listener.name": "INTERNAL",
        **_ASKING_CONTROLLERS,
    }


def in_own_rack(server: Server) -> dict[str, str]:
    """Return what sends clients to a broker in their rack, which has its name (KIP-392)."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return {"broker.rack": server.name, "replica.selector.class": selector}


def storing(server: Server) -> dict[str, str]:
    """Return where a node keeps its logs."""
    return {"log.dirs": f"{server.placement.data_path}/log"}


def replicating(brokers: int, min_in_sync: str) -> dict[str, str]:
    """Return what depends on how many brokers there are."""
    replicas = min(brokers, _REPLICAS_MAX)
    return {
        **_BROKER,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(_IN_SYNC_OF_TRANSACTIONS, replicas)),
        "min.insync.replicas": str(min(int(min_in_sync), replicas)),
    }


def sharing(brokers: int) -> dict[str, str]:
    """Return what brokers of share groups are told, by how many they are."""
    replicas = min(brokers, _REPLICAS_MAX)
    return {
        **group_settings.OF_SHARING_BROKERS,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(min(_IN_SYNC_OF_TRANSACTIONS, replicas)),
    }


def _listening(server: Server, at_peers: str, *others: str) -> dict[str, str]:
    """Return the listeners of a broker; ``others`` are names of those that it only connects to."""
    names = ("PLAINTEXT", at_peers, *others)
    return {
        "listeners": f"PLAINTEXT://{server.listen_address()},"
        f"{at_peers}://{server.listen_address(PEER_PORT)}",
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
    }
