"""Metadata of an image has Kafka's codes, in every version that clients speak."""

import pytest

from splitbrain.nodes.broker.image_reading import RequestContext
from splitbrain.nodes.controller.basis.topic_names import NAME_LENGTH_MAX
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    ListedPartition,
    ListedTopic,
    MetadataRequest,
    MetadataResponse,
    TopicWanted,
)
from tests.unit.nodes.broker.answered_images import INTERNAL, OTHER, TOPICS, ask, asking

EVERY_METADATA = range(14)


def metadata(version: int, *names: str, where: RequestContext | None = None) -> MetadataResponse:
    request = MetadataRequest(topics=tuple(TopicWanted(name=name) for name in names))
    return ask(ApiKey.METADATA, request, version, where)


def by_id(*topic_ids: str, version: int = 12) -> MetadataResponse:
    wanted = tuple(TopicWanted(topic_id=each, name=None) for each in topic_ids)
    return ask(ApiKey.METADATA, MetadataRequest(topics=wanted), version)


def partitions(answered: MetadataResponse) -> tuple[ListedPartition, ...]:
    (topic,) = answered.topics
    return topic.partitions


def codes(topics: tuple[ListedTopic, ...]) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in topics}


@pytest.mark.parametrize("version", EVERY_METADATA)
def test_only_living_brokers_with_the_listener_are_told(version: int) -> None:
    answered = metadata(version, "t")
    # Broker 3 has another listener, broker 4 is fenced.
    assert [(each.node_id, each.host, each.port) for each in answered.brokers] == [
        (1, "b1", 9001),
        (2, "b2", 9002),
    ]
    assert answered.brokers[0].rack == ("r1" if version >= 1 else None)
    assert answered.cluster_id == ("c" if version >= 2 else None)


def test_any_living_broker_is_called_the_controller() -> None:
    drawn = {metadata(9, "t", where=asking(draw=each)).controller_id for each in range(50)}
    assert drawn == {1, 2, 3}
    assert metadata(9, where=asking(MetadataImage())).controller_id == -1


def test_all_topics_are_asked_for_by_null_and_first_by_nothing() -> None:
    everything = [*sorted(TOPICS)]
    assert [each.name for each in metadata(0).topics] == everything
    for version in range(1, 14):
        assert metadata(version).topics == ()
        answered = ask(ApiKey.METADATA, MetadataRequest(topics=None), version)
        assert [each.name for each in answered.topics] == everything
        assert [each.is_internal for each in answered.topics] == [
            each == INTERNAL for each in everything
        ]


@pytest.mark.parametrize("version", range(1, 14))
def test_a_partition_is_told_with_all_its_replicas(version: int) -> None:
    (found,) = partitions(metadata(version, "t"))
    assert (found.error_code, found.leader_id) == (ApiError.NONE, 1)
    assert (found.replica_nodes, found.isr_nodes) == ((1, 2), (1, 2))
    assert found.leader_epoch == (7 if version >= 7 else -1)


def test_the_first_version_calls_absent_replicas_an_error() -> None:
    (found,) = partitions(metadata(0, "with-fenced"))
    assert found.error_code == ApiError.REPLICA_NOT_AVAILABLE
    assert (found.leader_id, found.replica_nodes, found.isr_nodes) == (1, (1,), (1,))
    (found,) = partitions(metadata(0, "with-absent-isr"))
    assert found.error_code == ApiError.REPLICA_NOT_AVAILABLE
    (found,) = partitions(metadata(1, "with-fenced"))
    assert (found.error_code, found.replica_nodes) == (ApiError.NONE, (1, 4))


@pytest.mark.parametrize(
    ("name", "offline"),
    [
        ("t", ()),
        # 4 is fenced, 3 has no such listener, 9 is not registered.
        ("with-fenced", (4,)),
        ("with-absent-isr", (3, 9)),
        ("with-lost-directory", (2,)),
        ("with-foreign-directory", (2,)),
        ("with-unassigned-directory", ()),
    ],
)
def test_replicas_that_cannot_be_reached_are_offline(name: str, offline: tuple[int, ...]) -> None:
    (found,) = partitions(metadata(5, name))
    assert found.offline_replicas == offline
    (found,) = partitions(metadata(4, name))
    assert found.offline_replicas == ()


