"""How many partitions each broker leads, and which partitions a broker is in: over all topics.

Counts follow the image, topic by topic as topics change, so a heartbeat may ask for them. A scan
looks at every partition: 0.06 s for a million, too much for a heartbeat, little beside the records
that come of a fencing (1.8 s for half a million). Must never change what it is asked about.
"""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from splitbrain.nodes.metadata.image import MetadataImage, TopicImage, TopicsImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.metadata.records import NO_LEADER


class PartitionAt(NamedTuple):
    """A partition, and which one it is."""

    topic: TopicImage
    number: int
    state: PartitionState


class Leaderships:
    """Numbers of partitions by leader; a cache, which any image may be asked through."""

    def __init__(self) -> None:
        self._topics = TopicsImage()
        self._counts: dict[int, int] = {}

    def count(self, image: MetadataImage, broker_id: int) -> int:
        """How many partitions the broker leads."""
        self._follow(image.topics)
        return self._counts.get(broker_id, 0)

    def leaderless_count(self, image: MetadataImage) -> int:
        """How many partitions nobody leads."""
        return self.count(image, NO_LEADER)

    def _follow(self, topics: TopicsImage) -> None:
        if topics is self._topics:
            return
        before, after = self._topics.by_id, topics.by_id
        removed_count = len(before) - len(after)
        for topic_id, topic in after.items():
            known = before.get(topic_id)
            if known is not topic:
                removed_count += known is None
                self._exchange(known, topic)
        if removed_count:
            for topic_id in before.keys() - after.keys():
                self._exchange(before[topic_id], None)
        self._topics = topics

    def _exchange(self, before: TopicImage | None, after: TopicImage | None) -> None:
        for old, new in zip_longest(
            before.partitions if before else (), after.partitions if after else ()
        ):
            if old is not new:
                self._add(old, -1)
                self._add(new, 1)

    def _add(self, state: PartitionState | None, change: int) -> None:
        if state is not None:
            self._counts[state.leader] = self._counts.get(state.leader, 0) + change


def partitions_in_sync_on(image: MetadataImage, broker_id: int) -> Iterator[PartitionAt]:
    """Partitions that the broker is in the ISR of, led by it or not."""
    return _scan(image, lambda state: broker_id in state.isr)


def partitions_without_leader(image: MetadataImage) -> Iterator[PartitionAt]:
    """Partitions that nobody leads."""
    return _scan(image, lambda state: state.leader == NO_LEADER)


def partitions_off_balance(image: MetadataImage) -> Iterator[PartitionAt]:
    """Partitions that their preferred leader does not lead."""
    return _scan(image, lambda state: not state.replicas or state.leader != state.replicas[0])


def partitions_in_directory(image: MetadataImage, directory: str) -> Iterator[PartitionAt]:
    """Partitions with a replica in the directory."""
    return _scan(image, lambda state: directory in state.directories)


def _scan(image: MetadataImage, chosen: Callable[[PartitionState], bool]) -> Iterator[PartitionAt]:
    for topic in image.topics.by_id.values():
        for number, state in enumerate(topic.partitions):
            if chosen(state):
                yield PartitionAt(topic, number, state)
