import pytest

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId, Offset
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet
from tests.unit.nodes.quorum.replicas import voter_set

A, B = DirectoryId("a" * 32), DirectoryId("b" * 32)


def voter(number: int, directory: DirectoryId = A) -> Voter:
    return Voter(NodeId(number), directory, "host", 1)


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    assert voter_set(count).majority == majority


def test_a_member_counts_once() -> None:
    assert not voter_set(3).is_majority([NodeId(1), NodeId(1)])


def test_the_offset_of_a_majority_is_what_so_many_have_reached() -> None:
    assert voter_set(3).offset_of_majority([Offset(9), Offset(4), Offset(-1)]) == 4
    assert voter_set(5).offset_of_majority([Offset(n) for n in (9, 1, 5, 7, 3)]) == 5


def test_a_wiped_voter_is_no_voter() -> None:
    voters = VoterSet((voter(1), voter(2)), ReplicaKey(NodeId(2), B))
    assert not voters.includes_me
    assert not voters.is_voter(NodeId(2), B)
    assert voters.is_voter(NodeId(2), A)


def test_without_directory_ids_the_node_id_decides() -> None:
    voters = VoterSet((voter(1, NO_DIRECTORY),), ReplicaKey(NodeId(1), B))
    assert voters.includes_me


@pytest.mark.parametrize("wrong", [(), (voter(1), voter(1, B))])
def test_an_empty_or_doubled_set_is_refused(wrong: tuple[Voter, ...]) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        VoterSet(wrong, ReplicaKey(NodeId(1), A))
