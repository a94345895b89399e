"""Requests at the edge of what is admitted; found missing by mutants of the checks."""

import pytest

from splitbrain.nodes.quorum.admission import QuorumRequest, error_of
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchRequest,
    VoteRequest,
)
from tests.unit.nodes.quorum.replicas import directory, fetch_request, vote_request, voter_set

EPOCH = Epoch(4)


def error(request: QuorumRequest, *, me: int = 1, epoch: Epoch = EPOCH) -> ErrorCode:
    return error_of(request, voter_set(me=me), "cluster", epoch)


def fetch(
    *, epoch: int = EPOCH, offset: int = 0, replica: int = 2, cluster: str | None = "cluster"
) -> FetchRequest:
    return fetch_request(
        cluster_id=cluster,
        replica_id=replica,
        replica_directory_id=directory(replica),
        epoch=epoch,
        fetch_offset=offset,
    )


def vote(
    *,
    epoch: int = EPOCH,
    end_offset: int = 0,
    candidate: int = 2,
    candidate_directory: DirectoryId | None = None,
    voter: int = 1,
    voter_directory: DirectoryId | None = None,
) -> VoteRequest:
    return vote_request(
        cluster_id="cluster",
        voter_id=voter,
        voter_directory_id=directory(1) if voter_directory is None else voter_directory,
        epoch=epoch,
        candidate_id=candidate,
        candidate_directory_id=candidate_directory or directory(candidate),
        end_offset=end_offset,
    )


def begin(*, leader: int = 2, epoch: int = EPOCH, voter: int = 1) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        "cluster", NodeId(voter), directory(voter), NodeId(leader), Epoch(epoch)
    )


def end(*, leader: int = 2, epoch: int = EPOCH) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest("cluster", NodeId(leader), Epoch(epoch), ())


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (fetch(), ErrorCode.NONE),
        (fetch(cluster=None), ErrorCode.NONE),
        (fetch(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (fetch(offset=-1), ErrorCode.INVALID_REQUEST),
        (fetch(epoch=-1), ErrorCode.INVALID_REQUEST),
        (fetch(replica=1), ErrorCode.INVALID_REQUEST),
        (fetch(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(epoch=EPOCH + 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(replica=9), ErrorCode.NONE),
        (vote(), ErrorCode.NONE),
        (vote(voter_directory=NO_DIRECTORY), ErrorCode.NONE),
        (vote(voter_directory=directory(7)), ErrorCode.INVALID_VOTER_KEY),
        (vote(voter=3), ErrorCode.INVALID_VOTER_KEY),
        (vote(epoch=-1), ErrorCode.INVALID_REQUEST),
        (vote(end_offset=-1), ErrorCode.INVALID_REQUEST),
        (vote(candidate=1), ErrorCode.INVALID_REQUEST),
        (vote(candidate=9), ErrorCode.INCONSISTENT_VOTER_SET),
        (vote(candidate_directory=directory(7)), ErrorCode.INCONSISTENT_VOTER_SET),
        (vote(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(epoch=EPOCH + 1), ErrorCode.NONE),
        (begin(), ErrorCode.NONE),
        (begin(voter=3), ErrorCode.INVALID_VOTER_KEY),
        (begin(leader=1), ErrorCode.INVALID_REQUEST),
        (begin(leader=9), ErrorCode.INCONSISTENT_VOTER_SET),
        (begin(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (end(), ErrorCode.NONE),
        (end(leader=1), ErrorCode.INVALID_REQUEST),
        (end(leader=9), ErrorCode.INCONSISTENT_VOTER_SET),
        (end(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_wrong_request_gets_the_error_of_its_first_mistake(
    request_: QuorumRequest, expected: ErrorCode
) -> None:
    assert error(request_) is expected


def test_a_vote_without_epoch_is_invalid_also_where_there_is_no_epoch_yet() -> None:
    assert error(vote(epoch=0), epoch=Epoch(0)) is ErrorCode.NONE
    assert error(fetch(epoch=0), epoch=Epoch(0)) is ErrorCode.NONE


def test_an_observer_neither_votes_nor_is_told_of_an_epoch() -> None:
    assert error(vote(voter=9, voter_directory=NO_DIRECTORY), me=9) is (
        ErrorCode.INCONSISTENT_VOTER_SET
    )
    assert error(begin(voter=9), me=9) is ErrorCode.INCONSISTENT_VOTER_SET
    assert error(end(), me=9) is ErrorCode.NONE
