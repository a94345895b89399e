"""A cluster as a generator of requests sees it: what two clusters have alike, by names. Pure.

Differences between them (topic ids, broker epochs) are looked up for each request, so that
the same draws build the same request of each.
"""

from dataclasses import dataclass
from typing import Final

from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.records import RegisterBrokerRecord

#: Brokers that no process stands behind.
BROKER_IDS: Final = tuple(range(11, 17))
#: Never registered.
NOBODY: Final = 99
#: Topics whose replicas a controller chose are called so: no two choose alike.
CHOSEN_PREFIX: Final = "chosen-"
#: An id that no topic has.
NO_TOPIC_ID: Final = f"{0xBAD:032x}"


@dataclass(frozen=True)
class Known:
    """Committed state of one cluster."""

    cluster_id: str
    image: MetadataImage

    @property
    def topics(self) -> tuple[TopicImage, ...]:
        """Those whose replicas were chosen by hand, by name."""
        return tuple(
            topic for topic in self._all_topics if not topic.name.startswith(CHOSEN_PREFIX)
        )

    @property
    def chosen_topics(self) -> tuple[TopicImage, ...]:
        """Those whose replicas the controller chose, by name."""
        return tuple(topic for topic in self._all_topics if topic.name.startswith(CHOSEN_PREFIX))

    @property
    def _all_topics(self) -> list[TopicImage]:
        return sorted(self.image.topics.by_id.values(), key=lambda topic: topic.name)

    @property
    def brokers(self) -> tuple[RegisterBrokerRecord, ...]:
        return tuple(broker for _, broker in sorted(self.image.brokers.items()))

    @property
    def unfenced(self) -> tuple[int, ...]:
        return tuple(
            broker.broker_id
            for broker in self.brokers
            if not broker.fenced and not broker.in_controlled_shutdown
        )

    def is_leaving(self, broker_id: int) -> bool:
        """Whether the broker has begun to go, or has gone."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def epoch(self, broker_id: int) -> int:
        """The broker's, or one that nobody has."""
        broker = self.image.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    @property
    def last_offset(self) -> int:
        """Return the applied offset of a broker that has applied all."""
        return self.image.provenance.last_offset


def directory(broker_id: int, number: int) -> str:
    return f"d{broker_id:015x}{number:016x}"


def incarnation(broker_id: int, life: int) -> str:
    return f"e{broker_id:015x}{life:016x}"
