"""Application of records to an image: one delta takes them in order and gives the next image.

Copies what changes and shares the rest. A record that contradicts what was said before is refused,
by the rules that a real controller replays by; the delta is of no use after that, and the image is
untouched. Source: KIP-631; a real controller's replay of each record.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.broker_drafts import BrokersDraft
from splitbrain.nodes.metadata.drafts import Draft
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.image import METADATA_VERSION, TOPIC_RESOURCE, MetadataImage
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
        self.brokers = BrokersDraft(image.brokers)
        self.controllers = Draft(image.controllers)
        self.topics = TopicsDraft(image.topics)
        self.configs = Draft(image.configs)
        self._quotas = Draft(image.quotas)
        self._next_producer_id = image.next_producer_id
        self.acls = Draft(image.acls)
        self.scram = Draft(image.scram)
        self.tokens = Draft(image.delegation_tokens)

    def replay(self, record: MetadataRecord) -> None:
        """Take the next record; raises ContradictionError if it cannot follow what was said."""
        _REPLAYS[type(record)](self, record)

    def apply(self, provenance: Provenance) -> MetadataImage:
        """Return the next image; raises ContradictionError if a topic lacks a partition."""
        return MetadataImage(
            provenance=provenance,
            features=self._features.result(),
            brokers=self.brokers.result(),
            controllers=self.controllers.result(),
            topics=self.topics.result(),
            configs=self.configs.result(),
            quotas=self._quotas.result(),
            next_producer_id=self._next_producer_id,
            acls=self.acls.result(),
            scram=self.scram.result(),
            delegation_tokens=self.tokens.result(),
        )

    def _remove_topic(self, record: records.RemoveTopicRecord) -> None:
        topic = self.topics.remove(record.topic_id)
        self.configs.remove((TOPIC_RESOURCE, topic.name))

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
            quota = records.ClientQuotaRecord(entity, record.key, record.value, remove=False)
            self._quotas.set((entity, record.key), quota)

    def _give_producer_ids(self, record: records.ProducerIdsRecord) -> None:
        before = self._next_producer_id
        if before is not None and record.next_producer_id <= before:
            raise ContradictionError(
                f"producer ids from {before} on are free, and the next block would begin at "
                f"{record.next_producer_id}"
            )
        self._next_producer_id = record.next_producer_id

    def _remove_acl(self, record: records.RemoveAccessControlEntryRecord) -> None:
        if self.acls.remove(record.id) is None:
            raise ContradictionError(f"access rule {record.id} cannot go: it is not there")

    def _refuse_marker(self, record: MetadataRecord) -> None:
        raise ContradictionError(
            f"{type(record).__name__} is for the transaction buffer; it changes no image"
        )

    #: How each record is replayed: by the delta ``d`` from the record ``r``.
    REPLAYS: Final[Mapping[type[MetadataRecord], Callable[[Any, Any], object]]] = MappingProxyType(
        {
            records.RegisterBrokerRecord: lambda d, r: d.brokers.register(r),
            records.UnregisterBrokerRecord: lambda d, r: d.brokers.unregister(r),
            records.TopicRecord: lambda d, r: d.topics.add(r),
            records.PartitionRecord: lambda d, r: d.topics.put(r),
            records.ConfigRecord: _set_config,
            records.PartitionChangeRecord: lambda d, r: d.topics.change(r),
            records.FenceBrokerRecord: lambda d, r: d.brokers.fence(r),
            records.UnfenceBrokerRecord: lambda d, r: d.brokers.fence(r),
            records.RemoveTopicRecord: _remove_topic,
            records.DelegationTokenRecord: lambda d, r: d.tokens.set(r.token_id, r),
            records.UserScramCredentialRecord: lambda d, r: d.scram.set((r.mechanism, r.name), r),
            records.FeatureLevelRecord: _set_feature,
            records.ClientQuotaRecord: _set_quota,
            records.ProducerIdsRecord: _give_producer_ids,
            records.BrokerRegistrationChangeRecord: lambda d, r: d.brokers.change(r),
            records.AccessControlEntryRecord: lambda d, r: d.acls.set(r.id, r),
            records.RemoveAccessControlEntryRecord: _remove_acl,
            records.NoOpRecord: lambda _d, _r: None,
            # Kafka 4 reads what an older cluster's way from ZooKeeper left, and forgets it.
            records.ZkMigrationStateRecord: lambda _d, _r: None,
            records.RemoveUserScramCredentialRecord: lambda d, r: d.scram.remove(
                (r.mechanism, r.name)
            ),
            records.BeginTransactionRecord: _refuse_marker,
            records.EndTransactionRecord: _refuse_marker,
            records.AbortTransactionRecord: _refuse_marker,
            records.RemoveDelegationTokenRecord: lambda d, r: d.tokens.remove(r.token_id),
            records.RegisterControllerRecord: lambda d, r: d.controllers.set(r.controller_id, r),
            records.ClearElrRecord: lambda d, r: d.topics.clear_eligible_leaders(r.topic_name),
        }
    )


_REPLAYS: Final = MetadataDelta.REPLAYS


def image_after(image: MetadataImage, settled: Settled) -> MetadataImage:
    """Return the next image, once these records count; raises ContradictionError."""
    return _replayed(image, settled.records, settled.provenance)


def image_of(content: Iterable[MetadataRecord], provenance: Provenance) -> MetadataImage:
    """Return the image that a snapshot's records tell; raises ContradictionError."""
    return _replayed(MetadataImage(), content, provenance)


def _replayed(
    image: MetadataImage, content: Iterable[MetadataRecord], provenance: Provenance
) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in content:
        delta.replay(record)
    return delta.apply(provenance)
