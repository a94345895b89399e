"""Counts of an image."""

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.server.controller.image_figures import image_figures
from tests.unit.nodes.controller.clusters import broker, image_with, topic


def test_brokers_are_counted_by_fence_and_partitions_over_all_topics() -> None:
    records = [broker(1), broker(2), broker(3, fenced=True)]
    topics = [*topic("a", "ab" * 16, count=2), *topic("b", "cd" * 16, count=3)]
    image = image_with([*records, *topics])
    assert image_figures(image) == {
        "active_broker_count": 2,
        "fenced_broker_count": 1,
        "topic_count": 2,
        "partition_count": 5,
    }


def test_an_empty_image_counts_nothing() -> None:
    assert set(image_figures(MetadataImage()).values()) == {0}
