"""Proposals of a broker that leads partitions: every replica that may be is in sync.

A broker without records has nothing to copy, so whoever follows is in sync as soon as it lives. A
real leader waits until a follower has fetched everything; from there on it proposes the same: the
ISR and whoever joins, each with the broker epoch that the leader knows it by, together with the
epochs that the partition has in the leader's own image. The controller refuses what is no longer
so, and what became of a proposal is told by the log: nothing is kept here.

Source: KIP-497, KIP-841, KIP-903; Kafka 4.3.1's Partition and AlterPartitionManager.
"""

from collections.abc import Iterator
from typing import Final

from splitbrain.nodes.controller.basis.registrations import is_active
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionRequest,
    InSyncBroker,
    PartitionToAlter,
    TopicToAlter,
)

#: A leader says so with its first proposal after an unclean election.
_RECOVERED: Final = 0
_RECOVERING: Final = 1
_UNKNOWN_EPOCH: Final = -1


def propose_isrs(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> AlterPartitionRequest | None:
    """AlterPartition version 3 for all partitions that the broker leads and that lack somebody.

    None where there is nothing to propose. Looks at every partition: ask when the image changed.
    """
    topics = tuple(
        TopicToAlter(topic_id=topic_id, partitions=partitions)
        for topic_id, topic in sorted(image.topics.by_id.items())
        if (partitions := tuple(_proposals(image, topic, broker_id)))
    )
    if not topics:
        return None
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)


def _proposals(
    image: MetadataImage, topic: TopicImage, broker_id: int
) -> Iterator[PartitionToAlter]:
    for number, state in enumerate(topic.partitions):
        if state.leader != broker_id:
            continue
        is_recovering = state.leader_recovery_state == _RECOVERING
        if state.isr == state.replicas and not is_recovering:
            # Nearly all: nobody is missing.
            continue
        joining = tuple(
            each for each in state.replicas if each not in state.isr and is_active(image, each)
        )
        if joining or is_recovering:
            yield PartitionToAlter(
                partition_index=number,
                leader_epoch=state.leader_epoch,
                new_isr_with_epochs=tuple(
                    InSyncBroker(broker_id=each, broker_epoch=_epoch(image, each))
                    for each in (*state.isr, *joining)
                ),
                leader_recovery_state=_RECOVERED,
                partition_epoch=state.partition_epoch,
            )


def _epoch(image: MetadataImage, broker_id: int) -> int:
    broker = image.brokers.get(broker_id)
    return _UNKNOWN_EPOCH if broker is None else broker.broker_epoch
