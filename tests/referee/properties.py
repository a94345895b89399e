"""The properties of Kafka's controllers and brokers, and how their storage is formatted. Pure.

Every level is named, so that no default of a release decides what a cluster is.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS

#: The release that this level of ``metadata.version`` is called by.
_RELEASES: Final[Mapping[int, str]] = {30: "4.3"}
_METADATA_VERSION: Final = "metadata.version"

#: Listeners of a broker: for its peers and tools in the network, and for this machine's clients.
INTERNAL_PORT: Final = 9092
CLIENT_PORT: Final = 9094

#: Wait of a broker before it looks for another controller. Kafka's own make it 20 s and
#: more, and measure nothing but themselves.
QUICK_FAILOVER: Final[Mapping[str, str]] = {
    "controller.socket.timeout.ms": "2000",
    "socket.connection.setup.timeout.ms": "1000",
    "socket.connection.setup.timeout.max.ms": "2000",
}


def format_options() -> tuple[str, ...]:
    """Arguments of ``StorageTool format`` for the levels that our clusters have."""
    features = {name: level for name, level in PINNED_LEVELS.items() if name != _METADATA_VERSION}
    return (
        *("--release-version", _RELEASES[PINNED_LEVELS[_METADATA_VERSION]]),
        *(word for name, level in features.items() for word in ("--feature", f"{name}={level}")),
    )


def controller_properties(
    voter: Voter, voters: Sequence[Voter], data_path: str, settings: Mapping[str, str]
) -> str:
    return _lines(
        {
            "process.roles": "controller",
            "node.id": str(voter.node_id),
            "controller.quorum.voters": _voters(voters),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "listeners": f"CONTROLLER://0.0.0.0:{voter.port}",
            "advertised.listeners": f"CONTROLLER://{voter.host}:{voter.port}",
            "log.dirs": f"{data_path}/log",
            **settings,
        }
    )


def broker_properties(
    node_id: int,
    host: str,
    client_port: int,
    voters: Sequence[Voter],
    data_path: str,
    settings: Mapping[str, str],
) -> str:
    """``client_port``: on this machine; ``data_path``: as the broker sees it; settings prevail."""
    return _lines(
        {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": _voters(voters),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT"
            ),
            "listeners": f"INTERNAL://0.0.0.0:{INTERNAL_PORT},CLIENT://0.0.0.0:{CLIENT_PORT}",
            "advertised.listeners": (
                f"INTERNAL://{host}:{INTERNAL_PORT},CLIENT://127.0.0.1:{client_port}"
            ),
            "log.dirs": f"{data_path}/log",
            # One broker may be all there is.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            # The default is larger than the heap.
            "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
            **QUICK_FAILOVER,
            **settings,
        }
    )


def _voters(voters: Sequence[Voter]) -> str:
    return ",".join(f"{voter.node_id}@{voter.host}:{voter.port}" for voter in voters)


def _lines(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
