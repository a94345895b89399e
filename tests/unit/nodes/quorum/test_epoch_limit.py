"""Epochs that would leave too few for later elections: refused of everybody, and not stood in."""

import pytest
from msgspec.structs import replace

from splitbrain.nodes.quorum import events, messages
from splitbrain.nodes.quorum.durable_state import DurableState
from splitbrain.nodes.quorum.effects import Effect, PersistQuorumState, SendAnswer, Warn
from splitbrain.nodes.quorum.epoch_limit import EPOCH_MAX, LAST_EPOCH, highest_from, may_stand
from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.nodes.quorum.persistent import EMPTY_STATE, SnapshotId
from splitbrain.nodes.quorum.replica import Replica
from tests.unit.nodes.quorum.replicas import (
    answered,
    begin,
    directory,
    fetch_request,
    granted,
    received,
    replica_of,
    sent_by,
    step,
    vote_request,
)

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
#: From an epoch of every day.
TOO_HIGH = (EPOCH_MAX, EPOCH_MAX - 1, LAST_EPOCH + 1, LAST_EPOCH, highest_from(Epoch(3)) + 1)


def every_request(epoch: Epoch) -> list[messages.Request]:
    """Requests of node 2 to node 1 that name this epoch."""

    vote = vote_request(
        cluster_id="cluster",
        voter_id=ONE,
        voter_directory_id=directory(1),
        epoch=epoch,
        candidate_id=TWO,
        candidate_directory_id=directory(2),
    )
    snapshot_id = SnapshotId(Offset(5), epoch)
    return [
        vote,
        replace(vote, pre_vote=True),
        messages.BeginQuorumEpochRequest("cluster", ONE, directory(1), TWO, epoch),
        messages.EndQuorumEpochRequest("cluster", TWO, epoch, ((ONE, directory(1)),)),
        fetch_request(epoch=epoch),
        messages.FetchSnapshotRequest("cluster", TWO, directory(2), epoch, snapshot_id, 0, 1_000),
    ]


def every_answer(error: ErrorCode, epoch: Epoch, leader_id: NodeId | None) -> list[messages.Answer]:
    return [
        messages.VoteAnswer(error, leader_id, epoch, granted=False),
        messages.VoteAnswer(error, leader_id, epoch, granted=True),
        messages.BeginQuorumEpochAnswer(error, leader_id, epoch),
        messages.EndQuorumEpochAnswer(error, leader_id, epoch),
        messages.FetchAnswer(error, leader_id, epoch, Offset(9), Offset(0), None, (), b""),
        messages.FetchAnswer(
            error, leader_id, epoch, Offset(9), Offset(0), (epoch, Offset(0)), (), b""
        ),
        messages.FetchSnapshotAnswer(error, leader_id, epoch, None, 0, 0, b""),
    ]


def of_each_role() -> list[Replica]:
    """Node 1 in epoch 3 as follower, prospective, candidate, leader and resigned."""
    follower = replica_of(epoch=3, leader=2)
    step(follower, events.Started())
    prospective = replica_of(epoch=3)
    step(prospective, events.Started())
    step(prospective, events.TimerElapsed(), 400)
    led = [candidate(), candidate(), candidate()]
    for replica in led[1:]:
        effects = answer_votes(replica)
        assert replica.role == "leader", effects
    step(led[2], events.ResignRequested(), 450)
    roles = [follower, prospective, *led]
    expected = ["follower", "prospective", "candidate", "leader", "resigned"]
    assert [replica.role for replica in roles] == expected
    return roles


def candidate() -> Replica:
    replica = replica_of(epoch=2)
    step(replica, events.Started())
    step(replica, granted(sent_by(step(replica, events.TimerElapsed(), 400))[0], 2), 410)
    assert replica.role == "candidate"
    return replica


def answer_votes(replica: Replica) -> tuple[Effect, ...]:
    vote = sent_by(step(replica, events.QuorumStatePersisted(1), 420))[0]
    return step(replica, granted(vote, 3), 430)


