"""What each role does when its request fails, is refused or is answered late.

Each of these is a retry that nothing missed until a mutant left it out: the simulation heals by
other ways, only later.
"""

import random

from nodes.quorum.effects import Effect, SendRequest
from nodes.quorum.events import (
    AnswerReceived,
    Event,
    LogFlushed,
    QuorumStatePersisted,
    RequestFailed,
    RequestReceived,
    Started,
    TimerElapsed,
)
from nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from nodes.quorum.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochAnswer,
    ErrorCode,
    FetchAnswer,
    Request,
    VoteAnswer,
    VoteRequest,
)
from nodes.quorum.persistent import LogShape, QuorumState, Voter
from nodes.quorum.replica import Replica
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.voters import ReplicaKey

MS = 1_000
LIFE = Incarnation(7)
#: What the times of the tests are written for; the retry back-off is 20 ms.
SETTINGS = QuorumSettings(
    fetch_timeout_ms=300,
    election_timeout_ms_min=200,
    election_timeout_ms_max=400,
    request_timeout_ms=200,
)


def directory(number: int) -> DirectoryId:
    return DirectoryId(f"{number:032x}")


def replica_of(me: int = 1, *, epoch: int = 3, leader: int | None = None) -> Replica:
    return Replica(
        settings=SETTINGS,
        voters=tuple(Voter(NodeId(n), directory(n), "host", 1) for n in (1, 2, 3)),
        me=ReplicaKey(NodeId(me), directory(me)),
        cluster_id="cluster",
        incarnation=LIFE,
        state=QuorumState(Epoch(epoch), None if leader is None else NodeId(leader), None, None),
        log=LogShape(Offset(0), Offset(0), ()),
        random=random.Random(1),
        now=Microseconds(0),
    )


def step(replica: Replica, event: Event, at_ms: int = 0) -> list[SendRequest]:
    """The requests that the event causes."""
    effects: tuple[Effect, ...] = replica.step(Microseconds(at_ms * MS), event)
    replica.validate()
    return [effect for effect in effects if isinstance(effect, SendRequest)]


def failed(sent: SendRequest) -> RequestFailed:
    return RequestFailed(sent.peer, sent.correlation, LIFE, "reset")


def retried(before: list[SendRequest], after: list[SendRequest]) -> list[tuple[NodeId, Request]]:
    """Peers and requests of ``after``, which must be new ones."""
    assert {one.correlation for one in before}.isdisjoint(one.correlation for one in after)
    return [(one.peer, one.request) for one in after]


def test_a_prospective_asks_again_after_a_back_off() -> None:
    replica = replica_of()
    step(replica, Started())
    asked = step(replica, TimerElapsed(), 400)
    assert (replica.role, [one.peer for one in asked]) == ("prospective", [2, 3])
    assert step(replica, failed(asked[0]), 410) == []
    assert replica.deadline == 430 * MS
    again = step(replica, TimerElapsed(), 430)
    assert retried(asked, again) == [(2, asked[0].request)]


def test_a_prospective_asks_again_whoever_answers_with_an_error() -> None:
    replica = replica_of()
    step(replica, Started())
    asked = step(replica, TimerElapsed(), 400)
    refusal = VoteAnswer(ErrorCode.INCONSISTENT_VOTER_SET, None, Epoch(3), granted=False)
    answer = AnswerReceived(NodeId(2), asked[0].correlation, LIFE, refusal)
    assert step(replica, answer, 410) == []
    assert replica.deadline == 430 * MS
    again = step(replica, TimerElapsed(), 430)
    assert retried(asked, again) == [(2, asked[0].request)]


def test_a_candidate_asks_again_after_a_back_off() -> None:
    replica = replica_of()
    step(replica, Started())
    (asked, _) = step(replica, TimerElapsed(), 400)
    granted = VoteAnswer(ErrorCode.NONE, None, Epoch(3), granted=True)
    step(replica, AnswerReceived(asked.peer, asked.correlation, LIFE, granted), 410)
    votes = step(replica, QuorumStatePersisted(1), 420)
    assert (replica.role, [one.peer for one in votes]) == ("candidate", [2, 3])
    assert step(replica, failed(votes[1]), 430) == []
    assert replica.deadline == 450 * MS
    again = step(replica, TimerElapsed(), 450)
    assert retried(votes, again) == [(3, votes[1].request)]


