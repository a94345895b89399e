"""CreateTopics: each topic for itself, all that are accepted in one batch.

A topic's record comes first, then its configs, then its partitions. Two new topics whose names
differ only in '.' and '_' are both accepted if one request asks for them: only what is there
already is looked at, as in Kafka.

Source: a real controller's replication control and its API layer; KIP-464 (defaults), KIP-525
(configs in the answer).
"""

from collections import Counter
from collections.abc import Container
from typing import Final

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View, bad_request
from splitbrain.nodes.controller.basis.topic_names import check_topic_name, colliding_topic
from splitbrain.nodes.controller.configs.config_changes import (
    ConfigChange,
    ConfigOperation,
    changed_configs,
)
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.controller.configs.effective_configs import effective_configs
from splitbrain.nodes.controller.partitions.assignments import (
    check_assignment,
    check_chosen_isr,
    new_partition,
    place_replicas,
)
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import ConfigRecord, MetadataRecord, TopicRecord
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.apis import METADATA_TOPIC
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    CreatableTopic,
    CreatedTopic,
    CreatedTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ReplicaAssignment,
)

#: Stands for the default, and for what a manual assignment says.
_UNSAID: Final = -1
_WORDS: Final = 4
_WORD_BITS: Final = 32
_VERSION_MASK: Final = 0xF << 76
_VERSION: Final = 4 << 76
_VARIANT_MASK: Final = 0b11 << 62
_VARIANT: Final = 0b10 << 62
#: The first six bits of an id whose base64 form begins with '-'.
_DASH: Final = 62
_DASH_SHIFT: Final = 122


def create_topics(view: View, request: CreateTopicsRequest, _version: int) -> Decision:
    """Decide about CreateTopics; what the version has no place for is left out as it is written."""
    named = Counter(topic.name for topic in request.topics)
    wanted = [
        topic for topic in request.topics if named[topic.name] == 1 and topic.name != METADATA_TOPIC
    ]
    batch = RecordBatch(view)
    try:
        _check_partition_count(view, wanted)
        answers = [_answered(view, topic, batch) for topic in wanted]
    except Refusal as refusal:
        refused = tuple(_refused(topic.name, refusal) for topic in request.topics)
        return Decision(CreateTopicsResponse(throttle_time_ms=0, topics=refused))
    answers += [
        _refused(name, bad_request("Duplicate topic name."))
        for name, count in named.items()
        if count > 1
    ]
    if named[METADATA_TOPIC] == 1:
        problem = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        answers.append(_refused(METADATA_TOPIC, bad_request(problem)))
    answer = CreateTopicsResponse(throttle_time_ms=0, topics=tuple(answers))
    return Decision(answer, () if request.validate_only else tuple(batch.records))


def _check_partition_count(view: View, topics: list[CreatableTopic]) -> None:
    """Refuse the whole request before anything is made for it."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _UNSAID:
            total += view.settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > view.settings.records_per_batch_max:
        raise Refusal(
            ApiError.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _answered(view: View, topic: CreatableTopic, batch: RecordBatch) -> CreatedTopic:
    """Return the answer for one topic, whose records go into the batch if it is accepted."""
    try:
        _check_name(view.image, topic.name)
        config_records = _config_records(view.image, topic)
        assignments = _assignments(view, topic)
    except Refusal as refusal:
        return _refused(topic.name, refusal)
    topic_id = new_topic_id(view.random, view.image.topics.by_id, batch.topic_ids)
    records: list[MetadataRecord] = [TopicRecord(topic.name, topic_id), *config_records]
    records += (
        new_partition(view.image, topic_id, partition_id, replicas)
        for partition_id, replicas in enumerate(assignments)
    )
    batch.add(records)
    return CreatedTopic(
        name=topic.name,
        topic_id=topic_id,
        error_code=ApiError.NONE,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=_configs(view, topic),
    )


def new_topic_id(random: RandomSource, *known: Container[str]) -> str:
    """32 lower-case hex digits: in none of ``known``, and nothing that begins with '-' in base64.

    A random UUID of version 4, which keeps it from the ids that Kafka reserves; a tool would take
    one with a '-' for an option. Source: Kafka's ``Uuid.randomUuid``.
    """
    while True:
        bits = 0
        for _ in range(_WORDS):
            bits = bits << _WORD_BITS | int(random.random() * (1 << _WORD_BITS))
        bits = bits & ~_VERSION_MASK & ~_VARIANT_MASK | _VERSION | _VARIANT
        drawn = f"{bits:032x}"
        if bits >> _DASH_SHIFT != _DASH and not any(drawn in some for some in known):
            return drawn


def _check_name(image: MetadataImage, name: str) -> None:
    if name in image.topics.ids_by_name:
        raise Refusal(ApiError.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = colliding_topic(name, image.topics.ids_by_name)
    if colliding is not None:
        raise Refusal(
            ApiError.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )
    check_topic_name(name)


def _config_records(image: MetadataImage, topic: CreatableTopic) -> tuple[ConfigRecord, ...]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise Refusal(
            ApiError.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    if not topic.configs:
        return ()
    changes = {
        config.name: ConfigChange(ConfigOperation.SET, config.value) for config in topic.configs
    }
    return changed_configs(image, (ResourceType.TOPIC, topic.name), changes, is_new=True)


def _assignments(view: View, topic: CreatableTopic) -> list[tuple[int, ...]]:
    """Replicas of each partition; the caller's choice, or ours."""
    if topic.assignments:
        return _chosen(view.image, topic)
    if topic.replication_factor < _UNSAID or topic.replication_factor == 0:
        raise Refusal(
            ApiError.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < _UNSAID or topic.num_partitions == 0:
        raise Refusal(
            ApiError.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    count, factor = topic.num_partitions, topic.replication_factor
    if count == _UNSAID:
        count = view.settings.num_partitions
    if factor == _UNSAID:
        factor = view.settings.default_replication_factor
    try:
        return place_replicas(view, count, factor)
    except Refusal as refusal:
        raise Refusal(
            refusal.code, f"Unable to replicate the partition {factor} time(s): {refusal.message}"
        ) from refusal


def _chosen(image: MetadataImage, topic: CreatableTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != _UNSAID:
        raise bad_request(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != _UNSAID:
        raise bad_request(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    chosen: dict[int, tuple[int, ...]] = {}
    for assignment in topic.assignments:
        _check_chosen(image, assignment, chosen)
        chosen[assignment.partition_index] = assignment.broker_ids
    if any(partition_id not in chosen for partition_id in range(len(chosen))):
        raise Refusal(
            ApiError.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [chosen[partition_id] for partition_id in range(len(chosen))]


def _check_chosen(
    image: MetadataImage, assignment: ReplicaAssignment, before: dict[int, tuple[int, ...]]
) -> None:
    if assignment.partition_index in before:
        raise Refusal(
            ApiError.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition "
            f"{assignment.partition_index}",
        )
    factor = len(next(iter(before.values()))) if before else None
    check_assignment(image, assignment.broker_ids, factor)
    check_chosen_isr(image, assignment.broker_ids, assignment.partition_index)


def _configs(view: View, topic: CreatableTopic) -> tuple[CreatedTopicConfig, ...]:
    own = {config.name: config.value for config in topic.configs if config.value is not None}
    return tuple(
        CreatedTopicConfig(
            name=name,
            value=config.value,
            read_only=False,
            config_source=config.source,
            is_sensitive=False,
        )
        for name, config in effective_configs(view.image, view.settings, own).items()
    )


def _refused(name: str, refusal: Refusal) -> CreatedTopic:
    return CreatedTopic(name=name, error_code=refusal.code, error_message=refusal.message)
