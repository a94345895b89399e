"""Apache Kafka as a system under test: each node is a broker and a controller.

Must never start or stop a node: the runtime does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log import LOG
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.runtime import ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    ONLY_IMAGES,
    PEER_PORT,
    Canary,
    Tempo,
)
from splitbrain.systems.kafka.cluster import OF_CLIENTS, KafkaCluster
from splitbrain.systems.servers import Server, ServerSystem

IMAGE: Final = ImageSource("splitbrain-kafka", "kafka", has_wheels=True, jars=".")
#: Any base64 UUID; the nodes of one cluster have the same.
_CLUSTER: Final = "q1Sh-9_ISia_zwGINzRvyQ"
_REPLICAS_MAX: Final = 3
_IN_SYNC_OF_TRANSACTIONS: Final = 2
_HEAP_MIB: Final = 160
_MIN_IN_SYNC: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
#: Decided when a node's folder is formatted: whether controllers remember who may lead (KIP-966).
_ELIGIBLE: Final = "eligible.leader.replicas.version"
#: Whether a broker asks the coordinator before it appends a record of a transaction.
_VERIFIES: Final = "transaction.partition.verification.enable"
_SESSION_S: Final = 3
#: Of the cluster and its clients (KIP-890), decided at formatting, too.
_TRANSACTIONS: Final = "transaction.version"
_FEATURES: Final = (_ELIGIBLE, _TRANSACTIONS)
#: Of all nodes. A broker that is gone is fenced after three seconds and not nine; buffers are small
#: where nobody compacts.
_CONFIGURATION: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "broker.session.timeout.ms": f"{1000 * _SESSION_S}",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class KafkaSystem(KafkaCluster, ServerSystem):
    """Adapter of one run."""

    name = "kafka"
    runtimes = ONLY_IMAGES
    image = IMAGE
    ports: Mapping[str, int] = {CLIENT_PORT: 9092, PEER_PORT: 9093}
    #: A leader that alone is in sync acknowledges what is gone once another leads.
    canary = Canary(nemesis="partition:leader", workload=LOG, settings={"acks": "1"})
    node_counts = range(1, 6)
    settings: Mapping[str, str | tuple[str, ...]] = {
        **OF_CLIENTS,
        _MIN_IN_SYNC: ("2", "1", "3"),
        _UNCLEAN: ("false", "true"),
        _ELIGIBLE: ("1", "0"),
        _VERIFIES: ("true", "false"),
    }
    log_patterns = (
        LogPattern(r"\bFATAL\b", "The node gave up."),
        LogPattern("java.lang.OutOfMemoryError", "The node's heap is too small."),
        LogPattern("Found a corrupted index file", "An index was rebuilt.", harmless=True),
    )

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        assert self._driver, "it says which package is missing"

    def tempo(self) -> Tempo:
        """Brokers are fenced after three seconds; a JVM takes some more to start."""
        return Tempo(
            ready_s=180,
            converged_s=90,
            started_s=45,
            resumed_s=45,
            notices_s=_SESSION_S,
            failover_s=2 * _SESSION_S,
        )

    def environment(self, server: Server) -> dict[str, str]:
        """Return the size of a node's heap."""
        return {"KAFKA_HEAP": str(_HEAP_MIB)}

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a node, whose folder is formatted in its first life."""
        path = server.file("server.properties", self._configuration(server, others))
        features = [("--feature", f"{name}={self.setting(name)}") for name in _FEATURES]
        return ("kafka-node", path, _CLUSTER, *(word for pair in features for word in pair))

    def _configuration(self, server: Server, others: Sequence[Server]) -> str:
        members = sorted((server, *others), key=lambda each: each.number)
        voters = ",".join(f"{each.number}@{each.address(PEER_PORT)}" for each in members)
        replicas = min(len(members), _REPLICAS_MAX)
        lines = {
            **_CONFIGURATION,
            "node.id": str(server.number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{server.listen_address()},"
            f"CONTROLLER://{server.listen_address(PEER_PORT)}",
            "advertised.listeners": f"PLAINTEXT://{server.address()},"
            f"CONTROLLER://{server.address(PEER_PORT)}",
            "log.dirs": f"{server.placement.data_path}/log",
            "offsets.topic.replication.factor": str(replicas),
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": str(min(_IN_SYNC_OF_TRANSACTIONS, replicas)),
            _MIN_IN_SYNC: str(min(int(self.setting(_MIN_IN_SYNC)), replicas)),
            **{name: self.setting(name) for name in (_UNCLEAN, _VERIFIES)},
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def versions(self) -> dict[str, str]:
        """Return the version that it is made for; ``plan.json`` has the image's digest."""
        return {"kafka": "4.3.1"}
