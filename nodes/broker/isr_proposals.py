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
from splitbrain.nodes.metadata.partitions import PartitionState
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
    image: MetadataImage, broker_id: int, broker_epoch: int, whole: dict[str, TopicImage]
) -> AlterPartitionRequest | None:
    """AlterPartition version 3 for all partitions that the broker leads and that lack somebody.

    None where there is nothing to propose. ``whole``: topics by id of which the same broker's last
    proposals found that nothing can be proposed; kept up here. Images share the topics that did
    not change, so only others are looked at: ask when the image changed.
    """
    by_id = image.topics.by_id
    lacking = [
        topic_id
        for topic_id, topic in by_id.items()
        if whole.get(topic_id) is not topic and _lacks(topic, broker_id)
    ]
    whole.clear()
    whole.update(by_id)
    for topic_id in lacking:
        del whole[topic_id]
    topics = tuple(
        TopicToAlter(topic_id=topic_id, partitions=partitions)
        for topic_id in sorted(lacking)
        if (partitions := tuple(_proposals(image, by_id[topic_id], broker_id)))
    )
    if not topics:
        return None
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)


def _lacks(topic: TopicImage, broker_id: int) -> bool:
    """Whether the broker leads a partition that lacks somebody, or that must say it recovered."""
    return any(_may_lack(state, broker_id) for state in topic.partitions)


def _may_lack(state: PartitionState, broker_id: int) -> bool:
    """Whether the broker may have something to propose; nearly all partitions lack nobody."""
    return state.leader == broker_id and (
        state.isr != state.replicas or state.leader_recovery_state == _RECOVERING
    )


def _proposals(
    image: MetadataImage, topic: TopicImage, broker_id: int
) -> Iterator[PartitionToAlter]:
    for number, state in enumerate(topic.partitions):
        if not _may_lack(state, broker_id):
            continue
        is_recovering = state.leader_recovery_state == _RECOVERING
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
