"""The voter set, fixed when the storage is formatted, and who counts as a member of it.

Names each voter's directory id: a voter whose disk was wiped has a new one and is an observer from
then on (design, section 9). Where the set carries none (mixed with real static Kafka voters) the
node id alone decides, as in Kafka's ``VoterSet.isVoter``.
"""

from collections.abc import Iterable

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId, Offset
from splitbrain.nodes.quorum.persistent import Voter


class ReplicaKey(msgspec.Struct, frozen=True):
    """A node and its disk."""

    node_id: NodeId
    directory_id: DirectoryId


class VoterSet:
    """The members of the quorum, as one replica knows them; never changes."""

    def __init__(self, voters: tuple[Voter, ...], me: ReplicaKey) -> None:
        """Raise ValueError for an empty set or one that names a node twice."""
        self._by_id = {voter.node_id: voter for voter in voters}
        if not voters or len(self._by_id) != len(voters):
            raise ValueError("the voter set must name each of one or more voters exactly once")
        self.me = me
        #: Node ids, ascending.
        self.ids: tuple[NodeId, ...] = tuple(sorted(self._by_id))
        #: False for an observer, which never votes, stands or counts.
        self.includes_me = self.is_voter(me.node_id, me.directory_id)
        #: The voters that this node sends to, ascending.
        self.others: tuple[NodeId, ...] = tuple(i for i in self.ids if i != me.node_id)
        #: How many voters make a majority.
        self.majority = len(self.ids) // 2 + 1

    def is_voter(self, node_id: NodeId, directory_id: DirectoryId) -> bool:
        """Whether this node on this disk is a member."""
        voter = self._by_id.get(node_id)
        if voter is None:
            return False
        return voter.directory_id in (NO_DIRECTORY, directory_id)

    def directory_of(self, node_id: NodeId) -> DirectoryId:
        """Directory id of a voter as configured; Raises KeyError for a stranger."""
        return self._by_id[node_id].directory_id

    def rank_without(self, absent: NodeId) -> int:
        """This voter's place, from 0, among the voters in ascending order, one left out."""
        return [node_id for node_id in self.ids if node_id != absent].index(self.me.node_id)

    def is_majority(self, members: Iterable[NodeId]) -> bool:
        """Whether these members, each counted once, are a majority of the set."""
        return len(set(members)) >= self.majority

    def offset_of_majority(self, offsets: Iterable[Offset]) -> Offset:
        """Largest offset that a majority has reached; ``offsets`` has one entry per voter."""
        return sorted(offsets, reverse=True)[self.majority - 1]
