"""Topics that are being changed: only those that a record names are opened, the rest is shared."""

from splitbrain.nodes.metadata.drafts import Draft
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.image import TopicImage, TopicsImage
from splitbrain.nodes.metadata.partitions import (
    PartitionState,
    Sharing,
    changed_partition,
    new_partition,
    without_eligible_leaders,
)
from splitbrain.nodes.metadata.records import PartitionChangeRecord, PartitionRecord, TopicRecord


class _OpenTopic:
    """A topic whose partitions change; what does not change is not touched before the end."""

    def __init__(self, topic: TopicImage) -> None:
        self.base = topic
        self._changed: dict[int, PartitionState] = {}

    def get(self, partition_id: int) -> PartitionState | None:
        changed = self._changed.get(partition_id)
        if changed is None and 0 <= partition_id < len(self.base.partitions):
            return self.base.partitions[partition_id]
        return changed

    def set(self, partition_id: int, state: PartitionState) -> None:
        self._changed[partition_id] = state

    def clear_eligible_leaders(self) -> None:
        for partition_id in {**dict.fromkeys(range(len(self.base.partitions))), **self._changed}:
            before = self.get(partition_id)
            if before is not None and (after := without_eligible_leaders(before)) is not before:
                self.set(partition_id, after)

    def close(self) -> TopicImage:
        if not self._changed:
            return self.base
        partitions = list(self.base.partitions)
        # New ones may have come in any order.
        for partition_id, state in sorted(self._changed.items(), key=_partition_id):
            if partition_id < len(partitions):
                partitions[partition_id] = state
            elif partition_id == len(partitions):
                partitions.append(state)
            else:
                raise ContradictionError(
                    f"topic {self.base.name} has a partition {partition_id} and none "
                    f"{len(partitions)}"
                )
        return TopicImage(self.base.name, self.base.topic_id, tuple(partitions))


def _partition_id(changed: tuple[int, PartitionState]) -> int:
    return changed[0]


class TopicsDraft:
    """All topics of the next image."""

    def __init__(self, base: TopicsImage) -> None:
        self._base = base
        self._topics: Draft[str, TopicImage] = Draft(base.by_id)
        self._ids: Draft[str, str] = Draft(base.ids_by_name)
        self._open: dict[str, _OpenTopic] = {}
        self._sharing = Sharing()

    @property
    def changed(self) -> tuple[str, ...]:
        """Ids of topics that came, went or changed; complete once ``result`` was asked for."""
        return self._topics.changed

    def add(self, record: TopicRecord) -> None:
        """Add a topic without partitions; raises ContradictionError if its name or id is taken."""
        known = self._ids.get(record.name)
        if known is not None or self._topics.get(record.topic_id) is not None:
            raise ContradictionError(
                f"topic {record.name} with id {record.topic_id} is there already, or another with "
                f"its {'name' if known else 'id'} is"
            )
        topic = TopicImage(record.name, record.topic_id, ())
        self._topics.set(record.topic_id, topic)
        self._ids.set(record.name, record.topic_id)
        self._open[record.topic_id] = _OpenTopic(topic)

    def remove(self, topic_id: str) -> TopicImage:
        """Remove a topic; return it as it was. Raises ContradictionError if there is none."""
        topic = self._topics.remove(topic_id)
        if topic is None:
            raise ContradictionError(f"topic {topic_id} cannot be removed: it is not there")
        self._ids.remove(topic.name)
        self._open.pop(topic_id, None)
        return topic

    def put(self, record: PartitionRecord) -> None:
        """Add a partition, whole; raises ContradictionError where it makes no sense."""
        topic = self._opened(record.topic_id, record.partition_id)
        if record.partition_id < 0:
            raise ContradictionError(
                f"topic {topic.base.name} has no partition {record.partition_id}"
            )
        topic.set(record.partition_id, new_partition(record, self._sharing))

    def change(self, record: PartitionChangeRecord) -> None:
        """Change a partition; raises ContradictionError if it is not there, or makes no sense."""
        topic = self._opened(record.topic_id, record.partition_id)
        before = topic.get(record.partition_id)
        if before is None:
            raise ContradictionError(
                f"partition {record.partition_id} of topic {topic.base.name} cannot change: it is "
                "not there"
            )
        topic.set(record.partition_id, changed_partition(before, record, self._sharing))

    def clear_eligible_leaders(self, name: str) -> None:
        """Let the partitions of one topic, or of all for no name, forget their ELR."""
        if name:
            topic_id = self._ids.get(name)
            if topic_id is None:
                raise ContradictionError(f"topic {name} cannot forget its ELR: it is not there")
            topic_ids = [topic_id]
        else:
            topic_ids = list(self._topics.result())
        for topic_id in topic_ids:
            self._opened(topic_id, 0).clear_eligible_leaders()

    def result(self) -> TopicsImage:
        """Topics of the next image, the same if none changed. Raises ContradictionError."""
        for topic_id, opened in self._open.items():
            closed = opened.close()
            if closed is not opened.base:
                self._topics.set(topic_id, closed)
        self._open = {}
        if not self._topics.changed:
            return self._base
        return TopicsImage(self._topics.result(), self._ids.result())

    def _opened(self, topic_id: str, partition_id: int) -> _OpenTopic:
        opened = self._open.get(topic_id)
        if opened is None:
            topic = self._topics.get(topic_id)
            if topic is None:
                raise ContradictionError(
                    f"partition {partition_id} is of topic {topic_id}, which is not there"
                )
            opened = self._open[topic_id] = _OpenTopic(topic)
        return opened
