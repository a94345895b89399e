"""Brokers that a client is told of, and where: those of an image with the client's listener.

Source: Kafka 4.3.1's KRaftMetadataCache.
"""

from collections.abc import Iterator
from typing import Final

from splitbrain.nodes.controller.basis.registrations import is_online
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.metadata.records import AdvertisedListener, RegisterBrokerRecord
from splitbrain.nodes.quorum.random_source import RandomSource

#: Where there is no broker to name.
NOBODY: Final = -1


def endpoint_on(broker: RegisterBrokerRecord, listener: str) -> AdvertisedListener | None:
    """Where the broker is reached; None if it has no such listener."""
    return next((each for each in broker.end_points if each.name == listener), None)


def is_alive_on(image: MetadataImage, broker_id: int, listener: str) -> bool:
    """Whether the broker is registered, not fenced, and has the listener."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and endpoint_on(broker, listener) is not None


def brokers_on(
    image: MetadataImage, listener: str, *, fenced_too: bool = False
) -> Iterator[tuple[RegisterBrokerRecord, AdvertisedListener]]:
    """Brokers that have the listener, by id; fenced ones only if wanted."""
    for _, broker in sorted(image.brokers.items()):
        endpoint = endpoint_on(broker, listener)
        if endpoint is not None and (fenced_too or not broker.fenced):
            yield broker, endpoint


def some_alive_broker(image: MetadataImage, random: RandomSource) -> int:
    """Any broker that is not fenced, whatever its listeners; what clients take for the controller.

    No client reaches a controller: whichever broker it asks hands the request on.
    """
    alive = sorted(each.broker_id for each in image.brokers.values() if not each.fenced)
    return alive[int(random.random() * len(alive))] if alive else NOBODY


def offline_replicas(image: MetadataImage, state: PartitionState, listener: str) -> tuple[int, ...]:
    """Replicas that cannot be reached on the listener, or whose directory is lost."""
    return tuple(
        broker_id
        for broker_id, directory in zip(state.replicas, state.directories, strict=True)
        if not is_alive_on(image, broker_id, listener)
        or not is_online(image.brokers[broker_id], directory)
    )


def leader_on(image: MetadataImage, state: PartitionState, listener: str) -> int:
    """The leader if it has the listener, fenced or not, else NOBODY."""
    broker = image.brokers.get(state.leader)
    has_it = broker is not None and endpoint_on(broker, listener) is not None
    return state.leader if has_it else NOBODY
