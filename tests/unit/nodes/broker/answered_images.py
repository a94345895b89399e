"""One image in which everything occurs that an answer tells apart, and who asks about it."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from splitbrain.nodes.broker.image_reading import RequestContext
from splitbrain.nodes.broker.serving import answer
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import decode_reply, encode_reply
from tests.unit.nodes.controller.clusters import broker, image_with, partition

CLIENTS, OTHER = "CLIENTS", "OTHER"
INTERNAL = "__consumer_offsets"
TOPICS = {
    name: f"{number:032x}"
    for number, name in enumerate(
        (
            "t",
            INTERNAL,
            "leaderless",
            "led-elsewhere",
            "with-fenced",
            "with-absent-isr",
            "with-lost-directory",
            "with-foreign-directory",
            "with-unassigned-directory",
            "two",
            "three",
        ),
        start=16,
    )
}


def directory_of(broker_id: int) -> str:
    return broker(broker_id).log_dirs[0]


def topic(
    name: str,
    replicas: Sequence[int],
    *,
    leader: int,
    directories: Sequence[str] = (),
    partitions: int = 1,
) -> list[MetadataRecord]:
    """A topic whose partitions are all alike."""
    lie = tuple(directories) or tuple(directory_of(each) for each in replicas)
    return [
        records.TopicRecord(name, TOPICS[name]),
        *(
            partition(
                TOPICS[name],
                number,
                tuple(replicas),
                leader=leader,
                leader_epoch=7,
                partition_epoch=3,
                directories=lie,
            )
            for number in range(partitions)
        ),
    ]


def registered(
    broker_id: int, listener: str, *, rack: str | None = None, fenced: bool = False
) -> records.RegisterBrokerRecord:
    """A broker that is reached on one listener."""
    endpoint = records.AdvertisedListener(listener, f"b{broker_id}", 9000 + broker_id, 0)
    return msgspec.structs.replace(
        broker(broker_id, rack=rack, fenced=fenced), end_points=(endpoint,)
    )


def image() -> MetadataImage:
    """Brokers 1 and 2 serve clients, 3 is reached elsewhere, 4 is fenced; 9 is nobody."""
    return image_with(
        [
            registered(1, CLIENTS, rack="r1"),
            registered(2, CLIENTS),
            registered(3, OTHER),
            registered(4, CLIENTS, fenced=True),
            *topic("t", (1, 2), leader=1),
            *topic(INTERNAL, (1,), leader=1),
            *topic("leaderless", (1, 2), leader=-1),
            *topic("led-elsewhere", (3, 1), leader=3),
            *topic("with-fenced", (1, 4), leader=1),
            *topic("with-absent-isr", (1, 3, 9), leader=1),
            *topic(
                "with-lost-directory", (1, 2), leader=1,
                directories=(directory_of(1), LOST_DIRECTORY),
            ),
            *topic(
                "with-foreign-directory", (1, 2), leader=1,
                directories=(directory_of(1), "e" * 32),
            ),
            *topic(
                "with-unassigned-directory", (1, 2), leader=1,
                directories=(directory_of(1), UNASSIGNED_DIRECTORY),
            ),
            *topic("two", (1, 2), leader=2, partitions=2),
            *topic("three", (2, 1), leader=2, partitions=3),
        ]
    )  # fmt: skip


def asking(
    some: MetadataImage | None = None, listener: str = CLIENTS, draw: int = 0
) -> RequestContext:
    return RequestContext(
        image=some or image(), cluster_id="c", listener=listener, random=random.Random(draw)
    )


def carried(key: ApiKey, version: int, message: Any) -> Any:
    """As the client reads it."""
    frame = encode_reply(message, RequestHeader(key, version, 1, None))
    return decode_reply(frame[4:], key, version).message


def ask(key: ApiKey, request: Any, version: int, where: RequestContext | None = None) -> Any:
    return carried(key, version, answer(where or asking(), key, request, version, is_fenced=False))
