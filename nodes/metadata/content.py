"""An image as records: what a snapshot holds, in the order of a real controller.

Records that others refer to come before those. Equal images give equal records in equal order,
whatever way they came about. Source: KIP-630.
"""

from collections.abc import Iterator

from splitbrain.nodes.metadata.image import METADATA_VERSION, MetadataImage, QuotaKey, TopicImage
from splitbrain.nodes.metadata.partitions import partition_record
from splitbrain.nodes.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
)

_NOBODY = -1


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Records that tell the whole image, one after the other."""
    yield from records_before_topics(image)
    for topic in topics_in_order(image):
        yield from topic_records(topic)
    yield from records_after_topics(image)


def records_before_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Features and who is registered."""
    for name, level in sorted(image.features.items(), key=lambda item: _feature_order(item[0])):
        yield FeatureLevelRecord(name, level)
    for _, broker in sorted(image.brokers.items()):
        yield broker
    for _, controller in sorted(image.controllers.items()):
        yield controller


def topics_in_order(image: MetadataImage) -> Iterator[TopicImage]:
    """By name."""
    for _, topic_id in sorted(image.topics.ids_by_name.items()):
        yield image.topics.by_id[topic_id]


def topic_records(topic: TopicImage) -> Iterator[MetadataRecord]:
    """One topic with its partitions."""
    yield TopicRecord(topic.name, topic.topic_id)
    for number, state in enumerate(topic.partitions):
        yield partition_record(topic.topic_id, number, state)


def records_after_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Configs, quotas, producer ids and what access depends on."""
    for resource, values in sorted(image.configs.items()):
        for name, value in sorted(values.items()):
            yield ConfigRecord(*resource, name, value)
    for _, quota in sorted(image.quotas.items(), key=lambda item: _quota_order(item[0])):
        yield quota
    if image.next_producer_id is not None:
        yield ProducerIdsRecord(broker_id=_NOBODY, next_producer_id=image.next_producer_id)
    for _, acl in sorted(image.acls.items()):
        yield acl
    for _, password in sorted(image.scram.items()):
        yield password
    for _, token in sorted(image.delegation_tokens.items()):
        yield token


def _feature_order(name: str) -> tuple[bool, str]:
    return name != METADATA_VERSION, name


def _quota_order(key: QuotaKey) -> tuple[list[tuple[str, bool, str]], str]:
    entity, name = key
    parts = [
        (part.entity_type, part.entity_name is not None, part.entity_name or "") for part in entity
    ]
    return parts, name
