"""Clients' view of the brokers from this machine: of the quorum, of topics.

Through kafka-python, which shares no code with Kafka's Java clients nor with librdkafka.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError


@dataclass(frozen=True)
class QuorumView:
    """The quorum as a broker describes it."""

    leader: int
    epoch: int
    high_watermark: int
    voters: frozenset[int]
    observers: frozenset[int]


@contextmanager
def admin(bootstrap: str) -> Generator[Any]:
    """An administrator's client; the type checker's stubs of the library are of an older one."""
    client: Any = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=10_000)
    try:
        yield client
    finally:
        client.close()


def _described_quorum(bootstrap: str) -> dict[str, Any]:
    with admin(bootstrap) as client:
        described = client.describe_metadata_quorum()
    ((partition,),) = [topic["partitions"] for topic in described["topics"]]
    return partition


def quorum_view(bootstrap: str) -> QuorumView:
    """The quorum as the brokers describe it now; raises KafkaError: they cannot."""
    partition = _described_quorum(bootstrap)
    return QuorumView(
        partition["leader_id"],
        partition["leader_epoch"],
        partition["high_watermark"],
        frozenset(voter["replica_id"] for voter in partition["current_voters"]),
        frozenset(observer["replica_id"] for observer in partition["observers"]),
    )


def lagging_voters(bootstrap: str) -> set[int]:
    """Controllers that do not hold yet what is committed, as the active one knows.

    Raises KafkaError: the brokers cannot tell.
    """
    partition = _described_quorum(bootstrap)
    return {
        voter["replica_id"]
        for voter in partition["current_voters"]
        if voter["log_end_offset"] < partition["high_watermark"]
    }


def has_leader_beside(bootstrap: str, deposed: int) -> bool:
    """Whether the brokers tell of another active controller than that."""
    try:
        return quorum_view(bootstrap).leader not in (-1, deposed)
    except KafkaError:
        return False


@dataclass(frozen=True)
class PartitionView:
    """One partition as a broker describes it."""

    leader: int
    replicas: frozenset[int]
    in_sync: frozenset[int]


def partitions(bootstrap: str, topic: str) -> list[PartitionView]:
    """The partitions of a topic, by their numbers; empty while the brokers cannot tell."""
    try:
        with admin(bootstrap) as client:
            (described,) = client.describe_topics([topic])
    except KafkaError:
        return []
    found = sorted(described["partitions"], key=lambda part: part["partition_index"])
    return [
        PartitionView(
            part["leader_id"], frozenset(part["replica_nodes"]), frozenset(part["isr_nodes"])
        )
        for part in found
    ]


def create_topic(bootstrap: str, name: str, partitions: int, replication_factor: int) -> None:
    """Create a topic; returns when it has leaders; raises KafkaError: it was refused."""
    options = {"num_partitions": partitions, "replication_factor": replication_factor}
    with admin(bootstrap) as client:
        client.create_topics({name: options}, wait_for_metadata=True)
