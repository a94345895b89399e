import random

from nodes.quorum.identifiers import DirectoryId, Epoch, Incarnation, Microseconds, NodeId, Offset
from nodes.quorum.persistent import EpochStart, LogShape, QuorumState, Voter
from nodes.quorum.replica import Replica
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.vote_round import VoteRound
from nodes.quorum.voters import ReplicaKey


def vote_round(voter_count: int = 5) -> VoteRound:
    """A round of node 1."""
    directories = [DirectoryId(f"{number:032x}") for number in range(voter_count + 1)]
    replica = Replica(
        settings=QuorumSettings(),
        voters=tuple(
            Voter(NodeId(number), directories[number], "host", 1)
            for number in range(1, voter_count + 1)
        ),
        me=ReplicaKey(NodeId(1), directories[1]),
        cluster_id="cluster",
        incarnation=Incarnation(1),
        state=QuorumState(Epoch(1), None, None, None),
        log=LogShape(Offset(0), Offset(2), (EpochStart(Epoch(1), Offset(0)),)),
        random=random.Random(1),
        now=Microseconds(0),
    )
    return VoteRound(replica._context, pre_vote=False)


def test_a_voter_s_first_answer_counts_and_no_other() -> None:
    votes = vote_round()
    for granted in (True, True, False):
        votes.record(NodeId(2), granted=granted)
    for granted in (False, False, True):
        votes.record(NodeId(3), granted=granted)
    assert (votes.granted, votes.refused) == ([2], [3])
    assert votes.silent == [4, 5]


def test_a_round_is_won_by_a_majority_and_lost_when_none_is_left() -> None:
    won, lost = vote_round(), vote_round()
    states: list[tuple[bool, bool]] = []
    for number in (1, 2, 3):
        won.record(NodeId(number), granted=True)
        lost.record(NodeId(number), granted=False)
        states.append((won.won, lost.lost))
    assert states == [(False, False), (False, False), (True, True)]
    assert not won.lost
    assert not lost.won


def test_a_refusal_that_is_out_of_date_is_asked_for_again() -> None:
    votes = vote_round()
    votes.record(NodeId(2), granted=False)
    votes.record(NodeId(3), granted=True)
    votes.forget_refusal(NodeId(2))
    votes.forget_refusal(NodeId(3))
    assert (votes.granted, votes.refused, votes.silent) == ([3], [], [2, 4, 5])
