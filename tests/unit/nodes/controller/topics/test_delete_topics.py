"""DeleteTopics and CreatePartitions."""

import pytest

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.topics.create_partitions import create_partitions
from splitbrain.nodes.controller.topics.delete_topics import delete_topics
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    EnlargedTopic,
    NewPartitionAssignment,
    TopicToDelete,
    TopicToEnlarge,
)
from tests.unit.nodes.controller.clusters import (
    applied,
    broker,
    directory_of,
    image_with,
    topic,
    view_of,
)

A, B, C = "a0" * 16, "b0" * 16, "c0" * 16
IMAGE = image_with(
    [
        broker(1),
        broker(2),
        broker(3),
        broker(4, fenced=True),
        broker(5, shutting_down=True),
        *topic("a", A, (1, 2), 2),
        *topic("b", B, (1,)),
        records.ConfigRecord(2, "a", "retention.ms", "5"),
    ]
)
UNKNOWN_NAME = (
    ApiError.UNKNOWN_TOPIC_OR_PARTITION,
    "This server does not host this topic-partition.",
)
UNKNOWN_ID = (ApiError.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
SUPPLIED = (
    ApiError.INVALID_REQUEST,
    "The provided topic name maps to an ID that was already supplied.",
)
BOTH = (ApiError.INVALID_REQUEST, "You may not specify both topic name and topic id.")
NEITHER = (ApiError.INVALID_REQUEST, "Neither topic name nor id were specified.")
DONE = (ApiError.NONE, None)


def item(name: str | None = None, topic_id: str = NO_UUID) -> TopicToDelete:
    return TopicToDelete(name=name, topic_id=topic_id)


def twice(what: str) -> tuple[ApiError, str]:
    return ApiError.INVALID_REQUEST, f"Duplicate topic {what}."


@pytest.mark.parametrize(
    ("entry", "answers", "left"),
    [
        ([item("a"), item(None, B)], [("a", A, *DONE), ("b", B, *DONE)], set[str]()),
        ([item("x")], [("x", NO_UUID, *UNKNOWN_NAME)], {"a", "b"}),
        ([item("")], [("", NO_UUID, *UNKNOWN_NAME)], {"a", "b"}),
        ([item(None, C)], [(None, C, *UNKNOWN_ID)], {"a", "b"}),
        ([item(), item()], [(None, NO_UUID, *NEITHER)] * 2, {"a", "b"}),
        ([item("a", A), item("b")], [("a", A, *BOTH), ("b", B, *DONE)], {"a"}),
        (
            [item("a"), item("b"), item("a"), item("a")],
            [("a", NO_UUID, *twice("name")), ("b", B, *DONE)],
            {"a"},
        ),
        ([item(None, A), item(None, A)], [(None, A, *twice("id"))], {"a", "b"}),
        ([item("a"), item(None, A)], [("a", A, *SUPPLIED)], {"a", "b"}),
        ([item(None, A), item("a")], [("a", A, *SUPPLIED)], {"a", "b"}),
        (
            [item(None, A), item("a"), item(None, A)],
            [(None, A, *twice("id")), ("a", A, *SUPPLIED)],
            {"a", "b"},
        ),
        (
            [item(None, A), item("a"), item("a")],
            [("a", A, *DONE), ("a", NO_UUID, *twice("name"))],
            {"b"},
        ),
    ],
)
def test_topics_are_deleted_by_name_or_by_id(
    entry: list[TopicToDelete],
    answers: list[tuple[str | None, str, ApiError, str | None]],
    left: set[str],
) -> None:
    request = DeleteTopicsRequest(topics=tuple(entry), timeout_ms=1)
    decision = delete_topics(view_of(IMAGE), request, 6)
    assert decision.answer == DeleteTopicsResponse(
        throttle_time_ms=0,
        responses=tuple(
            DeletedTopic(name=name, topic_id=topic_id, error_code=code, error_message=message)
            for name, topic_id, code, message in answers
        ),
    )
    image = applied(IMAGE, decision)
    assert set(image.topics.ids_by_name) == left
    assert ((2, "a") in image.configs) == ("a" in left)


def test_older_versions_name_topics() -> None:
    request = DeleteTopicsRequest(topic_names=("a", "x"), timeout_ms=1)
    decision = delete_topics(view_of(IMAGE), request, 5)
    assert decision.records == (records.RemoveTopicRecord(A),)


def test_topics_beyond_the_limit_are_refused() -> None:
    request = DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=1)
    settings = ControllerSettings(records_per_batch_max=1)
    decision = delete_topics(view_of(IMAGE, settings=settings), request, 5)
    assert decision.records == (records.RemoveTopicRecord(A),)
    assert isinstance(decision.answer, DeleteTopicsResponse)
    assert [each.error_code for each in decision.answer.responses] == [
        ApiError.NONE,
        ApiError.POLICY_VIOLATION,
    ]


