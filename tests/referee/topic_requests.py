"""Requests about topics and their partitions, right ones and wrong ones, by chance. Pure.

Replicas are chosen by hand, as a real controller chooses them by chance. Where it shall choose, the
topic is called so (``known.CHOSEN_PREFIX``), and is deleted before anything depends on its choice.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.families import partitions, topics
from tests.referee.config_requests import some_settings
from tests.referee.known import BROKER_IDS, CHOSEN_PREFIX, NO_TOPIC_ID, NOBODY, Known

_NAMES: Final = ("a", "b", "c", "d.e", "d_e", "f")
_BAD_NAMES: Final = ("", ".", "a b", "x" * 250, "__cluster_metadata")
_TIMEOUT_MS: Final = 60_000
#: Partitions for which one request asks too many.
_TOO_MANY: Final = 10_001


def create_topics(random: Random, known: Known) -> msgspec.Struct:
    count = random.choice((1, 1, 1, 2, 3))
    return topics.CreateTopicsRequest(
        topics=tuple(_new_topic(random, known) for _ in range(count)),
        timeout_ms=_TIMEOUT_MS,
        validate_only=random.random() < 0.1,
    )


def _new_topic(random: Random, known: Known) -> topics.CreatableTopic:
    name = random.choice(_BAD_NAMES if random.random() < 0.05 else _NAMES)
    is_manual = random.random() < 0.9
    assignments: tuple[topics.ReplicaAssignment, ...] = ()
    count, factor = -1, -1
    if is_manual:
        assignments = tuple(
            topics.ReplicaAssignment(partition_index=number, broker_ids=replicas)
            for number, replicas in enumerate(_assignments(random, known, random.randint(1, 4)))
        )
        if random.random() < 0.05:
            assignments = tuple(
                msgspec.structs.replace(each, partition_index=random.randint(0, 3))
                for each in assignments
            )
        if random.random() < 0.03:
            count, factor = random.choice(((2, -1), (-1, 2)))
    else:
        # Refused before anything is chosen, or named as chosen.
        count, factor = random.choice(((0, 1), (-2, 1), (1, 0), (1, -2), (_TOO_MANY, 1), (1, 99)))
    return topics.CreatableTopic(
        name=name,
        num_partitions=count,
        replication_factor=factor,
        assignments=assignments,
        configs=_topic_configs(random),
    )


def _topic_configs(random: Random) -> tuple[topics.ConfigValue, ...]:
    if random.random() < 0.6:
        return ()
    return tuple(
        topics.ConfigValue(name=name, value=value)
        for name, value in some_settings(random, ResourceType.TOPIC)
    )


def create_chosen_topic(random: Random, known: Known) -> msgspec.Struct:
    """A topic whose replicas the controller chooses; seldom one that it only tries."""
    taken = {topic.name for topic in known.chosen_topics}
    name = next(name for number in range(9) if (name := f"{CHOSEN_PREFIX}{number}") not in taken)
    return topics.CreateTopicsRequest(
        topics=(
            topics.CreatableTopic(
                name=name,
                num_partitions=random.choice((-1, 1, 3, 5)),
                replication_factor=random.choice((-1, 1, 2, 3)),
                assignments=(),
                configs=_topic_configs(random),
            ),
        ),
        timeout_ms=_TIMEOUT_MS,
        validate_only=random.random() < 0.2,
    )


def enlarge_chosen_topic(random: Random, known: Known) -> msgspec.Struct:
    """More partitions, where the controller chooses; all topics, if it is only tried."""
    validates = random.random() < 0.5
    among = _even(known.topics) if validates else known.chosen_topics
    topic = random.choice(among) if among else None
    return topics.CreatePartitionsRequest(
        topics=(
            topics.TopicToEnlarge(
                name="none" if topic is None else topic.name,
                count=3 if topic is None else len(topic.partitions) + random.randint(1, 2),
                assignments=None,
            ),
        ),
        timeout_ms=_TIMEOUT_MS,
        validate_only=validates,
    )


def delete_chosen_topics(random: Random, known: Known) -> msgspec.Struct:
    del random
    return topics.DeleteTopicsRequest(
        topics=tuple(
            topics.TopicToDelete(name=topic.name, topic_id=NO_UUID) for topic in known.chosen_topics
        ),
        timeout_ms=_TIMEOUT_MS,
    )


def delete_topics(random: Random, known: Known) -> msgspec.Struct:
    """By name, by id, or by what cannot be."""
    count = random.choice((1, 1, 1, 2))
    return topics.DeleteTopicsRequest(
        topics=tuple(_doomed(random, known) for _ in range(count)), timeout_ms=_TIMEOUT_MS
    )


def _doomed(random: Random, known: Known) -> topics.TopicToDelete:
    topic = some_topic(random, known)
    chance = random.random()
    if topic is None or chance < 0.1:
        name = random.choice(("none", *_BAD_NAMES))
        return random.choice(
            (
                topics.TopicToDelete(name=name, topic_id=NO_UUID),
                topics.TopicToDelete(name=None, topic_id=NO_TOPIC_ID),
                topics.TopicToDelete(name=None, topic_id=NO_UUID),
            )
        )
    if chance < 0.15:
        return topics.TopicToDelete(name=topic.name, topic_id=topic.topic_id)
    if chance < 0.5:
        return topics.TopicToDelete(name=None, topic_id=topic.topic_id)
    return topics.TopicToDelete(name=topic.name, topic_id=NO_UUID)


def delete_topics_by_name(random: Random, known: Known) -> msgspec.Struct:
    topic = some_topic(random, known)
    name = "none" if topic is None else topic.name
    return topics.DeleteTopicsRequest(
        topic_names=random.choice(((name,), (name,), (name, name), (name, "none"))),
        timeout_ms=_TIMEOUT_MS,
    )


def create_partitions(random: Random, known: Known) -> msgspec.Struct:
    count = random.choice((1, 1, 1, 2))
    return topics.CreatePartitionsRequest(
        topics=tuple(_larger(random, known) for _ in range(count)),
        timeout_ms=_TIMEOUT_MS,
        validate_only=random.random() < 0.1,
    )


def _larger(random: Random, known: Known) -> topics.TopicToEnlarge:
    among = _even(known.topics)
    if not among:
        return topics.TopicToEnlarge(name="none", count=3, assignments=None)
    topic = random.choice(among)
    factor = len(topic.partitions[0].replicas)
    added = random.choice((-1, 0, 1, 1, 2, 2))
    given = random.choice((added, added, added, added + 1))
    return topics.TopicToEnlarge(
        name=topic.name,
        count=len(topic.partitions) + added,
        assignments=tuple(
            topics.NewPartitionAssignment(broker_ids=replicas)
            for replicas in _assignments(random, known, max(given, 0), factor)
        ),
    )


def _even(among: Sequence[TopicImage]) -> list[TopicImage]:
    """Topics all of whose partitions have as many replicas.

    Of another a real controller takes any partition's number, by the order of a hash map.
    """
    return [topic for topic in among if len({len(each.replicas) for each in topic.partitions}) == 1]


def elect_leaders(random: Random, known: Known) -> msgspec.Struct:
    return partitions.ElectLeadersRequest(
        election_type=random.choice((0, 0, 0, 1, 1, 2))
        if random.random() < 0.3
        else random.choice((0, 1)),
        topic_partitions=None
        if random.random() < 0.15
        else tuple(
            partitions.PartitionsToElect(topic=name, partitions=numbers)
            for name, numbers in _some_partitions(random, known)
        ),
        timeout_ms=_TIMEOUT_MS,
    )


def alter_reassignments(random: Random, known: Known) -> msgspec.Struct:
    return partitions.AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        allow_replication_factor_change=random.random() < 0.8,
        topics=tuple(
            partitions.TopicToReassign(
                name=name,
                partitions=tuple(
                    partitions.PartitionToReassign(
                        partition_index=number, replicas=_target(random, known)
                    )
                    for number in numbers
                ),
            )
            for name, numbers in _some_partitions(random, known)
        ),
    )


def _target(random: Random, known: Known) -> tuple[int, ...] | None:
    if random.random() < 0.2:
        return None
    (replicas,) = _assignments(random, known, 1)
    return replicas


def list_reassignments(random: Random, known: Known) -> msgspec.Struct:
    return partitions.ListPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        topics=None
        if random.random() < 0.5
        else tuple(
            partitions.TopicToList(name=name, partition_indexes=numbers)
            for name, numbers in _some_partitions(random, known)
        ),
    )


def some_topic(random: Random, known: Known) -> TopicImage | None:
    """One whose replicas were chosen by hand."""
    return random.choice(known.topics) if known.topics else None


def _some_partitions(random: Random, known: Known) -> list[tuple[str, tuple[int, ...]]]:
    """Topics with partitions of theirs, some of which are not there; no topic twice."""
    found: list[tuple[str, tuple[int, ...]]] = []
    wanted = random.sample(known.topics, min(len(known.topics), random.randint(1, 2)))
    for topic in wanted:
        count = len(topic.partitions)
        numbers = random.sample(range(count + 1), random.randint(1, count))
        found.append((topic.name, tuple(numbers)))
    if not found or random.random() < 0.1:
        found.append(("none", (0,)))
    return found


def _assignments(
    random: Random, known: Known, count: int, factor: int | None = None
) -> list[tuple[int, ...]]:
    """Replicas of so many partitions; seldom such as no partition may have."""
    ids: Sequence[int] = [broker.broker_id for broker in known.brokers] or BROKER_IDS
    size = factor or random.choice((1, 2, 2, 3))
    found: list[tuple[int, ...]] = []
    for _ in range(count):
        replicas = tuple(random.sample(ids, min(size, len(ids))))
        if random.random() < 0.04:
            replicas = random.choice(
                (
                    (),
                    (replicas[0], replicas[0]),
                    (*replicas[:-1], NOBODY),
                    (*replicas[:-1], -1),
                    replicas[:-1],
                )
            )
        found.append(replicas)
    return found
