"""Reactions of each role to a request that fails, is refused or is answered late.

Each of these is a retry that nothing missed until a mutant left it out: the simulation heals by
other ways, only later.
"""

from collections.abc import Callable

import pytest

from splitbrain.nodes.quorum.admission import fetch_refusal
from splitbrain.nodes.quorum.effects import SendRequest
from splitbrain.nodes.quorum.events import (
    Event,
    LogFlushed,
    QuorumStatePersisted,
    RequestFailed,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.quorum.identifiers import Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import EndQuorumEpochAnswer, ErrorCode, Request, VoteAnswer
from splitbrain.nodes.quorum.replica import Replica
from tests.unit.nodes.quorum.replicas import (
    LIFE,
    MS,
    answered,
    begin,
    directory,
    granted,
    received,
    replica_of,
    sent_by,
    step,
    vote_request,
)


def requests(replica: Replica, event: Event, at_ms: int = 0) -> list[SendRequest]:
    """The requests that the event causes."""
    return sent_by(step(replica, event, at_ms))


def failed(sent: SendRequest) -> RequestFailed:
    return RequestFailed(sent.peer, sent.correlation, LIFE, "reset")


def retried(before: list[SendRequest], after: list[SendRequest]) -> list[tuple[NodeId, Request]]:
    """Peers and requests of ``after``, which must be new ones."""
    assert {sent.correlation for sent in before}.isdisjoint(sent.correlation for sent in after)
    return [(sent.peer, sent.request) for sent in after]


REFUSAL = VoteAnswer(ErrorCode.INCONSISTENT_VOTER_SET, None, Epoch(3), granted=False)


@pytest.mark.parametrize("outcome", [failed, lambda sent: answered(sent, REFUSAL)])
def test_a_prospective_asks_again_after_a_back_off(outcome: Callable[[SendRequest], Event]) -> None:
    replica = replica_of(epoch=3)
    requests(replica, Started())
    first = requests(replica, TimerElapsed(), 400)
    assert (replica.role, [sent.peer for sent in first]) == ("prospective", [2, 3])
    assert requests(replica, outcome(first[0]), 410) == []
    assert replica.deadline == 430 * MS
    again = requests(replica, TimerElapsed(), 430)
    assert retried(first, again) == [(2, first[0].request)]


def test_a_candidate_asks_again_after_a_back_off() -> None:
    replica = replica_of(epoch=3)
    requests(replica, Started())
    (first, _) = requests(replica, TimerElapsed(), 400)
    requests(replica, granted(first, 3), 410)
    votes = requests(replica, QuorumStatePersisted(1), 420)
    assert (replica.role, [sent.peer for sent in votes]) == ("candidate", [2, 3])
    assert requests(replica, failed(votes[1]), 430) == []
    assert replica.deadline == 450 * MS
    again = requests(replica, TimerElapsed(), 450)
    assert retried(votes, again) == [(3, votes[1].request)]


def test_a_resigned_leader_says_farewell_until_each_has_confirmed() -> None:
    replica = replica_of(epoch=3, leader=1)
    farewells = requests(replica, Started())
    assert (replica.role, [sent.peer for sent in farewells]) == ("resigned", [2, 3])

    confirmed = EndQuorumEpochAnswer(ErrorCode.NONE, None, Epoch(3))
    refused = EndQuorumEpochAnswer(ErrorCode.INCONSISTENT_VOTER_SET, None, Epoch(3))
    assert requests(replica, answered(farewells[0], confirmed), 10) == []
    assert requests(replica, answered(farewells[1], refused), 10) == []
    assert replica.deadline == 30 * MS
    again = requests(replica, TimerElapsed(), 30)
    assert retried(farewells, again) == [(3, farewells[1].request)]
    assert requests(replica, answered(again[0], confirmed), 40) == []
    assert requests(replica, TimerElapsed(), 100) == []


def test_an_observer_asks_one_voter_at_a_time() -> None:
    replica = replica_of(9, epoch=3)
    (first,) = requests(replica, Started())
    # Early and superfluous events, of which a host may send as many as it likes.
    assert requests(replica, TimerElapsed(), 50) == []
    assert requests(replica, LogFlushed(0), 60) == []
    (again,) = requests(replica, failed(first), 70)
    assert again.peer != first.peer


def test_the_old_leader_that_is_gone_is_no_news_of_the_new_one() -> None:
    replica = replica_of(epoch=3, leader=2)
    (fetch_from_old,) = requests(replica, Started())
    requests(replica, begin(3, 4), 10)
    (fetch,) = requests(replica, QuorumStatePersisted(1), 20)
    answer = fetch_refusal(ErrorCode.NONE, NodeId(3), Epoch(4), Offset(0))
    requests(replica, answered(fetch, answer), 30)
    assert (replica.role, replica.leader_id, replica.deadline) == ("follower", 3, 330 * MS)
    gone = RequestFailed(NodeId(2), fetch_from_old.correlation, LIFE, "refused", refused=True)
    assert requests(replica, gone, 40) == []
    assert replica.deadline == 330 * MS


def test_an_early_timer_does_not_end_the_turn_of_who_goes_first() -> None:
    replica = replica_of(2, epoch=3)
    requests(replica, Started())
    (_, first) = requests(replica, TimerElapsed(), 400)
    request = vote_request(
        cluster_id="cluster",
        voter_directory_id=directory(2),
        candidate_directory_id=directory(1),
        pre_vote=True,
    )
    requests(replica, received(request), 410)
    requests(replica, granted(first, 3), 420)
    turn_ends_at = replica.deadline
    assert turn_ends_at is not None
    assert (replica.role, turn_ends_at > 430 * MS) == ("prospective", True)
    assert requests(replica, TimerElapsed(), 430) == []
    assert replica.deadline == turn_ends_at
    again = requests(replica, TimerElapsed(), -(-turn_ends_at // MS))
    assert (replica.role, [sent.peer for sent in again]) == ("prospective", [3])


def test_a_follower_whose_fetch_its_leader_misses_does_not_wait_for_the_back_off() -> None:
    replica = replica_of(epoch=3, leader=2)
    (fetch,) = requests(replica, Started())
    assert requests(replica, failed(fetch), 10) == []
    assert replica.deadline == 30 * MS
    again = requests(replica, begin(2, 3), 15)
    assert retried([fetch], again) == [(2, fetch.request)]
    # It is on its way: told once more, the follower has nothing to add.
    assert requests(replica, begin(2, 3, correlation=2), 16) == []
