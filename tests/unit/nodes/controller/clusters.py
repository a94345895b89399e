"""Small clusters, views of them, and what a decision makes of them."""

import random
from collections.abc import Iterable, Sequence

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.quorum.random_source import RandomSource


class FixedFraction:
    """A source that always draws the same."""

    def __init__(self, fraction: float) -> None:
        self._fraction = fraction

    def random(self) -> float:
        return self._fraction


def directory_of(broker_id: int, number: int = 0) -> str:
    return f"{(broker_id + 1) * 1000 + number:032x}"


def broker(
    broker_id: int,
    *,
    rack: str | None = None,
    fenced: bool = False,
    shutting_down: bool = False,
    directories: int = 1,
    cordoned: Sequence[int] | None = None,
    features: tuple[records.SupportedFeature, ...] = (
        records.SupportedFeature("metadata.version", 7, 30),
        records.SupportedFeature("transaction.version", 0, 2),
    ),
) -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=f"{broker_id:032x}",
        broker_epoch=broker_id,
        end_points=(),
        features=features,
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=shutting_down,
        log_dirs=tuple(directory_of(broker_id, number) for number in range(directories)),
        cordoned_log_dirs=(
            None
            if cordoned is None
            else tuple(directory_of(broker_id, number) for number in cordoned)
        ),
    )


def image_with(some: Iterable[MetadataRecord]) -> MetadataImage:
    start = image_after(MetadataImage(), [records.FeatureLevelRecord("metadata.version", 30)])
    return image_after(start, some)


def image_after(image: MetadataImage, some: Iterable[MetadataRecord]) -> MetadataImage:
    delta = MetadataDelta(image)
    last = image.provenance.last_offset
    for record in some:
        delta.replay(record)
        last += 1
    return delta.apply(Provenance(Offset(last), Epoch(1), 1000 + last))


def applied(image: MetadataImage, decision: Decision) -> MetadataImage:
    return image_after(image, decision.records)


def view_of(
    image: MetadataImage,
    source: RandomSource | None = None,
    settings: ControllerSettings | None = None,
) -> View:
    return View(
        image=image,
        next_offset=image.provenance.end_offset,
        now=Microseconds(0),
        settings=settings or ControllerSettings(),
        contacts=Contacts(),
        random=source or random.Random(1),
        node_id=NodeId(3),
    )


def partition(
    topic_id: str, number: int, replicas: tuple[int, ...], **fields: object
) -> records.PartitionRecord:
    whole = {
        "partition_id": number,
        "topic_id": topic_id,
        "replicas": replicas,
        "isr": replicas,
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": replicas[0],
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": tuple(directory_of(each) for each in replicas),
    }
    return records.PartitionRecord(**(whole | fields))  # pyright: ignore[reportArgumentType]


def topic(
    name: str, topic_id: str, replicas: tuple[int, ...] = (1, 2), count: int = 1
) -> list[MetadataRecord]:
    return [
        records.TopicRecord(name, topic_id),
        *(partition(topic_id, number, replicas) for number in range(count)),
    ]