@pytest.mark.parametrize("epoch", TOO_HIGH)
def test_no_request_leads_there_whatever_the_role(epoch: int) -> None:
    for replica in of_each_role():
        role = replica.role
        for number, request in enumerate(every_request(Epoch(epoch))):
            effects = step(replica, received(request, connection=number), 460)
            assert (replica.epoch, replica.role) == (3, role)
            assert not [effect for effect in effects if isinstance(effect, PersistQuorumState)]
            refused = isinstance(request, messages.FetchRequest | messages.FetchSnapshotRequest)
            expected = ErrorCode.UNKNOWN_LEADER_EPOCH if refused else ErrorCode.INVALID_REQUEST
            answers = [effect.answer for effect in effects if isinstance(effect, SendAnswer)]
            # A candidate's and a new leader's wait for the disk; they say the same then.
            assert {answer.error for answer in answers} <= {expected}
            warned = [effect for effect in effects if isinstance(effect, Warn)]
            assert bool(warned) is not refused
            assert all(str(epoch) in effect.reason for effect in warned)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH])
@pytest.mark.parametrize("leader_id", [None, TWO, THREE])
@pytest.mark.parametrize("epoch", TOO_HIGH)
def test_no_answer_leads_there(epoch: int, leader_id: NodeId | None, error: ErrorCode) -> None:
    for answer in every_answer(error, Epoch(epoch), leader_id):
        replica = replica_of(epoch=3, leader=2)
        (fetch,) = sent_by(step(replica, events.Started()))
        effects = step(replica, answered(fetch, answer), 10)
        assert (replica.epoch, replica.role, replica.leader_id) == (3, "follower", 2)
        assert [effect.message for effect in effects if isinstance(effect, Warn)] == [
            "epoch refused"
        ]
        # It counts for no answer: the peer is asked again, after a pause.
        again = step(replica, events.TimerElapsed(), 60)
        assert [sent.peer for sent in sent_by(again)] == [TWO]


def test_whatever_one_message_names_a_million_elections_are_left() -> None:
    for present in (0, 3, 10**9, LAST_EPOCH - 2**20):
        highest = highest_from(Epoch(present))
        assert present < highest <= LAST_EPOCH - 2**20 + 2**10
        # Each of them can be entered by those who were there, one after another.
        assert may_stand(highest)
        assert highest_from(highest) > highest


def test_epochs_that_elections_lead_to_are_entered_up_to_the_last() -> None:
    for present in (0, 3, 10**9, LAST_EPOCH - 2**20, LAST_EPOCH - 10, LAST_EPOCH - 1):
        replica = replica_of(epoch=present)
        step(replica, events.Started())
        step(replica, begin(2, present + 1))
        assert (replica.epoch, replica.leader_id) == (present + 1, 2)


@pytest.mark.parametrize("voter_count", [1, 3])
@pytest.mark.parametrize("epoch", [LAST_EPOCH, LAST_EPOCH + 1, EPOCH_MAX - 1, EPOCH_MAX])
def test_who_is_there_by_its_disk_says_so_once_and_asks_nobody(
    epoch: int, voter_count: int
) -> None:
    replica = replica_of(epoch=epoch, voter_count=voter_count)
    effects = list(step(replica, events.Started()))
    for at_ms in range(0, 20_000, 50):
        effects += step(replica, events.TimerElapsed(), at_ms)
    assert replica.epoch == epoch
    assert not sent_by(tuple(effects))
    (warned,) = [effect for effect in effects if isinstance(effect, Warn)]
    assert warned.message == "does not stand"
    if voter_count == 3:
        step(replica, begin(2, epoch), 20_000)  # a leader that was elected before all that
        assert (replica.role, replica.leader_id) == ("follower", 2)


def test_to_enter_one_of_the_last_epochs_is_a_violation() -> None:
    state = DurableState(EMPTY_STATE, Outbox())
    state.enter_epoch(LAST_EPOCH)
    with pytest.raises(InvariantViolation, match="INV-29"):
        state.enter_epoch(Epoch(LAST_EPOCH + 1))
