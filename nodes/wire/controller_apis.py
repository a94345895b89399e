"""APIs of a controller: APIs with their version ranges, features with their levels.

The aim, kept apart from what is served now (``nodes.wire.apis.SUPPORTED_VERSIONS``): a node tells
``ApiVersions`` only of rows for which it has a handler, and ``advertised_versions`` is the one way
to get them. A broker offers its clients the versions that it and its controller both speak, so a
range cut short here takes versions from clients.

Kafka's controllers also serve SASL, ACLs, delegation tokens, quotas and SCRAM; ours do not, and
they do not serve Metadata nor DescribeTopicPartitions, which are for brokers.

Source: Kafka 4.3.1's ``ApiKeys.controllerApis``, ``QuorumFeatures`` and ``Feature``.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, VersionRange
from splitbrain.nodes.wire.calls import TABLES

#: APIs of the quorum itself, and those that every controller of Kafka 4.3.1 serves besides.
CONTROLLER_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {
        **SUPPORTED_VERSIONS,
        **{
            api_key: TABLES[api_key].versions
            for api_key in (
                ApiKey.CREATE_TOPICS,
                ApiKey.DELETE_TOPICS,
                ApiKey.DESCRIBE_CONFIGS,
                ApiKey.ALTER_CONFIGS,
                ApiKey.CREATE_PARTITIONS,
                ApiKey.ELECT_LEADERS,
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                ApiKey.ALTER_PARTITION_REASSIGNMENTS,
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                ApiKey.ALTER_PARTITION,
                ApiKey.UPDATE_FEATURES,
                ApiKey.ENVELOPE,
                ApiKey.FETCH_SNAPSHOT,
                ApiKey.DESCRIBE_CLUSTER,
                ApiKey.BROKER_REGISTRATION,
                ApiKey.BROKER_HEARTBEAT,
                ApiKey.UNREGISTER_BROKER,
                ApiKey.ALLOCATE_PRODUCER_IDS,
                ApiKey.CONTROLLER_REGISTRATION,
                ApiKey.ASSIGN_REPLICAS_TO_DIRS,
                ApiKey.ADD_RAFT_VOTER,
                ApiKey.REMOVE_RAFT_VOTER,
                ApiKey.UPDATE_RAFT_VOTER,
            )
        },
    }
)

#: Features and levels that Kafka 4.3.1 supports, as its controllers advertise them.
CONTROLLER_FEATURES: Final[Mapping[str, VersionRange]] = MappingProxyType(
    {
        "eligible.leader.replicas.version": VersionRange(0, 1),
        "group.version": VersionRange(0, 1),
        "kraft.version": VersionRange(0, 1),
        "metadata.version": VersionRange(7, 30),
        "share.version": VersionRange(0, 1),
        "streams.version": VersionRange(0, 1),
        "transaction.version": VersionRange(0, 2),
    }
)

#: The levels that our clusters are formatted with: Kafka 4.3.1's own, except that nobody keeps
#: eligible leader replicas; ``kraft.version`` 0 stands for static voters.
PINNED_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "eligible.leader.replicas.version": 0,
        "group.version": 1,
        "kraft.version": 0,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
)


def advertised_versions(handled: Collection[ApiKey]) -> Mapping[ApiKey, VersionRange]:
    """Return a node's answer to ``ApiVersions``: the rows of the APIs that it has handlers for.

    Raises:
        ValueError: a handler answers an API that is in no row.
    """
    foreign = sorted(api_key.name for api_key in handled if api_key not in CONTROLLER_VERSIONS)
    if foreign:
        raise ValueError(f"a controller does not serve {', '.join(foreign)}")
    return MappingProxyType({key: CONTROLLER_VERSIONS[key] for key in sorted(handled)})
