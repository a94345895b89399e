from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.vote_round import VoteRound
from tests.unit.nodes.quorum.replicas import replica_of, shape


def vote_round(voter_count: int = 5) -> VoteRound:
    """A round of node 1."""
    replica = replica_of(voter_count=voter_count, epoch=1, log=shape((1, 0), end=2))
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
