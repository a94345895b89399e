"""Kafka's metadata as of one offset, held as the records that would tell it in a snapshot.

The oracle's own: it shares the records with the nodes and nothing else. Never changed once it was
shown.

Source: KIP-630 (snapshots), KIP-841 (who is active), KIP-858 (directories), KIP-106 (unclean
elections).
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.records import (
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

TOPIC_RESOURCE: Final = 2
#: Directory of a replica that nobody has said, in a cluster that had none before.
MIGRATING: Final = "0" * 32
#: Directory of a replica that its broker has yet to choose, and of one that it has lost.
_UNASSIGNED: Final = "0" * 31 + "1"
_LOST: Final = "0" * 31 + "2"
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_METADATA_VERSION: Final = "metadata.version"
_ALL_BROKERS: Final = (4, "")
_UNCLEAN: Final = "unclean.leader.election.enable"


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """All that counts after some record; never changed once it was shown."""

    #: By id, each with all changes of its registration.
    brokers: Mapping[int, RegisterBrokerRecord] = _NOTHING
    #: By id.
    topics: Mapping[str, TopicRecord] = _NOTHING
    #: By name.
    topic_ids: Mapping[str, str] = _NOTHING
    #: By topic id, in the order of their numbers, each with all its changes.
    partitions: Mapping[str, tuple[PartitionRecord, ...]] = _NOTHING
    #: All other records, by ``key_of``.
    others: Mapping[Hashable, MetadataRecord] = _NOTHING

    @property
    def metadata_version(self) -> int | None:
        """Level of ``metadata.version``; None before it was said."""
        return self.level(_METADATA_VERSION) or None

    @property
    def next_producer_id(self) -> int:
        """First id that was given to nobody."""
        given = self.others.get(key_of(ids_from(0)))
        return given.next_producer_id if isinstance(given, records.ProducerIdsRecord) else 0

    def level(self, feature: str) -> int:
        """Level of a feature; 0: it is not in use."""
        said = self.others.get(key_of(records.FeatureLevelRecord(feature, 0)))
        return said.feature_level if isinstance(said, records.FeatureLevelRecord) else 0

    def named(self, name: str) -> TopicRecord | None:
        """Return the topic of this name."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, topic_id: str, number: int) -> PartitionRecord | None:
        """Return one partition; None: there is no such."""
        partitions = self.partitions.get(topic_id, ())
        return partitions[number] if 0 <= number < len(partitions) else None

    def partition_count(self, topic_id: str) -> int:
        """How many partitions the topic has."""
        return len(self.partitions.get(topic_id, ()))

    def all_partitions(self) -> Iterator[PartitionRecord]:
        """Yield the partitions of all topics."""
        for partitions in self.partitions.values():
            yield from partitions

    def affected_since(self, before: "Metadata") -> Iterator[PartitionRecord]:
        """Yield partitions that may stand otherwise to the brokers than they did before.

        Of the others neither the partitions of their topic nor any broker has changed.
        """
        if self.brokers is not before.brokers:
            yield from self.all_partitions()
        elif self.partitions is not before.partitions:
            for topic_id, partitions in self.partitions.items():
                if partitions is not before.partitions.get(topic_id):
                    yield from partitions

    def name_of(self, record: MetadataRecord | None) -> str:
        """Return the name of the thing that a record of a snapshot tells, for a sentence."""
        match record:
            case TopicRecord(name=name):
                return f"topic {name}"
            case RegisterBrokerRecord(broker_id=number):
                return f"broker {number}"
            case PartitionRecord(topic_id=topic_id, partition_id=number):
                topic = self.topics.get(topic_id)
                return f"partition {number} of {topic_id if topic is None else topic.name}"
            case _:
                return type(record).__name__.removesuffix("Record")

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is registered, and neither fenced nor about to go (KIP-841)."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def can_serve(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Whether the broker is active and has its replica."""
        return self.is_active(broker_id) and self.has_replica(partition, broker_id)

    def has_replica(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Whether the broker has a replica, in a directory that it did not lose (KIP-858)."""
        if broker_id not in partition.replicas or broker_id not in self.brokers:
            return False
        directory = partition.directories[partition.replicas.index(broker_id)]
        known = self.brokers[broker_id].log_dirs
        if not known or directory in (MIGRATING, _UNASSIGNED):
            return True
        return directory != _LOST and directory in known

    def allows_unclean(self, topic_id: str) -> bool:
        """Whether a topic would rather lose records than have no leader (KIP-106)."""
        for resource in ((TOPIC_RESOURCE, self.topics[topic_id].name), _ALL_BROKERS):
            said = self.others.get(key_of(records.ConfigRecord(*resource, _UNCLEAN, None)))
            if isinstance(said, records.ConfigRecord):
                return (said.value or "").lower() == "true"
        return False

    def told(self) -> dict[Hashable, MetadataRecord]:
        """Return the records that tell all of it, by ``key_of``."""
        whole = [*self.brokers.values(), *self.topics.values(), *self.all_partitions()]
        return {**{key_of(record): record for record in whole}, **self.others}


def read(told: Iterable[MetadataRecord]) -> Metadata:
    """Return the metadata that the records of a snapshot tell."""
    brokers: dict[int, RegisterBrokerRecord] = {}
    topics: dict[str, TopicRecord] = {}
    partitions: dict[str, list[PartitionRecord]] = {}
    others: dict[Hashable, MetadataRecord] = {}
    for record in told:
        match record:
            case PartitionRecord(topic_id=topic_id):
                partitions.setdefault(topic_id, []).append(record)
            case TopicRecord(topic_id=topic_id):
                topics[topic_id] = record
            case RegisterBrokerRecord(broker_id=broker_id):
                brokers[broker_id] = record
            case _:
                others[key_of(record)] = record
    return Metadata(
        brokers=brokers,
        topics=topics,
        topic_ids={topic.name: topic.topic_id for topic in topics.values()},
        partitions={topic_id: tuple(each) for topic_id, each in partitions.items()},
        others=others,
    )


def key_of(record: MetadataRecord) -> Hashable:
    """Return the identity of the thing that a record of a snapshot tells."""
    match record:
        case records.FeatureLevelRecord(name=name) | TopicRecord(topic_id=name):
            key: Hashable = name
        case RegisterBrokerRecord(broker_id=number):
            key = number
        case records.RegisterControllerRecord(controller_id=number):
            key = number
        case PartitionRecord(topic_id=topic_id, partition_id=number):
            key = topic_id, number
        case records.ConfigRecord(resource_type=kind, resource_name=of, name=name):
            key = kind, of, name
        case records.ClientQuotaRecord(entity=entity, key=name):
            key = tuple(sorted((each.entity_type, str(each.entity_name)) for each in entity)), name
        case records.UserScramCredentialRecord(mechanism=number, name=name):
            key = number, name
        case records.DelegationTokenRecord(token_id=name):
            key = name
        case records.AccessControlEntryRecord(id=name):
            key = name
        case _:
            # There is one of it.
            key = None
    return type(record).__name__, key


def differing(one: MetadataRecord, other: MetadataRecord) -> str:
    """Return what two records of one thing say otherwise, in words."""
    fields = [
        f"{name.replace('_', ' ')} {value!r} and not {getattr(other, name)!r}"
        for name, value in msgspec.structs.asdict(one).items()
        if value != getattr(other, name)
    ]
    return ", ".join(fields)


def ids_from(first: int) -> records.ProducerIdsRecord:
    """Return the record of the first id that is free; whose the last block was is not kept."""
    return records.ProducerIdsRecord(broker_id=-1, next_producer_id=first)
