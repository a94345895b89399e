"""The checks that a request passes before a role sees it, and the answers that refuse it.

A peer's mistake gets the error code that Kafka gives it; it never changes anything here. Sources:
Kafka's KafkaRaftClient (``validateVoterOnlyRequest``, ``validateFetchRequest``), KIP-853.
"""

from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    EndQuorumEpochAnswer,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.voters import VoterSet

#: Requests that carry a cluster id and an epoch.
QuorumRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
)


def error_of(request: QuorumRequest, voters: VoterSet, cluster_id: str, epoch: Epoch) -> ErrorCode:
    """Return the error of a request, NONE if it has none; ``epoch`` is the receiver's."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    match request:
        case FetchRequest():
            return _error_of_fetch(request, voters, epoch)
        case FetchSnapshotRequest():
            return _error_of_epoch(request.epoch, epoch)
        case VoteRequest():
            error = _error_of_vote(request, voters)
        case BeginQuorumEpochRequest():
            error = _error_of_voter_key(request.voter_id, request.voter_directory_id, voters)
            error = error or _error_of_leader(request.leader_id, voters)
        case EndQuorumEpochRequest():
            error = _error_of_leader(request.leader_id, voters)
    if error is ErrorCode.NONE and request.epoch < epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return error


def refusal(
    request: QuorumRequest, error: ErrorCode, leader_id: NodeId | None, epoch: Epoch
) -> Answer:
    """Return the answer to a request that is refused with this error."""
    match request:
        case VoteRequest():
            return VoteAnswer(error, leader_id, epoch, granted=False)
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochAnswer(error, leader_id, epoch)
        case EndQuorumEpochRequest():
            return EndQuorumEpochAnswer(error, leader_id, epoch)
        case FetchRequest():
            return fetch_refusal(error, leader_id, epoch, Offset(0))
        case FetchSnapshotRequest():
            return snapshot_refusal(error, leader_id, epoch)


def fetch_refusal(
    error: ErrorCode, leader_id: NodeId | None, epoch: Epoch, log_start: Offset
) -> FetchAnswer:
    """Return the answer to a fetch that gets no records."""
    return FetchAnswer(error, leader_id, epoch, UNKNOWN_OFFSET, log_start, None, (), b"")


def snapshot_refusal(
    error: ErrorCode, leader_id: NodeId | None, epoch: Epoch
) -> FetchSnapshotAnswer:
    """Return the answer to a fetch of a snapshot that gets no bytes."""
    return FetchSnapshotAnswer(error, leader_id, epoch, None, 0, 0, b"")


def _error_of_fetch(request: FetchRequest, voters: VoterSet, epoch: Epoch) -> ErrorCode:
    if request.epoch < 0 or request.fetch_offset < 0 or request.replica_id == voters.me.node_id:
        return ErrorCode.INVALID_REQUEST
    return _error_of_epoch(request.epoch, epoch)


def _error_of_epoch(believed: Epoch, epoch: Epoch) -> ErrorCode:
    if believed < epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if believed > epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE


def _error_of_vote(request: VoteRequest, voters: VoterSet) -> ErrorCode:
    error = _error_of_voter_key(request.voter_id, request.voter_directory_id, voters)
    if error is not ErrorCode.NONE:
        return error
    if request.epoch < 0 or request.end_offset < 0 or request.candidate_id == voters.me.node_id:
        return ErrorCode.INVALID_REQUEST
    if not voters.is_voter(request.candidate_id, request.candidate_directory_id):
        return ErrorCode.INCONSISTENT_VOTER_SET
    return ErrorCode.NONE


def _error_of_voter_key(node_id: NodeId, directory_id: DirectoryId, voters: VoterSet) -> ErrorCode:
    """Whether the sender means this node, on this disk, and this node is a voter at all."""
    if node_id != voters.me.node_id or directory_id not in (NO_DIRECTORY, voters.me.directory_id):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE if voters.includes_me else ErrorCode.INCONSISTENT_VOTER_SET


def _error_of_leader(leader_id: NodeId, voters: VoterSet) -> ErrorCode:
    if leader_id == voters.me.node_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if leader_id in voters.ids else ErrorCode.INCONSISTENT_VOTER_SET
