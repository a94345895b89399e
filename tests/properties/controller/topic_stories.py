"""Random requests for topics and configs, one after the other, and what must hold of each decision.

The records of each decision are replayed; then the answer must say of every topic and resource what
the image says of it, and nothing else may have changed.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.families import configs, topics
from tests.unit.nodes.controller.clusters import applied, broker, image_with, view_of

NAMES = ("a", "b", "c.d", "c_d", "e f", "__cluster_metadata")
VALUES = (
    ("retention.ms", "5"),
    ("retention.ms", "x"),
    ("cleanup.policy", "compact"),
    ("segment.ms", "7"),
    ("no.such.config", "1"),
    ("segment.ms", None),
)
BROKERS = range(1, 8)

Decide = Callable[[ApiKey, View, Any], Decision]


def decide(api_key: ApiKey, view: View, request: Any) -> Decision:
    return HANDLERS[api_key](view, request, 7)


def a_cluster(source: random.Random) -> MetadataImage:
    return image_with(
        broker(
            broker_id,
            rack=source.choice([None, "r1", "r2"]),
            fenced=source.random() < 0.2,
            shutting_down=source.random() < 0.1,
            directories=source.randrange(3),
        )
        for broker_id in BROKERS
        if source.random() < 0.9
    )


def some_brokers(source: random.Random) -> tuple[int, ...]:
    chosen = source.sample(range(1, 9), source.randrange(4))
    return (*chosen, *chosen[: source.random() < 0.1])


def a_creation(source: random.Random, image: MetadataImage) -> topics.CreateTopicsRequest:
    def one() -> topics.CreatableTopic:
        is_manual = source.random() < 0.3
        factor = len(some_brokers(source))
        return topics.CreatableTopic(
            name=source.choice(NAMES),
            num_partitions=-1 if is_manual else source.choice([-1, 0, 1, 2, 3]),
            replication_factor=-1 if is_manual else source.choice([-1, 1, 2, 3, 4, 9]),
            assignments=tuple(
                topics.ReplicaAssignment(
                    partition_index=number,
                    broker_ids=tuple(source.sample(range(1, 9), factor)),
                )
                for number in range(source.randrange(1, 4) if is_manual else 0)
            ),
            configs=tuple(
                topics.ConfigValue(name=name, value=value)
                for name, value in source.sample(VALUES, source.randrange(3))
                if value is not None or source.random() < 0.3
            ),
        )

    return topics.CreateTopicsRequest(
        topics=tuple(one() for _ in range(source.randrange(1, 4))),
        validate_only=source.random() < 0.2,
    )


def a_deletion(source: random.Random, image: MetadataImage) -> topics.DeleteTopicsRequest:
    ids = [*image.topics.by_id, "9" * 32, NO_UUID]
    return topics.DeleteTopicsRequest(
        topics=tuple(
            topics.TopicToDelete(name=None, topic_id=source.choice(ids))
            if source.random() < 0.5
            else topics.TopicToDelete(name=source.choice(NAMES), topic_id=NO_UUID)
            for _ in range(source.randrange(1, 3))
        ),
        timeout_ms=1,
    )


def an_enlargement(source: random.Random, image: MetadataImage) -> topics.CreatePartitionsRequest:
    return topics.CreatePartitionsRequest(
        topics=tuple(
            topics.TopicToEnlarge(
                name=source.choice(NAMES),
                count=source.randrange(1, 6),
                assignments=tuple(
                    topics.NewPartitionAssignment(broker_ids=some_brokers(source))
                    for _ in range(source.randrange(3))
                )
                if source.random() < 0.3
                else None,
            )
            for _ in range(source.randrange(1, 3))
        ),
        timeout_ms=1,
        validate_only=source.random() < 0.2,
    )


def a_change(source: random.Random, image: MetadataImage) -> configs.IncrementalAlterConfigsRequest:
    return configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            configs.ResourceToChange(
                resource_type=2,
                resource_name=source.choice(NAMES),
                configs=tuple(
                    configs.ConfigChange(
                        name=name, config_operation=source.randrange(2), value=value
                    )
                    for name, value in source.sample(VALUES, source.randrange(3))
                ),
            )
            for _ in range(source.randrange(1, 3))
        ),
        validate_only=source.random() < 0.2,
    )


REQUESTS: dict[ApiKey, Callable[[random.Random, MetadataImage], Any]] = {
    ApiKey.CREATE_TOPICS: a_creation,
    ApiKey.DELETE_TOPICS: a_deletion,
    ApiKey.CREATE_PARTITIONS: an_enlargement,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: a_change,
}
WEIGHTS = (4, 1, 2, 2)


def problems_of(source: random.Random, length: int = 12, decided: Decide = decide) -> Iterator[str]:
    """Return the problems of one story's decisions."""
    image = a_cluster(source)
    for _ in range(length):
        (api_key,) = source.choices(list(REQUESTS), WEIGHTS)
        request = REQUESTS[api_key](source, image)
        decision = decided(api_key, view_of(image, source), request)
        after = applied(image, decision)
        if getattr(request, "validate_only", False) and decision.records:
            yield "validating wrote records"
        else:
            yield from _changed_otherwise(api_key, request, decision.answer, image, after)
        for topic in after.topics.by_id.values():
            for state in topic.partitions:
                yield from _bad_partition(after, state)
        image = after


