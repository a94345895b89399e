from collections.abc import Callable

import msgspec
import pytest

from splitbrain.nodes.quorum import events
from splitbrain.nodes.quorum.effects import (
    AbandonRequest,
    Halt,
    RejectProposal,
    ReportState,
    SendAnswer,
    SendRequest,
)
from splitbrain.nodes.quorum.errors import InvariantViolation, StorageMismatch
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest
from splitbrain.nodes.quorum.persistent import EpochStart
from tests.unit.nodes.quorum.replicas import (
    LIFE,
    MS,
    begin,
    directory,
    granted,
    lone_leader,
    received,
    replica_of,
    sent_by,
    shape,
    step,
)


def test_a_log_of_a_later_epoch_than_the_quorum_state_is_refused() -> None:
    log = shape((4, 0), end=1)
    with pytest.raises(StorageMismatch, match="epoch 4, the quorum state knows only epoch 3"):
        replica_of(epoch=3, log=log)


@pytest.mark.parametrize(
    ("leader", "role"), [(None, "unattached"), (1, "resigned"), (2, "follower"), (8, "unattached")]
)
def test_the_first_role_comes_from_the_quorum_state(leader: int | None, role: str) -> None:
    replica = replica_of(epoch=3, leader=leader)
    step(replica, events.Started())
    assert (replica.role, replica.epoch) == (role, 3)


def test_a_halted_replica_does_nothing_any_more() -> None:
    replica = replica_of()
    step(replica, events.Started())
    step(replica, begin(2, 5))
    effects = step(replica, begin(3, 5))
    assert isinstance(effects[-1], Halt)
    assert "two leaders in epoch 5: 2 and 3" in effects[-1].reason
    assert replica.halted
    assert replica.deadline is None
    assert step(replica, events.TimerElapsed(), 10_000) == ()


def test_an_invariant_violation_tells_its_story() -> None:
    replica = replica_of()
    step(replica, events.Started())
    with pytest.raises(InvariantViolation) as caught:
        step(replica, events.LogFlushed(3), 5)
    assert caught.value.invariant == "INV-21"
    assert caught.value.story[0] == "#1 at 0 us: Started"
    assert caught.value.story[-1] == "#2 at 5000 us: LogFlushed submission=3"


@pytest.mark.parametrize("event", [events.Started(), events.QuorumStatePersisted(1)])
def test_a_host_that_breaks_the_protocol_is_told(event: events.Event) -> None:
    replica = replica_of()
    step(replica, events.Started())
    with pytest.raises(InvariantViolation, match="INV-24"):
        step(replica, event)


def test_a_clock_that_steps_back_stands_still() -> None:
    replica = replica_of()
    step(replica, events.Started(), 100)
    deadline = replica.deadline
    step(replica, events.TimerElapsed(), 1)
    assert replica.deadline == deadline


def test_an_early_timer_does_nothing() -> None:
    replica = replica_of()
    step(replica, events.Started())
    assert step(replica, events.TimerElapsed(), 199) == ()


def test_election_timeouts_are_drawn_between_their_bounds() -> None:
    deadlines = []
    for _ in range(50):
        replica = replica_of(epoch=0)
        step(replica, events.Started())
        assert replica.deadline is not None
        deadlines.append(replica.deadline)
    assert all(200 * MS <= deadline <= 400 * MS for deadline in deadlines)


def test_who_does_not_lead_rejects_proposals_for_certain_and_ignores_resignation() -> None:
    replica = replica_of(epoch=3, leader=2)
    step(replica, events.Started())
    (effect,) = step(replica, events.RecordsProposed(events.ProposalId(4), (b"x",)))
    assert effect == RejectProposal(events.ProposalId(4), NodeId(2), Epoch(3))
    assert step(replica, events.ResignRequested()) == ()


def test_every_change_of_role_is_reported_with_its_cause() -> None:
    replica = replica_of()
    step(replica, events.Started())
    effects = step(replica, begin(2, 5))
    (report,) = [effect for effect in effects if isinstance(effect, ReportState)]
    assert (report.kind, report.role, report.leader_id, report.epoch, report.cause) == (
        "role", "follower", 2, 5, 2,
    )  # fmt: skip


