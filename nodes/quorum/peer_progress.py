"""A leader's knowledge of the replicas that fetch from it.

Offsets are *flushed* offsets of the replica: its fetch offset promises so. Knows who is silent;
never decides what follows from it.
"""

from typing import Final

from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Microseconds, NodeId, Offset
from splitbrain.nodes.quorum.messages import ReplicaProgress
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet

#: How many observers are remembered for DescribeQuorum; the longest silent one goes first.
OBSERVERS_COUNT_MAX: Final = 100


class PeerProgress:
    """One replica, as seen by one leader in one epoch."""

    def __init__(self, key: ReplicaKey, now: Microseconds) -> None:
        self.key = key
        #: Durable log end of the replica, UNKNOWN_OFFSET before its first valid fetch.
        self.end_offset = UNKNOWN_OFFSET
        #: When it last fetched anything, whatever came of it; at first when the leadership began.
        self.last_heard = now
        #: When it last fetched records or a snapshot, None before the first time.
        self.last_contact: Microseconds | None = None
        #: When it last fetched records, None before the first time.
        self.last_fetch: Microseconds | None = None
        #: When it last had the whole log.
        self.last_caught_up: Microseconds | None = None

    def heard(self, now: Microseconds) -> None:
        """Note that it fetched; nothing is known of the offset yet."""
        self.contacted(now)
        self.last_fetch = now

    def contacted(self, now: Microseconds) -> None:
        """Note that it fetched a snapshot: a sign of life, no more."""
        self.last_heard = self.last_contact = now

    def reached(self, offset: Offset, log_end: Offset, now: Microseconds) -> None:
        """Its log agrees with the leader's up to this durable offset."""
        self.end_offset = offset
        if offset >= log_end:
            self.last_caught_up = now

    def describe(self) -> ReplicaProgress:
        """For DescribeQuorum; times in ms of the replica's own clock, -1 for never."""
        return ReplicaProgress(
            node_id=self.key.node_id,
            directory_id=self.key.directory_id,
            end_offset=self.end_offset,
            last_fetch_ms=-1 if self.last_fetch is None else self.last_fetch // 1000,
            last_caught_up_ms=-1 if self.last_caught_up is None else self.last_caught_up // 1000,
        )


class PeerTable:
    """Every replica that one leader knows of."""

    def __init__(self, voters: VoterSet, now: Microseconds) -> None:
        self._voters = voters
        self.others: dict[NodeId, PeerProgress] = {
            peer: PeerProgress(ReplicaKey(peer, voters.directory_of(peer)), now)
            for peer in voters.others
        }
        self._observers: dict[ReplicaKey, PeerProgress] = {}

    @property
    def observers(self) -> tuple[PeerProgress, ...]:
        """Replicas that fetch and are no voters, the longest silent first."""
        return tuple(self._observers.values())

    def heard_from(self, key: ReplicaKey, now: Microseconds) -> PeerProgress:
        """Return the entry of a replica that has just fetched; a new one for a new observer."""
        if self._voters.is_voter(key.node_id, key.directory_id):
            peer = self.others[key.node_id]
        else:
            peer = self._observers.pop(key, None) or PeerProgress(key, now)
            self._observers[key] = peer
            while len(self._observers) > OBSERVERS_COUNT_MAX:
                del self._observers[next(iter(self._observers))]
        peer.heard(now)
        return peer

    def contacted(self, key: ReplicaKey, now: Microseconds) -> None:
        """A replica has just fetched a part of a snapshot; of observers nothing depends on it."""
        if self._voters.is_voter(key.node_id, key.directory_id):
            self.others[key.node_id].contacted(now)

    def majority_offset(self, own_flushed: Offset) -> Offset:
        """Largest offset that is durable on a majority of voters, the leader included."""
        offsets = [peer.end_offset for peer in self.others.values()]
        offsets.append(own_flushed)
        return self._voters.offset_of_majority(offsets)

    def majority_heard(self) -> Microseconds | None:
        """When the leader last had heard a majority, itself included; None if it needs nobody."""
        needed_count = self._voters.majority - 1
        if needed_count == 0:
            return None
        heard = sorted([peer.last_heard for peer in self.others.values()], reverse=True)
        return heard[needed_count - 1]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, the one with the longest log first, then by node id."""
        ranked = sorted(self.others.values(), key=lambda p: (-p.end_offset, p.key.node_id))
        return tuple(peer.key for peer in ranked)
