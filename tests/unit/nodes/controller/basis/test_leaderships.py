"""Counts of partitions by leader follow the image, whatever way it took."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.leaderships import (
    Leaderships,
    PartitionAt,
    partitions_in_directory,
    partitions_in_sync_on,
    partitions_off_balance,
    partitions_without_leader,
)
from splitbrain.nodes.metadata.image import MetadataImage
from tests.unit.nodes.controller.led_cluster import Cluster, directory
from tests.unit.nodes.metadata.courses import course


def counted(image: MetadataImage) -> Counter[int]:
    return Counter(
        state.leader for topic in image.topics.by_id.values() for state in topic.partitions
    )


@given(st.integers(0, 1000), st.lists(st.integers(0, 119), max_size=8))
def test_counts_are_those_of_the_image_that_is_asked_about(seed: int, visits: list[int]) -> None:
    _, images = course(seed, 120)
    leaderships = Leaderships()
    for number in visits:
        image = images[min(number, len(images) - 1)]
        expected = counted(image)
        for leader in range(-1, 7):
            assert leaderships.count(image, leader) == expected[leader]
        assert leaderships.leaderless_count(image) == expected[-1]


def numbers(found: list[PartitionAt]) -> list[int]:
    return [at.number for at in found]


def test_scans_find_what_they_say() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (2, 1), (2,))
    cluster.change(1, leader=-1, isr=(2,))
    cluster.change(0, leader=2)
    image = cluster.image
    assert numbers(list(partitions_in_sync_on(image, 1))) == [0]
    assert numbers(list(partitions_in_sync_on(image, 2))) == [0, 1, 2]
    assert numbers(list(partitions_without_leader(image))) == [1]
    assert numbers(list(partitions_off_balance(image))) == [0, 1]
    assert numbers(list(partitions_in_directory(image, directory(1)))) == [0, 1]