def _changed_otherwise(
    api_key: ApiKey, request: Any, answer: Any, before: MetadataImage, after: MetadataImage
) -> Iterator[str]:
    """Where the answer says another thing than the image."""
    expected: dict[str, tuple[str, int] | None] = _summary(before)
    told = dict(before.configs)
    is_only_checked = getattr(request, "validate_only", False)
    match api_key:
        case ApiKey.CREATE_TOPICS:
            for each in answer.topics:
                if each.error_code == 0 and not is_only_checked:
                    expected[each.name] = (each.topic_id, each.num_partitions)
                    (asked,) = [one for one in request.topics if one.name == each.name]
                    if asked.configs:
                        told[(2, each.name)] = {one.name: one.value for one in asked.configs}
                    yield from _not_as_asked(before, after.topics.named(each.name), asked)
        case ApiKey.DELETE_TOPICS:
            for each in answer.responses:
                if each.error_code == 0:
                    expected.pop(each.name)
                    told.pop((2, each.name), None)
        case ApiKey.CREATE_PARTITIONS:
            for each in answer.results:
                known = expected.get(each.name)
                if each.error_code == 0 and known is not None and not is_only_checked:
                    (asked,) = [one for one in request.topics if one.name == each.name]
                    expected[each.name] = (known[0], asked.count)
        case _:
            for each in answer.responses:
                if each.error_code == 0 and not is_only_checked:
                    (asked,) = [
                        one for one in request.resources if one.resource_name == each.resource_name
                    ]
                    resource = (2, each.resource_name)
                    values = _with_changes(dict(before.configs.get(resource, {})), asked.configs)
                    told.pop(resource, None)
                    if values:
                        told[resource] = values
    if _summary(after) != expected:
        yield f"{api_key.name} answered {expected}, the image has {_summary(after)}"
    if dict(after.configs) != told:
        yield f"{api_key.name} answered {told}, the image has {after.configs}"


def _summary(image: MetadataImage) -> dict[str, Any]:
    return {
        topic.name: (topic.topic_id, len(topic.partitions)) for topic in image.topics.by_id.values()
    }


def _with_changes(
    values: dict[str, str], changes: tuple[configs.ConfigChange, ...]
) -> dict[str, str]:
    for change in changes:
        if change.config_operation == 1 or change.value is None:
            values.pop(change.name, None)
        else:
            values[change.name] = change.value
    return values


def _not_as_asked(
    before: MetadataImage, made: TopicImage | None, asked: topics.CreatableTopic
) -> Iterator[str]:
    if made is None:
        yield f"{asked.name} was not made"
        return
    placed = [state.replicas for state in made.partitions]
    if asked.assignments:
        if placed != [each.broker_ids for each in asked.assignments]:
            yield "replicas are not where the caller wants them"
        return
    if {len(replicas) for replicas in placed} != {abs(asked.replication_factor)}:
        yield "another replication factor"
    usable = {
        broker_id: each.rack
        for broker_id, each in before.brokers.items()
        if not each.in_controlled_shutdown
    }
    sizes = Counter(usable.values())
    for replicas in placed:
        counts = Counter(usable.get(broker_id, "unusable") for broker_id in replicas)
        # A rack has less than another by two only where all its brokers are taken.
        if any(
            counts[rack] < max(counts.values()) - 1 and counts[rack] < size
            for rack, size in sizes.items()
        ):
            yield "replicas are not spread over the racks"


