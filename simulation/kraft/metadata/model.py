"""Independent model of Kafka's metadata: records in, state out, and which records cannot be.

Written from Kafka's documents. It shares the records and their decoder with the nodes and nothing
else: neither the image, nor a rule by which a controller decides. Must never apply a part of a
transaction.

Source: KIP-631 (brokers, topics, partitions), KIP-868 (transactions), KIP-858 (directories),
KIP-966 (eligible leaders), KIP-730 (producer ids).
"""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.records import (
    LEADER_UNCHANGED,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from splitbrain.simulation.kraft.metadata.state import (
    MIGRATING,
    TOPIC_RESOURCE,
    Metadata,
    ids_from,
    key_of,
)

#: Of raft; its level stands in control records.
_KRAFT_VERSION: Final = "kraft.version"
#: Fields that a change of a partition puts in the place of what was there.
_REPLACED: Final = (
    "isr", "replicas", "removing_replicas", "adding_replicas", "directories",
    "eligible_leader_replicas", "last_known_elr",
)  # fmt: skip


class ImpossibleRecordError(Exception):
    """A record that cannot follow those before it, in a sentence."""


class MetadataModel:
    """Fed with committed records, one by one."""

    def __init__(self) -> None:
        self._metadata = Metadata()
        #: Records of the open transaction; None while none is open.
        self._held: list[MetadataRecord] | None = None

    @property
    def metadata(self) -> Metadata:
        """After all records that count by now."""
        return self._metadata

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open, whose records do not count yet."""
        return self._held is not None

    def take(self, record: MetadataRecord) -> None:
        """Take the next record; raises ImpossibleRecordError."""
        if isinstance(record, records.BeginTransactionRecord):
            if self._held is not None:
                raise ImpossibleRecordError("a transaction begins in another one")
            self._held = []
            return
        if isinstance(record, records.EndTransactionRecord | records.AbortTransactionRecord):
            if self._held is None:
                raise ImpossibleRecordError("a transaction ends that never began")
            due, self._held = self._held, None
            if isinstance(record, records.EndTransactionRecord):
                for each in due:
                    self._metadata = _after(self._metadata, each)
        elif self._held is not None:
            self._held.append(record)
        else:
            self._metadata = _after(self._metadata, record)


def _after(before: Metadata, record: MetadataRecord) -> Metadata:
    """Return the metadata once a record counts; raises ImpossibleRecordError."""
    return _STEPS[type(record)](before, record)


def _register(before: Metadata, record: RegisterBrokerRecord) -> Metadata:
    known = before.brokers.get(record.broker_id)
    if known is not None and record.broker_epoch < known.broker_epoch:
        raise ImpossibleRecordError(
            f"broker {record.broker_id} is registered with epoch {record.broker_epoch}, and had"
            f" {known.broker_epoch}"
        )
    return _with(before, brokers={**before.brokers, record.broker_id: record})


def _unregister(before: Metadata, record: records.UnregisterBrokerRecord) -> Metadata:
    _registered(before, record.broker_id, record.broker_epoch)
    return _with(before, brokers=_without(before.brokers, record.broker_id))


def _change_broker(before: Metadata, record: records.BrokerRegistrationChangeRecord) -> Metadata:
    known = _registered(before, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise ImpossibleRecordError(f"a change of broker {record.broker_id} means nothing")
    cordoned = record.cordoned_log_dirs
    changed = msgspec.structs.replace(
        known,
        fenced=record.fenced == 1 if record.fenced else known.fenced,
        in_controlled_shutdown=bool(record.in_controlled_shutdown) or known.in_controlled_shutdown,
        log_dirs=record.log_dirs or known.log_dirs,
        cordoned_log_dirs=known.cordoned_log_dirs if cordoned is None else cordoned,
    )
    return _with(before, brokers={**before.brokers, record.broker_id: changed})


def _fence(
    before: Metadata, record: records.FenceBrokerRecord | records.UnfenceBrokerRecord
) -> Metadata:
    known = _registered(before, record.id, record.epoch)
    is_fenced = isinstance(record, records.FenceBrokerRecord)
    changed = msgspec.structs.replace(known, fenced=is_fenced)
    return _with(before, brokers={**before.brokers, record.id: changed})


def _registered(before: Metadata, broker_id: int, epoch: int) -> RegisterBrokerRecord:
    known = before.brokers.get(broker_id)
    if known is None or known.broker_epoch != epoch:
        raise ImpossibleRecordError(
            f"broker {broker_id} of epoch {epoch} changes and is not registered with it"
        )
    return known


def _add_topic(before: Metadata, record: TopicRecord) -> Metadata:
    if record.topic_id in before.topics or before.named(record.name) is not None:
        raise ImpossibleRecordError(f"topic {record.name} comes and is there already")
    return _with(
        before,
        topics={**before.topics, record.topic_id: record},
        topic_ids={**before.topic_ids, record.name: record.topic_id},
    )


def _remove_topic(before: Metadata, record: records.RemoveTopicRecord) -> Metadata:
    topic = _topic(before, record.topic_id)
    others = {
        key: each
        for key, each in before.others.items()
        if not isinstance(each, records.ConfigRecord)
        or (each.resource_type, each.resource_name) != (TOPIC_RESOURCE, topic.name)
    }
    return _with(
        before,
        topics=_without(before.topics, record.topic_id),
        topic_ids=_without(before.topic_ids, topic.name),
        partitions=_without(before.partitions, record.topic_id),
        others=others,
    )


def _topic(before: Metadata, topic_id: str) -> TopicRecord:
    topic = before.topics.get(topic_id)
    if topic is None:
        raise ImpossibleRecordError(f"topic {topic_id} changes and is not there")
    return topic


def _add_partition(before: Metadata, record: PartitionRecord) -> Metadata:
    topic = _topic(before, record.topic_id)
    number = record.partition_id
    if not 0 <= number <= before.partition_count(record.topic_id):
        raise ImpossibleRecordError(
            f"partition {number} of {topic.name} comes, and the topic has"
            f" {before.partition_count(record.topic_id)}"
        )
    return _put(before, record)


def _change_partition(before: Metadata, record: PartitionChangeRecord) -> Metadata:
    known = before.partition(record.topic_id, record.partition_id)
    if known is None:
        raise ImpossibleRecordError(
            f"partition {record.partition_id} of topic {record.topic_id} changes and is not there"
        )
    is_election = record.leader != LEADER_UNCHANGED
    stated = {name: getattr(record, name) for name in _REPLACED}
    fields: dict[str, Any] = {name: value for name, value in stated.items() if value is not None}
    if is_election:
        fields["leader"] = record.leader
    if record.leader_recovery_state != -1:
        fields["leader_recovery_state"] = record.leader_recovery_state
    changed = msgspec.structs.replace(
        known,
        # Naming a leader, even the same, begins a new epoch of it.
        leader_epoch=known.leader_epoch + is_election,
        partition_epoch=known.partition_epoch + 1,
        **fields,
    )
    return _put(before, changed)


def _put(before: Metadata, partition: PartitionRecord) -> Metadata:
    """Return the metadata with a partition as it is now."""
    directories = partition.directories
    if all(each == MIGRATING for each in directories):
        directories = (MIGRATING,) * len(partition.replicas)
    # As a snapshot tells it: nothing that is empty, a directory for each replica.
    told = msgspec.structs.replace(
        partition,
        directories=directories,
        eligible_leader_replicas=partition.eligible_leader_replicas or None,
        last_known_elr=partition.last_known_elr or None,
    )
    topic_id, number = partition.topic_id, partition.partition_id
    known = before.partitions.get(topic_id, ())
    replaced = (*known[:number], told, *known[number + 1 :])
    return _with(before, partitions={**before.partitions, topic_id: replaced})


def _forget_eligible(before: Metadata, record: records.ClearElrRecord) -> Metadata:
    if record.topic_name and before.named(record.topic_name) is None:
        raise ImpossibleRecordError(f"topic {record.topic_name} changes and is not there")
    partitions = dict(before.partitions)
    for topic_id, known in before.partitions.items():
        if not record.topic_name or before.topics[topic_id].name == record.topic_name:
            partitions[topic_id] = tuple([_without_eligible(each) for each in known])
    return _with(before, partitions=partitions)


def _without_eligible(known: PartitionRecord) -> PartitionRecord:
    if not known.eligible_leader_replicas and not known.last_known_elr:
        return known
    return msgspec.structs.replace(
        known,
        partition_epoch=known.partition_epoch + 1,
        eligible_leader_replicas=None,
        last_known_elr=None,
    )


def _set_feature(before: Metadata, record: records.FeatureLevelRecord) -> Metadata:
    if record.name == _KRAFT_VERSION:
        return before
    return _told(before, record) if record.feature_level else _forgotten(before, record)


def _set_config(before: Metadata, record: records.ConfigRecord) -> Metadata:
    return _forgotten(before, record) if record.value is None else _told(before, record)


def _set_quota(before: Metadata, record: records.ClientQuotaRecord) -> Metadata:
    if record.remove:
        return _forgotten(before, record)
    entity = tuple(sorted(record.entity, key=lambda each: each.entity_type))
    return _told(before, msgspec.structs.replace(record, entity=entity))


def _give_ids(before: Metadata, record: records.ProducerIdsRecord) -> Metadata:
    known = before.others.get(key_of(record))
    if known is not None and record.next_producer_id <= before.next_producer_id:
        raise ImpossibleRecordError(
            f"producer ids go on from {record.next_producer_id}, and were given up to"
            f" {before.next_producer_id}"
        )
    return _told(before, ids_from(record.next_producer_id))


def _remove_rule(before: Metadata, record: records.RemoveAccessControlEntryRecord) -> Metadata:
    key = (records.AccessControlEntryRecord.__name__, record.id)
    if key not in before.others:
        raise ImpossibleRecordError(f"access rule {record.id} goes and is not there")
    return _with(before, others=_without(before.others, key))


def _remove_password(before: Metadata, record: records.RemoveUserScramCredentialRecord) -> Metadata:
    key = (records.UserScramCredentialRecord.__name__, (record.mechanism, record.name))
    return _with(before, others=_without(before.others, key))


def _remove_token(before: Metadata, record: records.RemoveDelegationTokenRecord) -> Metadata:
    key = (records.DelegationTokenRecord.__name__, record.token_id)
    return _with(before, others=_without(before.others, key))


def _told(before: Metadata, record: MetadataRecord) -> Metadata:
    return _with(before, others={**before.others, key_of(record): record})


def _forgotten(before: Metadata, record: MetadataRecord) -> Metadata:
    return _with(before, others=_without(before.others, key_of(record)))


def _nothing(before: Metadata, _record: MetadataRecord) -> Metadata:
    return before


def _with(before: Metadata, **changes: Any) -> Metadata:
    return msgspec.structs.replace(before, **changes)


def _without(mapping: Mapping[Any, Any], key: Hashable) -> dict[Any, Any]:
    kept = dict(mapping)
    kept.pop(key, None)
    return kept


_STEPS: Final[Mapping[type[MetadataRecord], Callable[[Metadata, Any], Metadata]]] = (
    MappingProxyType(
        {
            RegisterBrokerRecord: _register,
            records.UnregisterBrokerRecord: _unregister,
            records.BrokerRegistrationChangeRecord: _change_broker,
            records.FenceBrokerRecord: _fence,
            records.UnfenceBrokerRecord: _fence,
            TopicRecord: _add_topic,
            records.RemoveTopicRecord: _remove_topic,
            PartitionRecord: _add_partition,
            PartitionChangeRecord: _change_partition,
            records.ClearElrRecord: _forget_eligible,
            records.FeatureLevelRecord: _set_feature,
            records.ConfigRecord: _set_config,
            records.ClientQuotaRecord: _set_quota,
            records.ProducerIdsRecord: _give_ids,
            records.RegisterControllerRecord: _told,
            records.AccessControlEntryRecord: _told,
            records.RemoveAccessControlEntryRecord: _remove_rule,
            records.UserScramCredentialRecord: _told,
            records.RemoveUserScramCredentialRecord: _remove_password,
            records.DelegationTokenRecord: _told,
            records.RemoveDelegationTokenRecord: _remove_token,
            records.NoOpRecord: _nothing,
            records.ZkMigrationStateRecord: _nothing,
        }
    )
)