def more(name: str, count: int, *replicas: tuple[int, ...], ours: bool = True) -> TopicToEnlarge:
    chosen = tuple(NewPartitionAssignment(broker_ids=each) for each in replicas)
    return TopicToEnlarge(
        name=name, count=count, assignments=None if ours and not chosen else chosen
    )


def enlarged(
    *topics: TopicToEnlarge,
    image: MetadataImage = IMAGE,
    validate_only: bool = False,
    records_max: int = 10_000,
) -> tuple[MetadataImage, tuple[EnlargedTopic, ...]]:
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1, validate_only=validate_only)
    settings = ControllerSettings(records_per_batch_max=records_max)
    decision = create_partitions(view_of(image, settings=settings), request, 3)
    assert isinstance(decision.answer, CreatePartitionsResponse)
    if validate_only:
        assert decision.records == ()
    return applied(image, decision), decision.answer.results


def test_partitions_are_added_with_the_replication_factor_of_the_others() -> None:
    image, (answer,) = enlarged(more("a", 5))
    assert (answer.error_code, answer.error_message) == (0, None)
    grown = image.topics.by_id[A].partitions
    assert grown[:2] == IMAGE.topics.by_id[A].partitions
    assert [len(each.replicas) for each in grown] == [2] * 5


def test_partitions_are_added_where_the_caller_wants_them() -> None:
    image, _ = enlarged(more("a", 3, (4, 3)))
    added = image.topics.by_id[A].partitions[2]
    assert (added.replicas, added.isr, added.leader) == ((4, 3), (3,), 3)
    assert added.directories == (directory_of(4), directory_of(3))


def test_validating_partitions_writes_nothing() -> None:
    image, (answer,) = enlarged(more("a", 3), validate_only=True)
    assert answer.error_code == 0
    assert image == IMAGE


ATTEMPTED = "Attempted to add {} additional partition(s), but only {} assignment(s) were specified."
MANUAL = "The manual partition assignment includes "
REFUSALS: dict[ApiError, list[tuple[TopicToEnlarge, str | None]]] = {
    ApiError.UNKNOWN_TOPIC_OR_PARTITION: [(more("x", 3), None)],
    ApiError.INVALID_PARTITIONS: [
        (more("a", 2), "Topic already has 2 partition(s)."),
        (more("a", 1), "The topic a currently has 2 partition(s); 1 would not be an increase."),
    ],
    ApiError.INVALID_REPLICA_ASSIGNMENT: [
        (more("a", 4, (1, 2)), ATTEMPTED.format(2, 1)),
        (more("a", 3, ours=False), ATTEMPTED.format(1, 0)),
        (
            more("a", 3, (1,)),
            MANUAL + "a partition with 1 replica(s), but this is not consistent with previous "
            "partitions, which have 2 replica(s).",
        ),
        (more("a", 3, (1, 1)), MANUAL + "the broker 1 more than once."),
        (
            more("a", 4, (1, 2), (4, 5)),
            (
                "All brokers specified in the manual partition assignment for partition 3 are "
                "fenced or in controlled shutdown."
            ),
        ),
    ],
    ApiError.POLICY_VIOLATION: [
        (more("a", 9), "Unable to perform excessively large batch operation.")
    ],
}


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [(entry, code, message) for code, rows in REFUSALS.items() for entry, message in rows],
)
def test_partitions_are_refused_whole(
    entry: TopicToEnlarge, code: ApiError, message: str | None
) -> None:
    image, answers = enlarged(entry, more("b", 2), records_max=6)
    assert [(each.error_code, each.error_message) for each in answers] == [(code, message), DONE]
    assert len(image.topics.by_id[A].partitions) == 2
    assert len(image.topics.by_id[B].partitions) == 2


def test_no_partition_is_added_where_all_brokers_are_fenced() -> None:
    image = image_with([broker(1, fenced=True), *topic("b", B, (1,))])
    _, (answer,) = enlarged(more("b", 2), image=image)
    assert answer.error_code == ApiError.INVALID_REPLICATION_FACTOR
    assert answer.error_message == (
        "All brokers are currently fenced, or have all their log directories cordoned."
    )


def test_a_topic_that_is_named_twice_is_not_enlarged() -> None:
    image, answers = enlarged(more("a", 3), more("a", 4), more("b", 2))
    assert [(each.name, each.error_code, each.error_message) for each in answers] == [
        ("a", ApiError.INVALID_REQUEST, "Duplicate topic name."),
        ("b", *DONE),
    ]
    assert len(image.topics.by_id[A].partitions) == 2


def test_a_topic_without_partitions_cannot_grow() -> None:
    _, (answer,) = enlarged(more("e", 2), image=image_with([records.TopicRecord("e", A)]))
    assert answer.error_code == ApiError.UNKNOWN_SERVER_ERROR