def _bad_partition(image: MetadataImage, state: PartitionState) -> Iterator[str]:
    if len(set(state.replicas)) != len(state.replicas):
        yield "two replicas on one broker"
    active = tuple(
        broker_id
        for broker_id in state.replicas
        if not image.brokers[broker_id].fenced
        and not image.brokers[broker_id].in_controlled_shutdown
    )
    if state.isr != active or state.leader != active[0]:
        yield "replicas that cannot be in sync are, or lead"
    for broker_id, directory in zip(state.replicas, state.directories, strict=True):
        known = image.brokers[broker_id].log_dirs
        if len(known) == 1 and directory != known[0]:
            yield "a replica lies in no directory of its broker"


def without_last_record(api_key: ApiKey, view: View, request: Any) -> Decision:
    decision = decide(api_key, view, request)
    return Decision(decision.answer, decision.records[:-1])


def validating_writes(api_key: ApiKey, view: View, request: Any) -> Decision:
    if getattr(request, "validate_only", False):
        request = msgspec.structs.replace(request, validate_only=False)
    return decide(api_key, view, request)


def with_another_id(api_key: ApiKey, view: View, request: Any) -> Decision:
    decision = decide(api_key, view, request)
    if not isinstance(decision.answer, topics.CreateTopicsResponse):
        return decision
    others = tuple(
        msgspec.structs.replace(each, topic_id="9" * 32) for each in decision.answer.topics
    )
    answer = msgspec.structs.replace(decision.answer, topics=others)
    return Decision(answer, decision.records)


def rewriting(change: Callable[[records.PartitionRecord], dict[str, Any]]) -> Decide:
    """Decides as it should, but for these fields of each partition's record."""

    def decided(api_key: ApiKey, view: View, request: Any) -> Decision:
        decision = decide(api_key, view, request)
        changed = [
            msgspec.structs.replace(each, **change(each))
            if isinstance(each, records.PartitionRecord)
            else each
            for each in decision.records
        ]
        return Decision(decision.answer, changed)

    return decided


def on_one_broker(record: records.PartitionRecord) -> dict[str, Any]:
    first = record.replicas[:1] * len(record.replicas)
    return {"replicas": first, "isr": first}


def blind_to_racks(api_key: ApiKey, view: View, request: Any) -> Decision:
    known = view.image.brokers
    blind = {
        broker_id: msgspec.structs.replace(each, rack=None) for broker_id, each in known.items()
    }
    image = msgspec.structs.replace(view.image, brokers=blind)
    return decide(api_key, msgspec.structs.replace(view, image=image), request)


def keeping_what_is_deleted(api_key: ApiKey, view: View, request: Any) -> Decision:
    decision = decide(api_key, view, request)
    return Decision(decision.answer) if api_key is ApiKey.DELETE_TOPICS else decision


def forgetting_configs(api_key: ApiKey, view: View, request: Any) -> Decision:
    decision = decide(api_key, view, request)
    kept = [each for each in decision.records if not isinstance(each, records.ConfigRecord)]
    return Decision(decision.answer, kept)


#: Each is wrong in one way, and what that looks like.
MUTANTS: dict[str, tuple[Decide, str]] = {
    "without_last_record": (without_last_record, "answered"),
    "validating_writes": (validating_writes, "validating wrote records"),
    "with_another_id": (with_another_id, "answered"),
    "led_by_the_last": (
        rewriting(lambda record: {"leader": record.replicas[-1]}),
        "replicas that cannot be in sync",
    ),
    "on_one_broker": (rewriting(on_one_broker), "two replicas on one broker"),
    "in_no_directory": (
        rewriting(lambda record: {"directories": ("7" * 32,) * len(record.replicas)}),
        "in no directory",
    ),
    "blind_to_racks": (blind_to_racks, "not spread over the racks"),
    "keeping_what_is_deleted": (keeping_what_is_deleted, "answered"),
    "forgetting_configs": (forgetting_configs, "answered"),
}
