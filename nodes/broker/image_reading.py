"""The image as answers read it: for whom, on which listener, and which brokers there are.

Source: Kafka 4.3.1's KRaftMetadataCache.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.controller.basis.registrations import is_online
from splitbrain.nodes.controller.basis.topic_names import check_topic_name
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.metadata.records import AdvertisedListener, RegisterBrokerRecord
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.errors import ApiError

#: Where there is no broker to name.
NOBODY: Final = -1
#: Topics of the brokers' own, by name.
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
#: Bits of what may be done where everybody may do everything, by Kafka's codes of operations: read,
#: write, create, delete, alter, describe, describe and alter configs.
ALL_TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))


class RequestContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request came in, and what is known there."""

    image: MetadataImage
    cluster_id: str
    #: Name of the listener that the client is connected to.
    listener: str
    #: For the broker that is named as controller.
    random: RandomSource


def is_internal(name: str) -> bool:
    """Whether the topic is the brokers' own."""
    return name in _INTERNAL


def unknown_topic_code(name: str) -> ApiError:
    """Why a name has no topic: there is none, or there can be none."""
    try:
        check_topic_name(name)
    except Refusal as refusal:
        return refusal.code
    return ApiError.UNKNOWN_TOPIC_OR_PARTITION


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
