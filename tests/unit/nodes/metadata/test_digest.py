"""Digests of images: equal where the content is, whatever images were seen before."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

import splitbrain.nodes.metadata.machine
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import image_of
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.machine import ImageDigests
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import encode_record
from tests.unit.nodes.metadata.courses import after, at_offset, course
from tests.unit.nodes.metadata.test_image import CLUSTER, IMAGE, OTHER_ID, TOPIC_ID, change


def content(image: MetadataImage) -> tuple[bytes, ...]:
    return tuple(map(encode_record, image_records(image)))


@pytest.mark.parametrize("seed", range(5))
def test_who_saw_all_images_says_what_one_says_who_sees_the_last(seed: int) -> None:
    running = ImageDigests()
    seen: list[tuple[tuple[bytes, ...], str]] = []
    for offset, image in enumerate(course(seed, 200)[1]):
        digest = running.of(image)
        loaded = image_of(list(image_records(image)), at_offset(offset))
        assert digest == ImageDigests().of(loaded)
        seen.append((content(image), digest))
    changes = 0
    for (before, digest_before), (later, digest_later) in pairwise(seen):
        assert (before == later) == (digest_before == digest_later)
        changes += before != later
    assert changes > 100


@pytest.mark.parametrize(
    "record",
    [
        change(1, isr=(1,)),
        change(0, leader=2),
        records.ConfigRecord(2, "t", "retention.ms", "2"),
        records.TopicRecord("u", OTHER_ID),
        records.RemoveTopicRecord(TOPIC_ID),
        records.ProducerIdsRecord(broker_id=1, next_producer_id=2000),
        records.FeatureLevelRecord("group.version", 1),
    ],
)
def test_each_part_counts(record: MetadataRecord) -> None:
    digests = ImageDigests()
    assert digests.of(IMAGE) != digests.of(after(IMAGE, [record], len(CLUSTER)))
    assert digests.of(IMAGE) == ImageDigests().of(IMAGE)


def test_only_topics_that_changed_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    image = after(IMAGE, [records.TopicRecord("u", OTHER_ID)], len(CLUSTER))
    digests, read = ImageDigests(), list[str]()
    records_of = splitbrain.nodes.metadata.machine.topic_records

    def noted(topic: TopicImage) -> Iterator[MetadataRecord]:
        read.append(topic.name)
        return records_of(topic)

    monkeypatch.setattr(splitbrain.nodes.metadata.machine, "topic_records", noted)
    digests.of(image)
    digests.of(after(image, [change(1, isr=(1,))], len(CLUSTER) + 1))
    assert read == ["t", "u", "t"]
