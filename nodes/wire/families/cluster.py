"""Descriptions of a cluster: Metadata, DescribeCluster, DescribeTopicPartitions.

Source: Kafka 4.3's message definitions; KIP-516 (topic ids), KIP-700 and KIP-919 (DescribeCluster,
also of controllers), KIP-966 (DescribeTopicPartitions), KIP-1073 (fenced brokers).
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
    until,
)


class TopicWanted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic by its name or by its id."""

    topic_id: Annotated[Uuid, since(10), IGNORABLE] = NO_UUID
    name: Annotated[NullableString, nullable_since(10)]


class MetadataRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for brokers, and for topics with their partitions."""

    #: Null for all; version 0 means all by an empty array.
    topics: Annotated[tuple[TopicWanted, ...] | None, nullable_since(1)]
    allow_auto_topic_creation: Annotated[Boolean, since(4)] = True
    include_cluster_authorized_operations: Annotated[Boolean, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[Boolean, since(8)] = False


class ListedBroker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker and where it is reached."""

    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[NullableString, since(1), IGNORABLE] = None


class ListedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition: who leads, who holds it, who is in sync."""

    error_code: Int16
    partition_index: Int32
    #: -1 where nobody leads.
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7), IGNORABLE] = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: Annotated[tuple[Int32, ...], since(5), IGNORABLE] = ()


class ListedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One topic, or why it is not told."""

    error_code: Int16
    name: Annotated[NullableString, nullable_since(12)]
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = NO_UUID
    is_internal: Annotated[Boolean, since(1), IGNORABLE] = False
    partitions: tuple[ListedPartition, ...]
    #: A bit for each operation; the lowest number where nobody asked.
    topic_authorized_operations: Annotated[Int32, since(8)] = -2147483648


class MetadataResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Brokers and topics."""

    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    brokers: tuple[ListedBroker, ...]
    cluster_id: Annotated[NullableString, since(2), IGNORABLE] = None
    controller_id: Annotated[Int32, since(1), IGNORABLE] = -1
    topics: tuple[ListedTopic, ...]
    #: A bit for each operation; the lowest number where nobody asked.
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = -2147483648
    error_code: Annotated[Int16, since(13), IGNORABLE] = 0


class DescribeClusterRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for the brokers or the controllers of the cluster."""

    include_cluster_authorized_operations: Boolean
    #: 1 brokers, 2 controllers.
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[Boolean, since(2)] = False


class DescribedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker or a controller and where it is reached."""

    broker_id: Int32
    host: String
    port: Int32
    rack: NullableString = None
    is_fenced: Annotated[Boolean, since(2)] = False


class DescribeClusterResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The brokers or the controllers, and which of them is the controller."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    #: 1 brokers, 2 controllers.
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: String
    controller_id: Int32 = -1
    brokers: tuple[DescribedNode, ...]
    #: A bit for each operation; the lowest number where nobody asked.
    cluster_authorized_operations: Int32 = -2147483648


class TopicToDescribe(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic by its name."""

    name: String


class PartitionCursor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the next page begins."""

    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for partitions, page by page."""

    topics: tuple[TopicToDescribe, ...]
    response_partition_limit: Int32 = 2000
    #: Null for the first page.
    cursor: PartitionCursor | None = None


class DescribedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition: who leads, who holds it, who may lead it."""

    error_code: Int16
    partition_index: Int32
    #: -1 where nobody leads.
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...]


class DescribedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One topic, or why it is not told."""

    error_code: Int16
    name: NullableString
    topic_id: Uuid
    is_internal: Boolean = False
    partitions: tuple[DescribedPartition, ...]
    #: A bit for each operation; the lowest number where nobody asked.
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One page of partitions."""

    throttle_time_ms: Int32
    topics: tuple[DescribedTopic, ...]
    #: Null on the last page.
    next_cursor: PartitionCursor | None = None
