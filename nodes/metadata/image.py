"""The cluster's metadata as of one offset: immutable, so whoever holds it reads without a lock.

Data of no use here (access rules, passwords, tokens, quotas, registrations) is held as the records
that say it. The mappings are never changed once an image has them: the next image has copies of
those that differ and shares the rest. Source: KIP-630 (snapshots), KIP-631.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from splitbrain.nodes.metadata.transactions import Provenance

#: The feature whose level says which records there are.
METADATA_VERSION: Final = "metadata.version"
#: A resource's type and name.
ConfigResource = tuple[int, str]
#: Whom a quota is for, sorted by type, and the quota's name.
QuotaKey = tuple[tuple[QuotaEntity, ...], str]
#: Mechanism and user.
ScramKey = tuple[int, str]
#: ``resource_type`` of a topic.
TOPIC_RESOURCE: Final = 2
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class TopicImage(msgspec.Struct, frozen=True, gc=False):
    """A topic and its partitions."""

    name: str
    #: 32 lower-case hex digits.
    topic_id: str
    #: By partition id, from 0 without gaps.
    partitions: tuple[PartitionState, ...]


class TopicsImage(msgspec.Struct, frozen=True, gc=False):
    """All topics."""

    by_id: Mapping[str, TopicImage] = _NOTHING
    ids_by_name: Mapping[str, str] = _NOTHING

    def named(self, name: str) -> TopicImage | None:
        """Return the topic of this name."""
        topic_id = self.ids_by_name.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: str, partition_id: int) -> PartitionState | None:
        """One partition; None if there is no such topic or partition."""
        topic = self.by_id.get(topic_id)
        if topic is None or not 0 <= partition_id < len(topic.partitions):
            return None
        return topic.partitions[partition_id]


class MetadataImage(msgspec.Struct, frozen=True, gc=False):
    """Everything; ``MetadataImage()`` is a cluster before its first record."""

    provenance: Provenance = Provenance()
    #: Level of each feature that is in use, ``metadata.version`` among them.
    features: Mapping[str, int] = _NOTHING
    #: By id; each the registration with all changes in it.
    brokers: Mapping[int, RegisterBrokerRecord] = _NOTHING
    #: By id.
    controllers: Mapping[int, RegisterControllerRecord] = _NOTHING
    topics: TopicsImage = TopicsImage()
    #: By resource; a resource with nothing configured is not there.
    configs: Mapping[ConfigResource, Mapping[str, str]] = _NOTHING
    quotas: Mapping[QuotaKey, ClientQuotaRecord] = _NOTHING
    #: First id of the block that is given next; None before the first block.
    next_producer_id: int | None = None
    #: By id.
    acls: Mapping[str, AccessControlEntryRecord] = _NOTHING
    scram: Mapping[ScramKey, UserScramCredentialRecord] = _NOTHING
    #: By token id.
    delegation_tokens: Mapping[str, DelegationTokenRecord] = _NOTHING

    @property
    def metadata_version(self) -> int | None:
        """Level of ``metadata.version``; None before it was said."""
        return self.features.get(METADATA_VERSION)