@pytest.mark.parametrize("version", EVERY_METADATA)
def test_a_leader_that_cannot_be_named_is_an_error_of_its_version(version: int) -> None:
    (nobody,) = partitions(metadata(version, "leaderless"))
    assert (nobody.error_code, nobody.leader_id) == (ApiError.LEADER_NOT_AVAILABLE, -1)
    (elsewhere,) = partitions(metadata(version, "led-elsewhere"))
    expected = ApiError.LISTENER_NOT_FOUND if version >= 6 else ApiError.LEADER_NOT_AVAILABLE
    assert (elsewhere.error_code, elsewhere.leader_id) == (expected, -1)
    (seen,) = partitions(metadata(version, "led-elsewhere", where=asking(listener=OTHER)))
    assert seen.leader_id == 3


@pytest.mark.parametrize("version", EVERY_METADATA)
def test_names_without_topics_say_why(version: int) -> None:
    long = "n" * (NAME_LENGTH_MAX + 1)
    answered = metadata(version, "t", "unknown", "a/b", "..", "", long, "unknown", INTERNAL)
    invalid = ApiError.INVALID_TOPIC_EXCEPTION
    assert codes(answered.topics) == {
        "t": ApiError.NONE,
        "unknown": ApiError.UNKNOWN_TOPIC_OR_PARTITION,
        "a/b": invalid,
        "..": invalid,
        "": invalid,
        long: invalid,
        INTERNAL: ApiError.NONE,
    }
    assert len(answered.topics) == 7
    assert {each.topic_id for each in answered.topics if each.error_code} == {NO_UUID}


def test_topics_are_told_by_id_and_names_do_not_count_then() -> None:
    answered = by_id(TOPICS["t"], "f" * 32, TOPICS["t"])
    assert [(each.name, each.topic_id, each.error_code) for each in answered.topics] == [
        ("t", TOPICS["t"], ApiError.NONE),
        (None, "f" * 32, ApiError.UNKNOWN_TOPIC_ID),
    ]
    both = (TopicWanted(name="unknown"), TopicWanted(topic_id=TOPICS["t"], name=None))
    answered = ask(ApiKey.METADATA, MetadataRequest(topics=both), 13)
    assert codes(answered.topics) == {"t": ApiError.NONE}


@pytest.mark.parametrize("version", [10, 11])
def test_versions_that_only_have_the_field_refuse_ids(version: int) -> None:
    for wanted in (TopicWanted(name=None), TopicWanted(topic_id=TOPICS["t"], name="t")):
        request = MetadataRequest(topics=(TopicWanted(name="unknown"), wanted))
        answered = ask(ApiKey.METADATA, request, version)
        assert answered.brokers == ()
        assert [(each.name, each.error_code) for each in answered.topics] == [
            ("unknown", ApiError.INVALID_REQUEST),
            (wanted.name or "", ApiError.INVALID_REQUEST),
        ]


def test_neither_name_nor_id_is_refused() -> None:
    answered = by_id(NO_UUID, version=13)
    assert answered.error_code == ApiError.INVALID_REQUEST
    assert codes(answered.topics) == {"": ApiError.INVALID_REQUEST}


def test_operations_are_told_to_those_who_ask() -> None:
    wanted = (TopicWanted(name="t"), TopicWanted(name="unknown"))
    request = MetadataRequest(
        topics=wanted,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answered = ask(ApiKey.METADATA, request, 8)
    # Kafka's codes, as bits: read 3 to describe 8, describe configs 10, alter configs 11.
    assert {each.topic_authorized_operations for each in answered.topics} == {0b110111111000}
    assert answered.cluster_authorized_operations == 0b1111110100000
    silent = metadata(8, "t")
    assert silent.topics[0].topic_authorized_operations == -(1 << 31)
    assert silent.cluster_authorized_operations == -(1 << 31)
    request = MetadataRequest(
        topics=(TopicWanted(topic_id="f" * 32, name=None),),
        include_topic_authorized_operations=True,
    )
    (unknown,) = ask(ApiKey.METADATA, request, 12).topics
    assert unknown.topic_authorized_operations == -(1 << 31)