def test_a_resigned_leader_says_farewell_until_each_has_confirmed() -> None:
    replica = replica_of(leader=1)
    farewells = step(replica, Started())
    assert (replica.role, [one.peer for one in farewells]) == ("resigned", [2, 3])

    def answered(sent: SendRequest, error: ErrorCode) -> AnswerReceived:
        answer = EndQuorumEpochAnswer(error, None, Epoch(3))
        return AnswerReceived(sent.peer, sent.correlation, LIFE, answer)

    assert step(replica, answered(farewells[0], ErrorCode.NONE), 10) == []
    assert step(replica, answered(farewells[1], ErrorCode.INCONSISTENT_VOTER_SET), 10) == []
    assert replica.deadline == 30 * MS
    again = step(replica, TimerElapsed(), 30)
    assert retried(farewells, again) == [(3, farewells[1].request)]
    assert step(replica, answered(again[0], ErrorCode.NONE), 40) == []
    assert step(replica, TimerElapsed(), 100) == []


def test_an_observer_asks_one_voter_at_a_time() -> None:
    replica = replica_of(me=9)
    (asked,) = step(replica, Started())
    # Early and superfluous events, of which a host may send as many as it likes.
    assert step(replica, TimerElapsed(), 50) == []
    assert step(replica, LogFlushed(0), 60) == []
    (again,) = step(replica, failed(asked), 70)
    assert again.peer != asked.peer


def test_the_old_leader_that_is_gone_is_no_news_of_the_new_one() -> None:
    replica = replica_of(leader=2)
    (fetch_from_old,) = step(replica, Started())
    begin = BeginQuorumEpochRequest("cluster", NodeId(1), directory(1), NodeId(3), Epoch(4))
    step(replica, RequestReceived(ConnectionId(1), CorrelationId(1), begin), 10)
    (fetch,) = step(replica, QuorumStatePersisted(1), 20)
    answer = FetchAnswer(
        error=ErrorCode.NONE,
        leader_id=NodeId(3),
        epoch=Epoch(4),
        high_watermark=UNKNOWN_OFFSET,
        log_start_offset=Offset(0),
        diverging=None,
        batches=(),
        records=b"",
    )
    step(replica, AnswerReceived(NodeId(3), fetch.correlation, LIFE, answer), 30)
    assert (replica.role, replica.leader_id, replica.deadline) == ("follower", 3, 330 * MS)
    gone = RequestFailed(NodeId(2), fetch_from_old.correlation, LIFE, "refused", refused=True)
    assert step(replica, gone, 40) == []
    assert replica.deadline == 330 * MS


def test_an_early_timer_does_not_end_the_turn_of_who_goes_first() -> None:
    replica = replica_of(me=2)
    step(replica, Started())
    (_, asked) = step(replica, TimerElapsed(), 400)
    request = VoteRequest(
        cluster_id="cluster",
        voter_id=NodeId(2),
        voter_directory_id=directory(2),
        epoch=Epoch(3),
        candidate_id=NodeId(1),
        candidate_directory_id=directory(1),
        last_epoch=NO_EPOCH,
        end_offset=Offset(0),
        pre_vote=True,
    )
    step(replica, RequestReceived(ConnectionId(1), CorrelationId(1), request), 410)
    granted = VoteAnswer(ErrorCode.NONE, None, Epoch(3), granted=True)
    step(replica, AnswerReceived(asked.peer, asked.correlation, LIFE, granted), 420)
    turn_ends_at = replica.deadline
    assert turn_ends_at is not None
    assert (replica.role, turn_ends_at > 430 * MS) == ("prospective", True)
    assert step(replica, TimerElapsed(), 430) == []
    assert replica.deadline == turn_ends_at
    again = step(replica, TimerElapsed(), -(-turn_ends_at // MS))
    assert (replica.role, [one.peer for one in again]) == ("prospective", [3])


def test_a_follower_whose_fetch_its_leader_misses_does_not_wait_for_the_back_off() -> None:
    replica = replica_of(leader=2)
    (fetch,) = step(replica, Started())
    assert step(replica, failed(fetch), 10) == []
    assert replica.deadline == 30 * MS
    begin = BeginQuorumEpochRequest("cluster", NodeId(1), directory(1), NodeId(2), Epoch(3))
    again = step(replica, RequestReceived(ConnectionId(1), CorrelationId(1), begin), 15)
    assert retried([fetch], again) == [(2, fetch.request)]
    # It is on its way: told once more, the follower has nothing to add.
    assert step(replica, RequestReceived(ConnectionId(1), CorrelationId(2), begin), 16) == []
