"""Creating, deleting and enlarging topics: CreateTopics, DeleteTopics, CreatePartitions.

Source: Kafka 4.3's message definitions; KIP-4, KIP-195 (partitions), KIP-516 (topic ids), KIP-525
(configs in the answer), KIP-599 (throttling).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    NO_UUID,
    Boolean,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    nullable_since,
    since,
    tag,
    until,
)
from splitbrain.nodes.wire.families.parts import ConfigValue


class ReplicaAssignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the caller wants the replicas of one partition."""

    partition_index: Int32
    #: The preferred leader first.
    broker_ids: tuple[Int32, ...]


class CreatableTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic to create."""

    name: String
    #: -1 with manual assignments, or for the default.
    num_partitions: Int32
    #: -1 with manual assignments, or for the default.
    replication_factor: Int16
    #: Empty where the controller chooses.
    assignments: tuple[ReplicaAssignment, ...]
    configs: tuple[ConfigValue, ...]


class CreateTopicsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Creates topics, each for itself."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Boolean = False


class CreatedTopicConfig(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A config that a new topic has, whether set or by default."""

    name: String
    value: NullableString
    read_only: Boolean
    #: As ``DescribedConfig.config_source``; -1 where it is not told.
    config_source: Int8 = -1
    is_sensitive: Boolean


class CreatedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one topic."""

    name: String
    topic_id: Annotated[Uuid, since(7), IGNORABLE] = NO_UUID
    error_code: Int16
    error_message: NullableString
    #: Why ``configs`` is null, where the asker may not see them.
    topic_config_error_code: Annotated[Int16, since(5), tag(0), IGNORABLE] = 0
    num_partitions: Annotated[Int32, since(5), IGNORABLE] = -1
    replication_factor: Annotated[Int16, since(5), IGNORABLE] = -1
    configs: Annotated[tuple[CreatedTopicConfig, ...] | None, since(5), IGNORABLE] = ()


class CreateTopicsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for each topic to create."""

    throttle_time_ms: Int32
    topics: tuple[CreatedTopic, ...]


class TopicToDelete(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic by its name or by its id, never both."""

    name: NullableString = None
    topic_id: Uuid


class DeleteTopicsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Deletes topics, each for itself."""

    topics: Annotated[tuple[TopicToDelete, ...], since(6)] = ()
    #: Form of versions without ids, in place of ``topics``.
    topic_names: Annotated[tuple[String, ...], until(5), IGNORABLE] = ()
    timeout_ms: Int32


class DeletedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one topic."""

    name: Annotated[NullableString, nullable_since(6)]
    topic_id: Annotated[Uuid, since(6), IGNORABLE] = NO_UUID
    error_code: Int16
    error_message: Annotated[NullableString, since(5), IGNORABLE] = None


class DeleteTopicsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for each topic to delete."""

    throttle_time_ms: Int32
    responses: tuple[DeletedTopic, ...]


class NewPartitionAssignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the caller wants the replicas of one new partition."""

    broker_ids: tuple[Int32, ...]


class TopicToEnlarge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic that shall have more partitions."""

    name: String
    #: Partitions in all, the present ones included.
    count: Int32
    #: One for each new partition; null where the controller chooses.
    assignments: tuple[NewPartitionAssignment, ...] | None


class CreatePartitionsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Adds partitions to topics."""

    topics: tuple[TopicToEnlarge, ...]
    timeout_ms: Int32
    validate_only: Boolean


class EnlargedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one topic."""

    name: String
    error_code: Int16
    error_message: NullableString = None


class CreatePartitionsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for each topic to enlarge."""

    throttle_time_ms: Int32
    results: tuple[EnlargedTopic, ...]
