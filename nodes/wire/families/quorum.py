"""The quorum's requests: votes, epochs that begin and end, fetches of log and snapshot, its state.

Node endpoints, directories and times are ignorable: a version that lacks them is answered without.

Source: Kafka 4.3's message definitions (KIP-595, KIP-630, KIP-836, KIP-853, KIP-996, KIP-1166).
"""

from typing import Annotated, Final, Generic

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    NO_UUID,
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableBytes,
    NullableString,
    String,
    Uint16,
    Uuid,
    since,
    tag,
)
from splitbrain.nodes.wire.families.parts import (
    IdentifiedTopic,
    Listener,
    NamedTopic,
    P,
    PartitionNumber,
)

#: Fetch 18: the follower does not say its high watermark.
HIGH_WATERMARK_NOT_SUPPORTED: Final = (1 << 63) - 1


class Topic(msgspec.Struct, Generic[P], frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, by its name."""

    topic_name: String
    partitions: tuple[P, ...]


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Address of a quorum node."""

    node_id: Int32
    host: String
    port: Uint16


class LeaderIdAndEpoch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A leader and its epoch; -1 for none that is known."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A snapshot's name."""

    #: One past the last offset that it holds.
    end_offset: Int64 = -1
    #: Of its last record.
    epoch: Int32 = -1


class VotePartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The candidate and the end of its log."""

    partition_index: Int32
    replica_epoch: Int32
    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(1), IGNORABLE] = NO_UUID
    voter_directory_id: Annotated[Uuid, since(1), IGNORABLE] = NO_UUID
    last_offset_epoch: Int32
    last_offset: Int64
    #: Not ignorable: an older version would make a vote of it.
    pre_vote: Annotated[Boolean, since(2)] = False


class VoteRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for a vote, or for a pre-vote."""

    cluster_id: NullableString
    voter_id: Annotated[Int32, since(1), IGNORABLE] = -1
    topics: tuple[Topic[VotePartition], ...]


class LedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A partition's leader, or an error."""

    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32


class VotedPartition(LedPartition, frozen=True, kw_only=True, gc=False):
    """The vote, or an error."""

    vote_granted: Boolean


class VoteResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The vote, or an error."""

    error_code: Int16
    topics: tuple[Topic[VotedPartition], ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(1), tag(0), IGNORABLE] = ()


class BegunPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The new leader, and the voter that it announces itself to."""

    partition_index: Int32
    voter_directory_id: Uuid
    leader_id: Int32
    leader_epoch: Int32


class BeginQuorumEpochRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Announces a new leader."""

    cluster_id: NullableString
    voter_id: Int32
    topics: tuple[Topic[BegunPartition], ...]
    leader_endpoints: tuple[Listener, ...] = ()


class BeginQuorumEpochResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The leader that the voter knows now."""

    error_code: Int16
    topics: tuple[Topic[LedPartition], ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(1), tag(0), IGNORABLE] = ()


class PreferredCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A voter that may lead next."""

    candidate_id: Int32
    candidate_directory_id: Uuid


class EndedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The leader that resigns, and its successors, best first."""

    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32
    preferred_candidates: tuple[PreferredCandidate, ...]


class EndQuorumEpochRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A leader resigns."""

    cluster_id: NullableString
    topics: tuple[Topic[EndedPartition], ...]
    leader_endpoints: tuple[Listener, ...] = ()


class EndQuorumEpochResponse(BeginQuorumEpochResponse, frozen=True, kw_only=True, gc=False):
    """The leader that the voter knows now."""


class PartitionToFetch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of the follower's log."""

    partition: Int32
    current_leader_epoch: Int32
    fetch_offset: Int64
    last_fetched_epoch: Int32
    log_start_offset: Int64 = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, tag(0)] = NO_UUID
    high_watermark: Annotated[Int64, since(18), tag(1), IGNORABLE] = HIGH_WATERMARK_NOT_SUPPORTED


class ForgottenTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions that a fetch session is to leave out."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The replica that fetches; -1 for a consumer."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for records."""

    cluster_id: Annotated[NullableString, tag(0)] = None
    replica_state: Annotated[ReplicaState, tag(1)] = ReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32 = 0
    max_bytes: Int32
    isolation_level: Int8 = 0
    session_id: Int32 = 0
    session_epoch: Int32 = -1
    topics: tuple[IdentifiedTopic[PartitionToFetch], ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: String = ""


class AbortedTransaction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A producer's transaction that does not count."""

    producer_id: Int64
    first_offset: Int64


class EpochEndOffset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The largest epoch of the leader that is not above the follower's, and its end."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class FetchedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Records, or where the logs diverge, or which snapshot to fetch, or an error."""

    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64
    diverging_epoch: Annotated[EpochEndOffset, tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, tag(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, tag(2)] = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    preferred_read_replica: Int32 = -1
    records: NullableBytes


class BrokerEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Address of a node, as a fetch names it."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class FetchResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Records, or why there are none."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    session_id: Int32 = 0
    responses: tuple[IdentifiedTopic[FetchedPartition], ...]
    node_endpoints: Annotated[tuple[BrokerEndpoint, ...], tag(0)] = ()


class SnapshotToFetch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The place in a snapshot from which on it is wanted."""

    partition: Int32
    current_leader_epoch: Int32
    snapshot_id: SnapshotId
    #: First byte wanted.
    position: Int64
    replica_directory_id: Annotated[Uuid, since(1), tag(0), IGNORABLE] = NO_UUID


class FetchSnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for the next bytes of a snapshot."""

    cluster_id: Annotated[NullableString, tag(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF
    topics: tuple[NamedTopic[SnapshotToFetch], ...]


class SnapshotChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Bytes of one snapshot, or why there are none."""

    index: Int32
    error_code: Int16
    snapshot_id: SnapshotId
    current_leader: Annotated[LeaderIdAndEpoch, tag(0)] = LeaderIdAndEpoch(
        leader_id=0, leader_epoch=0
    )
    #: Bytes of the whole snapshot.
    size: Int64
    position: Int64
    #: May begin and end within a batch. Null is read, though Kafka's definition has none.
    unaligned_records: NullableBytes


class FetchSnapshotResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The next bytes of a snapshot."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    topics: tuple[NamedTopic[SnapshotChunk], ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(1), tag(0), IGNORABLE] = ()


class DescribeQuorumRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks the leader for the state of the quorum."""

    topics: tuple[Topic[PartitionNumber], ...]


class DescribedReplica(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far one replica is, as the leader knows it; times in milliseconds since 1970."""

    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(2), IGNORABLE] = NO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1


class DescribedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Leader, voters and observers, or an error."""

    partition_index: Int32
    error_code: Int16
    error_message: Annotated[NullableString, since(2), IGNORABLE] = None
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: tuple[DescribedReplica, ...]
    observers: tuple[DescribedReplica, ...]


class DescribedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A voter's addresses."""

    node_id: Int32
    listeners: tuple[Listener, ...]


class DescribeQuorumResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The quorum as its leader sees it."""

    error_code: Int16
    error_message: Annotated[NullableString, since(2), IGNORABLE] = None
    topics: tuple[Topic[DescribedPartition], ...]
    nodes: Annotated[tuple[DescribedNode, ...], since(2), IGNORABLE] = ()
