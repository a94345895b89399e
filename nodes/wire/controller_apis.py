"""APIs and features of a controller: all that it may serve, of which ``advertised_versions`` tells.

A broker offers its clients the versions that it and its controller both speak, so a range cut short
here takes versions from clients. Kafka's controllers also serve SASL, ACLs, delegation tokens,
quotas and SCRAM; ours do not.

Source: Kafka 4.3.1's ``ApiKeys.controllerApis``, ``QuorumFeatures`` and ``Feature``.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.wire.apis import ApiKey, VersionRange
from splitbrain.nodes.wire.calls import TABLES

_OF_BROKERS_ALONE: Final = (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
#: APIs of the quorum itself, and those that every controller of Kafka 4.3.1 serves besides.
CONTROLLER_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {key: table.versions for key, table in TABLES.items() if key not in _OF_BROKERS_ALONE}
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

    Raises ValueError for a handler whose API is in no row.
    """
    foreign = sorted(api_key.name for api_key in handled if api_key not in CONTROLLER_VERSIONS)
    if foreign:
        raise ValueError(f"a controller does not serve {', '.join(foreign)}")
    return MappingProxyType({key: CONTROLLER_VERSIONS[key] for key in sorted(handled)})
