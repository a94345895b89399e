"""CreateTopics: each refusal in Kafka's words, and the records of what is accepted."""

import random

import msgspec
import pytest

from splitbrain.nodes.controller.basis.decisions import Decision
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.topics.create_topics import create_topics
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from splitbrain.nodes.wire.declared import NO_UUID, kind_of
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    ConfigValue,
    CreatableTopic,
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ReplicaAssignment,
)
from tests.unit.nodes.controller.clusters import (
    applied,
    broker,
    directory_of,
    image_with,
    partition,
    topic,
    view_of,
)

TOPIC_ID = "ab" * 16
IMAGE = image_with(
    [
        broker(1),
        broker(2, directories=2),
        broker(3, directories=0),
        broker(4, fenced=True),
        broker(5, shutting_down=True),
        *topic("old.topic", TOPIC_ID),
    ]
)


def wanted(
    name: str = "t",
    partitions: int = 1,
    factor: int = 1,
    assignments: dict[int, tuple[int, ...]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            ReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in (assignments or {}).items()
        ),
        configs=tuple(
            ConfigValue(name=config.replace("_", "."), value=value)
            for config, value in configs.items()
        ),
    )


def manual(*replicas: tuple[int, ...]) -> CreatableTopic:
    return wanted(partitions=-1, factor=-1, assignments=dict(enumerate(replicas)))


def decided(
    *topics: CreatableTopic,
    image: MetadataImage = IMAGE,
    settings: ControllerSettings | None = None,
    validate_only: bool = False,
) -> tuple[Decision, tuple[CreatedTopic, ...]]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    decision = create_topics(view_of(image, settings=settings), request, 7)
    assert isinstance(decision.answer, CreateTopicsResponse)
    return decision, decision.answer.topics


def test_a_topic_its_configs_and_its_partitions_come_in_this_order() -> None:
    decision, (answer,) = decided(
        wanted("t", 2, 2, retention_ms="5", cleanup_policy="compact"), image=IMAGE
    )
    kinds = [type(record).__name__ for record in decision.records]
    assert kinds == ["TopicRecord", *["ConfigRecord"] * 2, *["PartitionRecord"] * 2]
    assert decision.records[0] == records.TopicRecord("t", answer.topic_id)
    assert decision.records[1:3] == (
        records.ConfigRecord(2, "t", "retention.ms", "5"),
        records.ConfigRecord(2, "t", "cleanup.policy", "compact"),
    )
    assert (answer.num_partitions, answer.replication_factor) == (2, 2)
    assert (answer.error_code, answer.error_message) == (0, None)
    made = applied(IMAGE, decision).topics.named("t")
    assert made is not None
    assert [len(each.replicas) for each in made.partitions] == [2, 2]


def test_active_replicas_are_in_sync_and_the_first_of_them_leads() -> None:
    decision, _ = decided(manual((4, 5, 2, 3, 1)))
    assert decision.records[1] == partition(
        decision.records[0].topic_id,  # pyright: ignore[reportAttributeAccessIssue]
        0,
        (4, 5, 2, 3, 1),
        isr=(2, 3, 1),
        leader=2,
        directories=(
            directory_of(4),
            directory_of(5),
            UNASSIGNED_DIRECTORY,
            MIGRATING_DIRECTORY,
            directory_of(1),
        ),
    )


def test_the_answer_tells_all_configs_sorted_with_their_sources() -> None:
    cluster = records.ConfigRecord(4, "", "log.retention.hours", "2")
    image = image_with([broker(1), cluster])
    _, (answer,) = decided(wanted(cleanup_policy=" compact"), image=image)
    assert answer.configs is not None
    configs = {config.name: (config.value, config.config_source) for config in answer.configs}
    assert list(configs) == sorted(configs)
    assert len(configs) == 33
    assert configs["cleanup.policy"] == (" compact", 1)
    assert configs["retention.ms"] == ("7200000", 3)
    assert configs["min.cleanable.dirty.ratio"] == ("0.5", 5)
    assert not any(config.read_only or config.is_sensitive for config in answer.configs)


