"""Kafka's APIs by number, and which of them a node of the quorum serves in which versions.

A real controller joins a quorum only with peers that know ``kraft.version``.

Source: Kafka 4.3's message definitions; the wire names of ``kio``'s modules.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

#: The one topic that the quorum replicates, its fixed id (32 hex digits) and its one partition.
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = f"{1:032x}"
METADATA_PARTITION: Final = 0
#: Name of the listener that quorum nodes talk to, as in ``controller.listener.names``.
QUORUM_LISTENER: Final = "CONTROLLER"


class ApiKey(IntEnum):
    """Keys of the APIs that quorum and control plane know; not all are served."""

    FETCH = 1
    METADATA = 3
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    CREATE_PARTITIONS = 37
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    ALLOCATE_PRODUCER_IDS = 67
    CONTROLLER_REGISTRATION = 70
    ASSIGN_REPLICAS_TO_DIRS = 73
    DESCRIBE_TOPIC_PARTITIONS = 75
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82


class RequestHeader(msgspec.Struct, frozen=True):
    """Key, name and direction of an API."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class VersionRange(NamedTuple):
    """Versions served, both ends included."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


#: APIs that are served now. Fetch starts where directory ids came (KIP-853); Vote 2 brought the
#: pre-vote (KIP-996).
SUPPORTED_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {
        ApiKey.FETCH: VersionRange(17, 18),
        ApiKey.API_VERSIONS: VersionRange(0, 4),
        ApiKey.VOTE: VersionRange(0, 2),
        ApiKey.BEGIN_QUORUM_EPOCH: VersionRange(1, 1),
        ApiKey.END_QUORUM_EPOCH: VersionRange(1, 1),
        ApiKey.DESCRIBE_QUORUM: VersionRange(0, 2),
        ApiKey.FETCH_SNAPSHOT: VersionRange(0, 1),
    }
)

#: First version of Vote that can ask for a pre-vote.
PRE_VOTE_SINCE: Final = 2

#: Features and the levels that this node can run with.
SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = MappingProxyType(
    {"kraft.version": VersionRange(0, 1)}
)
