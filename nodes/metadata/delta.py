"""Application of records to an image: one delta takes them in order and gives the next image.

Copies what changes and shares the rest; the image it started from stays as it is. A record that
contradicts what was said before is refused, by the rules that a real controller replays by; the
delta is of no use after that, and the image is untouched. Must never depend on anything but the
image and the records: every node that applied the same log holds an equal image.

Source: KIP-631; a real controller's replay of each record.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from splitbrain.nodes.metadata import broker_changes, records
from splitbrain.nodes.metadata.drafts import Draft
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.image import (
    METADATA_VERSION,
    TOPIC_RESOURCE,
    MetadataImage,
)
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.topic_drafts import TopicsDraft
from splitbrain.nodes.metadata.transactions import Provenance, Settled

#: Levels of ``metadata.version`` that there are: Kafka 3.3 to 4.3. Records are written for the
#: last of them.
METADATA_VERSIONS: Final = range(7, 31)
#: A feature of raft's own: its level stands in control records, and here it means nothing.
_KRAFT_VERSION: Final = "kraft.version"


class MetadataDelta:
    """Changes of one image; ``apply`` gives the next one and ends the delta."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._features = Draft(image.features)
        self.brokers = Draft(image.brokers)
        self._controllers = Draft(image.controllers)
        self.topics = TopicsDraft(image.topics)
        self.configs = Draft(image.configs)
        self._quotas = Draft(image.quotas)
        self._next_producer_id = image.next_producer_id
        self._acls = Draft(image.acls)
        self._scram = Draft(image.scram)
        self._tokens = Draft(image.delegation_tokens)

    def replay(self, record: MetadataRecord) -> None:
        """Take the next record.

        Raises:
            ContradictionError: it cannot follow what was said before.
        """
        _REPLAYS[type(record)](self, record)

    def apply(self, provenance: Provenance) -> MetadataImage:
        """Return the next image, which reaches as far as ``provenance`` says.

        Raises:
            ContradictionError: a topic lacks a partition below another.
        """
        return MetadataImage(
            provenance=provenance,
            features=self._features.result(),
            brokers=self.brokers.result(),
            controllers=self._controllers.result(),
            topics=self.topics.result(),
            configs=self.configs.result(),
            quotas=self._quotas.result(),
            next_producer_id=self._next_producer_id,
            acls=self._acls.result(),
            scram=self._scram.result(),
            delegation_tokens=self._tokens.result(),
        )

    def _put_partition(self, record: records.PartitionRecord) -> None:
        self.topics.put(record)

    def _change_partition(self, record: records.PartitionChangeRecord) -> None:
        self.topics.change(record)

    def _add_topic(self, record: records.TopicRecord) -> None:
        self.topics.add(record)

    def _remove_topic(self, record: records.RemoveTopicRecord) -> None:
        topic = self.topics.remove(record.topic_id)
        self.configs.remove((TOPIC_RESOURCE, topic.name))

    def _clear_elr(self, record: records.ClearElrRecord) -> None:
        self.topics.clear_eligible_leaders(record.topic_name)

    def _register_broker(self, record: records.RegisterBrokerRecord) -> None:
        broker_changes.register(self.brokers, record)

    def _unregister_broker(self, record: records.UnregisterBrokerRecord) -> None:
        broker_changes.unregister(self.brokers, record)

    def _change_broker(self, record: records.BrokerRegistrationChangeRecord) -> None:
        broker_changes.change(self.brokers, record)

    def _fence_broker(self, record: records.FenceBrokerRecord) -> None:
        broker_changes.fence(self.brokers, record.id, record.epoch, is_fenced=True)

    def _unfence_broker(self, record: records.UnfenceBrokerRecord) -> None:
        broker_changes.fence(self.brokers, record.id, record.epoch, is_fenced=False)

    def _register_controller(self, record: records.RegisterControllerRecord) -> None:
        self._controllers.set(record.controller_id, record)

    def _set_feature(self, record: records.FeatureLevelRecord) -> None:
        if record.name == METADATA_VERSION and record.feature_level not in METADATA_VERSIONS:
            raise ContradictionError(
                f"metadata.version {record.feature_level} is unknown to this build, which reads "
                f"{METADATA_VERSIONS[0]} to {METADATA_VERSIONS[-1]}"
            )
        if record.name == _KRAFT_VERSION:
            return
        if record.feature_level == 0:
            self._features.remove(record.name)
        else:
            self._features.set(record.name, record.feature_level)

    def _set_config(self, record: records.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        values = dict(self.configs.get(resource) or {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            self.configs.set(resource, values)
        else:
            self.configs.remove(resource)

    def _set_quota(self, record: records.ClientQuotaRecord) -> None:
        entity = tuple(sorted(record.entity, key=lambda part: part.entity_type))
        if record.remove:
            self._quotas.remove((entity, record.key))
        else:
            said = records.ClientQuotaRecord(entity, record.key, record.value, remove=False)
            self._quotas.set((entity, record.key), said)

    def _give_producer_ids(self, record: records.ProducerIdsRecord) -> None:
        before = self._next_producer_id
        if before is not None and record.next_producer_id <= before:
            raise ContradictionError(
                f"producer ids from {before} on are free, and the next block would begin at "
                f"{record.next_producer_id}"
            )
        self._next_producer_id = record.next_producer_id

    def _add_acl(self, record: records.AccessControlEntryRecord) -> None:
        self._acls.set(record.id, record)

    def _remove_acl(self, record: records.RemoveAccessControlEntryRecord) -> None:
        if self._acls.remove(record.id) is None:
            raise ContradictionError(f"access rule {record.id} cannot go: it is not there")

    def _set_password(self, record: records.UserScramCredentialRecord) -> None:
        self._scram.set((record.mechanism, record.name), record)

    def _remove_password(self, record: records.RemoveUserScramCredentialRecord) -> None:
        self._scram.remove((record.mechanism, record.name))

    def _set_token(self, record: records.DelegationTokenRecord) -> None:
        self._tokens.set(record.token_id, record)

    def _remove_token(self, record: records.RemoveDelegationTokenRecord) -> None:
        self._tokens.remove(record.token_id)

    def _change_nothing(self, record: MetadataRecord) -> None:
        """It moves the end of the log, and no more."""

    def _refuse_marker(self, record: MetadataRecord) -> None:
        raise ContradictionError(
            f"{type(record).__name__} is for the transaction buffer; it changes no image"
        )

    #: How each record is replayed.
    REPLAYS: Final[Mapping[type[MetadataRecord], Callable[[Any, Any], None]]] = MappingProxyType(
        {
            records.RegisterBrokerRecord: _register_broker,
            records.UnregisterBrokerRecord: _unregister_broker,
            records.TopicRecord: _add_topic,
            records.PartitionRecord: _put_partition,
            records.ConfigRecord: _set_config,
            records.PartitionChangeRecord: _change_partition,
            records.FenceBrokerRecord: _fence_broker,
            records.UnfenceBrokerRecord: _unfence_broker,
            records.RemoveTopicRecord: _remove_topic,
            records.DelegationTokenRecord: _set_token,
            records.UserScramCredentialRecord: _set_password,
            records.FeatureLevelRecord: _set_feature,
            records.ClientQuotaRecord: _set_quota,
            records.ProducerIdsRecord: _give_producer_ids,
            records.BrokerRegistrationChangeRecord: _change_broker,
            records.AccessControlEntryRecord: _add_acl,
            records.RemoveAccessControlEntryRecord: _remove_acl,
            records.NoOpRecord: _change_nothing,
            # Kafka 4 reads what an older cluster's way from ZooKeeper left, and forgets it.
            records.ZkMigrationStateRecord: _change_nothing,
            records.RemoveUserScramCredentialRecord: _remove_password,
            records.BeginTransactionRecord: _refuse_marker,
            records.EndTransactionRecord: _refuse_marker,
            records.AbortTransactionRecord: _refuse_marker,
            records.RemoveDelegationTokenRecord: _remove_token,
            records.RegisterControllerRecord: _register_controller,
            records.ClearElrRecord: _clear_elr,
        }
    )


_REPLAYS: Final = MetadataDelta.REPLAYS


def image_after(image: MetadataImage, settled: Settled) -> MetadataImage:
    """Return the next image, once these records count.

    Raises:
        ContradictionError: one cannot follow what was said before.
    """
    delta = MetadataDelta(image)
    for record in settled.records:
        delta.replay(record)
    return delta.apply(settled.provenance)


def image_of(content: Iterable[MetadataRecord], provenance: Provenance) -> MetadataImage:
    """Return the image that a snapshot's records tell.

    Raises:
        ContradictionError: one contradicts another.
    """
    delta = MetadataDelta(MetadataImage())
    for record in content:
        delta.replay(record)
    return delta.apply(provenance)