def test_minus_one_stands_for_the_defaults() -> None:
    settings = ControllerSettings(num_partitions=3, default_replication_factor=2)
    _, (answer,) = decided(wanted(partitions=-1, factor=-1), settings=settings)
    assert (answer.num_partitions, answer.replication_factor) == (3, 2)


def test_validating_answers_the_same_and_writes_nothing() -> None:
    creation = (wanted("a", 2), wanted("b", 0), wanted("a b"))
    decision, answers = decided(*creation)
    validated, same = decided(*creation, validate_only=True)
    assert same == answers
    assert decision.records
    assert validated.records == ()


PLACEMENT = "Unable to replicate the partition {} time(s): "
TO_LEAD = "All brokers specified in the manual partition assignment for partition {} are fenced or "
TO_LEAD += "in controlled shutdown."
MANUAL = "The manual partition assignment includes "
SET_TO_DEFAULT = "A manual partition assignment was specified, but {} was not set to -1."
REFUSALS = {
    ApiError.INVALID_TOPIC_EXCEPTION: [
        (
            wanted("a b"),
            (
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
                "alphanumerics, '.', '_' and '-'"
            ),
        ),
        (wanted("old_topic"), "Topic 'old_topic' collides with existing topic: old.topic"),
    ],
    ApiError.TOPIC_ALREADY_EXISTS: [(wanted("old.topic"), "Topic 'old.topic' already exists.")],
    ApiError.INVALID_REQUEST: [
        (
            wanted("__cluster_metadata"),
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (wanted(partitions=-1, assignments={0: (1,)}), SET_TO_DEFAULT.format("replication factor")),
        (wanted(factor=-1, assignments={0: (1,)}), SET_TO_DEFAULT.format("numPartitions")),
    ],
    ApiError.INVALID_CONFIG: [
        (
            wanted(retention_ms=None, segment_ms=None),
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (wanted(no_such="1"), "Unknown topic config name: no.such"),
        (
            wanted(retention_ms="x"),
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
    ApiError.INVALID_REPLICA_ASSIGNMENT: [
        (manual(()), MANUAL + "an empty replica list."),
        (manual((1, 9)), MANUAL + "broker 9, but no such broker is registered."),
        (manual((1, 2, 1)), MANUAL + "the broker 1 more than once."),
        (
            manual((1, 2), (1,)),
            MANUAL + "a partition with 1 replica(s), but this is not consistent with previous "
            "partitions, which have 2 replica(s).",
        ),
        (manual((1,), (4,)), TO_LEAD.format(1)),
        (manual((5, 4)), TO_LEAD.format(0)),
        (
            wanted(partitions=-1, factor=-1, assignments={0: (1,), 2: (1,)}),
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            msgspec.structs.replace(manual((1,)), assignments=manual((1,)).assignments * 2),
            "Found multiple manual partition assignments for partition 0",
        ),
    ],
    ApiError.INVALID_REPLICATION_FACTOR: [
        *(
            (
                wanted(factor=factor),
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
            for factor in (0, -2)
        ),
        (
            wanted(factor=5),
            PLACEMENT.format(5) + "The target replication factor of 5 cannot be reached because "
            "only 4 broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        ),
    ],
    ApiError.INVALID_PARTITIONS: [
        (wanted(partitions=each), "Number of partitions was set to an invalid non-positive value.")
        for each in (0, -2)
    ],
}


@pytest.mark.parametrize(
    ("creation", "code", "message"),
    [(creation, code, message) for code, rows in REFUSALS.items() for creation, message in rows],
)
def test_a_topic_is_refused_and_the_others_are_made(
    creation: CreatableTopic, code: ApiError, message: str
) -> None:
    decision, answers = decided(creation, wanted("other"))
    found = {answer.name: answer for answer in answers}
    refused = found[creation.name]
    assert (refused.error_code, refused.error_message) == (code, message)
    assert (refused.topic_id, refused.num_partitions, refused.configs) == (NO_UUID, -1, ())
    assert found["other"].error_code == 0
    image = applied(IMAGE, decision)
    assert set(image.topics.ids_by_name) == {"old.topic", "other"}


def test_no_topic_is_made_where_all_brokers_are_fenced() -> None:
    _, (answer,) = decided(wanted(), image=image_with([broker(1, fenced=True)]))
    assert answer.error_code == ApiError.INVALID_REPLICATION_FACTOR
    assert answer.error_message == PLACEMENT.format(1) + (
        "All brokers are currently fenced, or have all their log directories cordoned."
    )


def test_no_replica_goes_to_a_broker_whose_directories_are_all_cordoned() -> None:
    image = image_with(
        [broker(1, cordoned=[0]), broker(2, directories=2, cordoned=[1]), broker(3, cordoned=[])]
    )
    decision, _ = decided(wanted("t", 6, 2), image=image)
    made = applied(image, decision).topics.named("t")
    assert made is not None
    assert {number for each in made.partitions for number in each.replicas} == {2, 3}


def test_a_name_that_is_asked_twice_is_refused_once() -> None:
    decision, answers = decided(wanted("a"), wanted("b"), wanted("a", 3), wanted("a"))
    assert [(each.name, each.error_code, each.error_message) for each in answers] == [
        ("b", 0, None),
        ("a", ApiError.INVALID_REQUEST, "Duplicate topic name."),
    ]
    assert list(applied(IMAGE, decision).topics.ids_by_name) == ["old.topic", "b"]


def test_names_of_one_request_do_not_collide() -> None:
    _, answers = decided(wanted("a.b"), wanted("a_b"))
    assert [each.error_code for each in answers] == [0, 0]


def test_the_last_of_two_values_of_a_config_counts() -> None:
    creation = wanted(retention_ms="5")
    twice = msgspec.structs.replace(
        creation, configs=(*creation.configs, ConfigValue(name="retention.ms", value="6"))
    )
    decision, _ = decided(twice)
    assert applied(IMAGE, decision).configs[(2, "t")] == {"retention.ms": "6"}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((6, 5), "Excessively large number of partitions per request."),
        ((5, 5), "Unable to perform excessively large batch operation."),
    ],
)
def test_too_many_records_refuse_the_whole_request(sizes: tuple[int, ...], message: str) -> None:
    creation = [wanted(name, size) for name, size in zip("ab", sizes, strict=True)]
    settings = ControllerSettings(records_per_batch_max=10)
    decision, answers = decided(*creation, settings=settings)
    assert decision.records == ()
    assert [(each.name, each.error_code, each.error_message) for each in answers] == [
        (each.name, ApiError.POLICY_VIOLATION, message) for each in creation
    ]
    decision, _ = decided(wanted("a", 9), settings=settings)
    assert len(decision.records) == 10, "as many as are allowed"


def test_topic_ids_differ_within_a_request_and_from_those_that_are_there() -> None:
    image = IMAGE
    for name in "tu":
        request = CreateTopicsRequest(topics=tuple(wanted(f"{name}{each}") for each in range(3)))
        image = applied(image, create_topics(view_of(image, random.Random(3)), request, 7))
    assert len(image.topics.by_id) == 7


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_can_say_the_answer(version: int) -> None:
    decision, _ = decided(wanted("a", retention_ms="5"), wanted("a b"))
    kind_of(CreateTopicsResponse, flexible=version >= 5).write(decision.answer, version, [])


def test_who_is_fenced_is_on_no_way_out_any_more_and_may_hold_replicas() -> None:
    gone, leaving = broker(2, fenced=True, shutting_down=True), broker(3, shutting_down=True)
    image = image_with([broker(1), gone, leaving])
    decision, _ = decided(wanted("t", 1, 2), image=image)
    (placed,) = [each for each in decision.records if isinstance(each, records.PartitionRecord)]
    assert (placed.replicas, placed.isr) == ((1, 2), (1,))
