"""Messages between quorum nodes, named after Kafka's (KIP-595, KIP-853, KIP-996).

Small and frozen; ``nodes.wire`` turns them into Kafka frames and back. Field meanings follow
Kafka 4.3's VoteRequest v2, BeginQuorumEpoch v1, EndQuorumEpoch v1, Fetch v17/18 and FetchSnapshot
v1 (KIP-630) for the one partition ``__cluster_metadata-0``. A leader id of None is Kafka's -1.
"""

from enum import IntEnum

import msgspec

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId


class ErrorCode(IntEnum):
    """The error codes of Kafka's protocol that the quorum sends or understands."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    INCONSISTENT_VOTER_SET = 94
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_CLUSTER_ID = 104
    INVALID_VOTER_KEY = 125


class VoteRequest(msgspec.Struct, frozen=True):
    """Asks for a vote, or for a pre-vote that changes nothing."""

    cluster_id: str | None
    #: Voter asked, with the directory id by which the sender knows it.
    voter_id: NodeId
    voter_directory_id: DirectoryId
    #: Epoch that the candidate stands in (pre-vote: its present epoch, not raised).
    epoch: Epoch
    candidate_id: NodeId
    candidate_directory_id: DirectoryId
    #: Epoch and end offset of the candidate's log.
    last_epoch: Epoch
    end_offset: Offset
    pre_vote: bool


class VoteAnswer(msgspec.Struct, frozen=True):
    """Answer to a vote. A *granted* pre-vote may still name a dead leader: do not follow it."""

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch
    granted: bool


class BeginQuorumEpochRequest(msgspec.Struct, frozen=True):
    """A new leader announces itself to a voter that has not fetched from it yet."""

    cluster_id: str | None
    voter_id: NodeId
    voter_directory_id: DirectoryId
    leader_id: NodeId
    epoch: Epoch


class BeginQuorumEpochAnswer(msgspec.Struct, frozen=True):
    """Says whether the announcement was taken, and who leads."""

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch


class EndQuorumEpochRequest(msgspec.Struct, frozen=True):
    """A leader that resigns names its preferred successors, best first."""

    cluster_id: str | None
    leader_id: NodeId
    epoch: Epoch
    preferred: tuple[tuple[NodeId, DirectoryId], ...]


class EndQuorumEpochAnswer(msgspec.Struct, frozen=True):
    """Says whether the farewell was taken, and who leads."""

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch


class FetchRequest(msgspec.Struct, frozen=True):
    """A follower or observer asks for records after its log end; also its heartbeat."""

    cluster_id: str | None
    replica_id: NodeId
    replica_directory_id: DirectoryId
    #: Epoch in which the follower believes the receiver to lead; at least 0.
    epoch: Epoch
    #: The follower's log end; it says that all before it is *flushed* on the follower.
    fetch_offset: Offset
    #: Epoch of the record before ``fetch_offset``; NO_EPOCH for an empty log.
    last_fetched_epoch: Epoch
    #: High watermark known to the follower, UNKNOWN_OFFSET if none (Fetch v18).
    high_watermark: Offset
    max_wait_ms: int
    max_bytes: int


class BatchHeader(msgspec.Struct, frozen=True):
    """Facts of a record batch that the core needs; the bytes stay with storage."""

    base_offset: Offset
    #: Offset of the last record, inclusive.
    last_offset: Offset
    epoch: Epoch
    size_bytes: int


class FetchAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Records, or where the logs diverge, or which snapshot to fetch, or who leads instead.

    ``batches`` describes ``records``, raw v2 batches whose checksums the receiver has verified. The
    core *sends* none: it names the offset in an effect, and the host reads the log.
    """

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch
    high_watermark: Offset
    log_start_offset: Offset
    #: (epoch, end offset) of the largest epoch of the leader not above the follower's.
    diverging: tuple[Epoch, Offset] | None
    batches: tuple[BatchHeader, ...]
    records: bytes
    #: The snapshot to begin with: the records that the follower lacks are not in the log any more.
    snapshot_id: SnapshotId | None = None


class FetchSnapshotRequest(msgspec.Struct, frozen=True):
    """A follower or observer asks for the next bytes of a snapshot; also its heartbeat."""

    cluster_id: str | None
    replica_id: NodeId
    replica_directory_id: DirectoryId
    #: Epoch in which the follower believes the receiver to lead.
    epoch: Epoch
    snapshot_id: SnapshotId
    #: First byte wanted: so many the follower has.
    position: int
    max_bytes: int


class FetchSnapshotAnswer(msgspec.Struct, frozen=True):
    """Bytes of a snapshot, which the host fills in where the core says, or why there are none."""

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch
    #: None where there are no bytes.
    snapshot_id: SnapshotId | None
    #: Bytes of the whole snapshot.
    size_bytes: int
    #: Place of the first byte of ``data``.
    position: int
    #: May begin and end within a batch.
    data: bytes


class DescribeQuorumRequest(msgspec.Struct, frozen=True):
    """Asks the leader for the state of the quorum."""


class ReplicaProgress(msgspec.Struct, frozen=True):
    """How far one replica is, as the leader knows it."""

    node_id: NodeId
    directory_id: DirectoryId
    end_offset: Offset
    #: Milliseconds of wall clock at the last fetch, -1 if unknown.
    last_fetch_ms: int
    #: Milliseconds of wall clock when the replica was last caught up, -1 if unknown.
    last_caught_up_ms: int


class DescribeQuorumAnswer(msgspec.Struct, frozen=True):
    """The quorum as its leader sees it; empty from anyone else."""

    error: ErrorCode
    leader_id: NodeId | None
    epoch: Epoch
    high_watermark: Offset
    voters: tuple[ReplicaProgress, ...]
    observers: tuple[ReplicaProgress, ...]


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | DescribeQuorumRequest
)
Answer = (
    VoteAnswer
    | BeginQuorumEpochAnswer
    | EndQuorumEpochAnswer
    | FetchAnswer
    | FetchSnapshotAnswer
    | DescribeQuorumAnswer
)