def test_a_follower_fetches_again_after_a_back_off_and_gives_up_after_the_fetch_timeout() -> None:
    replica = replica_of(epoch=3, leader=2)
    (_, sent) = step(replica, events.Started())
    assert isinstance(sent, SendRequest)
    failed = events.RequestFailed(NodeId(2), sent.correlation, LIFE, "refused")
    assert step(replica, failed, 100) == ()
    assert replica.deadline == 120 * MS
    assert step(replica, failed, 110) == ()
    (again,) = step(replica, events.TimerElapsed(), 120)
    assert isinstance(again, SendRequest)
    assert replica.deadline == 300 * MS
    effects = step(replica, events.TimerElapsed(), 300)
    assert replica.role == "prospective"
    # The fetch is still outstanding: its connection is given up before the pre-vote goes there.
    assert AbandonRequest(NodeId(2), again.correlation) in effects


def test_a_lost_pre_vote_returns_to_the_leader_of_the_epoch() -> None:
    replica = replica_of(epoch=3, leader=2)
    step(replica, events.Started())
    step(replica, events.TimerElapsed(), 300)
    assert replica.role == "prospective"
    step(replica, events.TimerElapsed(), 300 + 400)
    assert (replica.role, replica.leader_id, replica.epoch) == ("follower", 2, 3)


def test_an_observer_never_stands() -> None:
    replica = replica_of(me=9)
    step(replica, events.Started())
    for at_ms in range(0, 10_000, 50):
        for sent in sent_by(step(replica, events.TimerElapsed(), at_ms)):
            failed = events.RequestFailed(sent.peer, sent.correlation, LIFE, "refused")
            step(replica, failed, at_ms)
    assert (replica.role, replica.epoch, replica.is_voter) == ("unattached", 0, False)


def test_an_observer_asks_every_voter_in_turn() -> None:
    replica = replica_of(me=9)
    peers = []
    effects = step(replica, events.Started())
    for at_ms in (10, 50, 90):
        (sent,) = sent_by(effects)
        peers.append(sent.peer)
        failed = events.RequestFailed(sent.peer, sent.correlation, LIFE, "refused")
        effects = step(replica, failed, at_ms)
    assert peers == [1, 2, 3]


@pytest.mark.parametrize("directory_of", [directory, lambda _: NO_DIRECTORY])
def test_a_leader_tells_of_voters_the_directories_that_the_quorum_knows_them_by(
    directory_of: Callable[[int], DirectoryId],
) -> None:
    replica = lone_leader(directory_of=directory_of)
    step(replica, events.QuorumStatePersisted(2), 1_002)
    (effect,) = step(replica, received(DescribeQuorumRequest()), 1_003)
    assert isinstance(effect, SendAnswer)
    assert isinstance(effect.answer, DescribeQuorumAnswer)
    assert [voter.directory_id for voter in effect.answer.voters] == [directory_of(1)]


def test_a_leader_tells_of_voters_in_the_order_of_their_ids() -> None:
    replica = replica_of(me=2, voter_count=3)
    step(replica, events.Started())
    effects = step(replica, events.TimerElapsed(), 400)
    for at_ms in range(401, 410):
        if replica.role == "leader":
            break
        # Everybody grants what is asked for: a pre-vote, then the vote.
        sent = sent_by(effects)
        event = granted(sent[0], replica.epoch) if sent else events.QuorumStatePersisted(1)
        effects = step(replica, event, at_ms)
    assert replica.role == "leader"
    step(replica, events.QuorumStatePersisted(2), 411)
    effects = step(replica, received(DescribeQuorumRequest()), 412)
    (effect,) = [each for each in effects if isinstance(each, SendAnswer)]
    assert isinstance(effect.answer, DescribeQuorumAnswer)
    assert [voter.node_id for voter in effect.answer.voters] == [1, 2, 3]


def test_a_leader_without_its_vote_or_its_first_record_is_a_violation() -> None:
    replica = lone_leader()
    state = replica._context.durable.state
    replica._context.durable.state = msgspec.structs.replace(state, voted_id=NodeId(2))
    with pytest.raises(InvariantViolation, match="INV-23"):
        replica.validate()
    replica._context.durable.state = state
    replica.validate()
    replica._context.log.epochs.truncate(Offset(0))
    with pytest.raises(InvariantViolation, match="INV-23"):
        replica.validate()


def test_an_observer_in_an_election_is_a_violation() -> None:
    replica = replica_of(me=9)
    step(replica, events.Started())
    with pytest.raises(InvariantViolation, match="INV-20"):
        replica._owner.become_prospective("a bug")


def test_a_record_above_the_epoch_of_the_node_is_a_violation() -> None:
    replica = replica_of(epoch=3, leader=2)
    step(replica, events.Started())
    replica._context.log.append(Offset(1), (EpochStart(Epoch(4), Offset(0)),))
    with pytest.raises(InvariantViolation, match="INV-22"):
        replica.validate()
