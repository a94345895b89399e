"""Partitions' leaders and replicas: AlterPartition, ElectLeaders and the reassignments.

Source: Kafka 4.3's message definitions; KIP-497 (AlterPartition), KIP-903 (broker epochs in the
ISR), KIP-460 (ElectLeaders), KIP-455 (reassignments), KIP-860 (replication factor kept).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    since,
    until,
)
from splitbrain.nodes.wire.families.parts import IdentifiedTopic, NamedTopic, Outcome


class InSyncBroker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A member of the new ISR, as the leader knows it."""

    broker_id: Int32
    #: -1 where the leader does not know it.
    broker_epoch: Int64 = -1


class PartitionToAlter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The ISR that a partition's leader proposes."""

    partition_index: Int32
    leader_epoch: Int32
    #: Form of versions without epochs, in place of ``new_isr_with_epochs``.
    new_isr: Annotated[tuple[Int32, ...], until(2)] = ()
    new_isr_with_epochs: Annotated[tuple[InSyncBroker, ...], since(3)] = ()
    #: 1 while the leader recovers from an unclean election, else 0.
    leader_recovery_state: Int8 = 0
    #: Partition epoch that the leader believes in; another one is refused.
    partition_epoch: Int32


TopicToAlter = IdentifiedTopic[PartitionToAlter]


class AlterPartitionRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A leader proposes new ISRs for partitions that it leads."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: tuple[TopicToAlter, ...]


class AlteredPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Present state of a partition, or why the proposal was refused."""

    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    isr: tuple[Int32, ...]
    #: 1 while the leader recovers from an unclean election, else 0.
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


AlteredTopic = IdentifiedTopic[AlteredPartition]


class AlterPartitionResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results of each proposal."""

    throttle_time_ms: Int32
    error_code: Int16
    topics: tuple[AlteredTopic, ...]


class PartitionsToElect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    topic: String
    partitions: tuple[Int32, ...]


class ElectLeadersRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Elects leaders anew: preferred ones, or unclean ones."""

    #: 0 preferred, 1 unclean.
    election_type: Annotated[Int8, since(1)] = 0
    #: Null for all partitions.
    topic_partitions: tuple[PartitionsToElect, ...] | None
    timeout_ms: Int32 = 60000


class ElectedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one partition."""

    partition_id: Int32
    error_code: Int16
    error_message: NullableString


class ElectedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    topic: String
    partition_result: tuple[ElectedPartition, ...]


class ElectLeadersResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results of each election."""

    throttle_time_ms: Int32
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: tuple[ElectedTopic, ...]


class PartitionToReassign(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a partition shall live."""

    partition_index: Int32
    #: Null to stop a move that is under way.
    replicas: tuple[Int32, ...] | None = None


TopicToReassign = NamedTopic[PartitionToReassign]


class AlterPartitionReassignmentsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Moves partitions to other brokers, or stops such a move."""

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Boolean, since(1)] = True
    topics: tuple[TopicToReassign, ...]


class ReassignedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether the move was accepted."""

    partition_index: Int32
    error_code: Int16
    error_message: NullableString


ReassignedTopic = NamedTopic[ReassignedPartition]


class AlterPartitionReassignmentsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results of each move."""

    throttle_time_ms: Int32
    allow_replication_factor_change: Annotated[Boolean, since(1), IGNORABLE] = True
    error_code: Int16
    error_message: NullableString
    responses: tuple[ReassignedTopic, ...]


class TopicToList(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    name: String
    partition_indexes: tuple[Int32, ...]


class ListPartitionReassignmentsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks which partitions are on the move."""

    timeout_ms: Int32 = 60000
    #: Null for all topics.
    topics: tuple[TopicToList, ...] | None = None


class PartitionUnderReassignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A partition on the move."""

    partition_index: Int32
    replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]


TopicUnderReassignment = NamedTopic[PartitionUnderReassignment]


class ListPartitionReassignmentsResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Partitions on the move."""

    topics: tuple[TopicUnderReassignment, ...]
