from splitbrain.nodes.quorum.events import ReadId
from splitbrain.nodes.quorum.identifiers import (
    UNKNOWN_OFFSET,
    ConnectionId,
    DirectoryId,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.linearizable_reads import LinearizableReads
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet

TO_2, TO_3, NEW = ConnectionId(2), ConnectionId(3), ConnectionId(9)
TWO, THREE = NodeId(2), NodeId(3)


def reads_of(count: int) -> LinearizableReads:
    voters = tuple(Voter(NodeId(n), DirectoryId(f"{n:032x}"), "", 0) for n in range(1, count + 1))
    return LinearizableReads(VoterSet(voters, ReplicaKey(NodeId(1), voters[0].directory_id)))


def ready(reads: LinearizableReads) -> list[int]:
    return [read.read_id for read in reads.take_ready()]


def test_a_fetch_already_on_its_way_confirms_nothing() -> None:
    reads = reads_of(3)
    reads.answered(TO_2)
    reads.ask(ReadId(1), Offset(5))
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []
    assert reads.needs(TWO)


def test_a_fetch_after_an_answer_after_the_read_confirms() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(5))
    reads.answered(TO_2)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == [1]
    assert not reads.needs(TWO)


def test_an_answer_on_one_connection_says_nothing_of_a_fetch_on_another() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(5))
    reads.answered(TO_2)
    reads.fetched(TWO, NEW)
    assert ready(reads) == []


def test_a_closed_connection_is_forgotten() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(5))
    reads.answered(TO_2)
    reads.closed(TO_2)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []


def test_five_voters_need_two_others() -> None:
    reads = reads_of(5)
    reads.ask(ReadId(1), Offset(5))
    reads.answered(TO_2)
    reads.answered(TO_3)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []
    reads.fetched(THREE, TO_3)
    assert ready(reads) == [1]


def test_one_round_confirms_every_read_asked_before_it_and_none_after() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(5))
    reads.ask(ReadId(2), Offset(6))
    reads.answered(TO_2)
    reads.ask(ReadId(3), Offset(6))
    reads.fetched(TWO, TO_2)
    assert ready(reads) == [1, 2]
    assert reads.pending_count == 1


def test_a_confirmed_read_still_waits_for_the_first_own_commit() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), UNKNOWN_OFFSET)
    reads.answered(TO_2)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []
    reads.first_commit(Offset(7))
    assert [(read.read_id, read.offset) for read in reads.take_ready()] == [(1, 7)]


def test_a_single_voter_needs_nobody() -> None:
    reads = reads_of(1)
    reads.ask(ReadId(1), Offset(1))
    assert ready(reads) == [1]


def test_every_read_is_given_up_once() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(1))
    assert [read.read_id for read in reads.take_all()] == [1]
    assert reads.take_all() == []
