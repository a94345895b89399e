"""The quorum state in memory and on its way to the disk: epoch, leader, vote.

Within an epoch a vote and a leader, once set, never change (INV-04); the epoch never falls. Every
change is submitted at once; ``outbox`` holds the messages that depend on it. Never decides.
"""

import msgspec

from splitbrain.nodes.quorum.epoch_limit import LAST_EPOCH
from splitbrain.nodes.quorum.errors import HaltRequested, InvariantViolation
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, Epoch, NodeId
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.quorum.voters import ReplicaKey


class DurableState:
    """Owner of the replica's QuorumState."""

    def __init__(self, state: QuorumState, outbox: Outbox) -> None:
        self.state = state
        self._outbox = outbox

    @property
    def epoch(self) -> Epoch:
        """The present epoch; never falls."""
        return self.state.epoch

    @property
    def leader_id(self) -> NodeId | None:
        """Leader of the present epoch, if it was ever known here; it may be dead."""
        return self.state.leader_id

    @property
    def voted(self) -> ReplicaKey | None:
        """For whom this node voted in the present epoch."""
        if self.state.voted_id is None:
            return None
        return ReplicaKey(self.state.voted_id, self.state.voted_directory_id or NO_DIRECTORY)

    def enter_epoch(
        self, epoch: Epoch, *, leader_id: NodeId | None = None, voted: ReplicaKey | None = None
    ) -> None:
        """Move to a higher epoch (INV-04), which leaves enough for later elections (INV-29)."""
        if epoch <= self.epoch:
            raise InvariantViolation("INV-04", f"epoch {self.epoch} to {epoch}")
        if epoch > LAST_EPOCH:
            raise InvariantViolation("INV-29", f"epoch {self.epoch} to {epoch}, above {LAST_EPOCH}")
        node_id, directory_id = (voted.node_id, voted.directory_id) if voted else (None, None)
        self._submit(QuorumState(epoch, leader_id, node_id, directory_id))

    def set_leader(self, leader_id: NodeId) -> None:
        """Note who leads the present epoch; raises HaltRequested if somebody else does.

        A peer's claim or our own, one is a lie.
        """
        if self.leader_id == leader_id:
            return
        if self.leader_id is not None:
            raise HaltRequested(
                f"two leaders in epoch {self.epoch}: {self.leader_id} and {leader_id}"
            )
        self._submit(msgspec.structs.replace(self.state, leader_id=leader_id))

    def vote(self, candidate: ReplicaKey) -> None:
        """Votes in the present epoch. Raises InvariantViolation (INV-04) for a second vote."""
        if self.voted == candidate:
            return
        if self.voted is not None:
            raise InvariantViolation(
                "INV-04", f"vote for {candidate} after {self.voted} in epoch {self.epoch}"
            )
        node_id, directory_id = candidate.node_id, candidate.directory_id
        self._submit(QuorumState(self.epoch, self.leader_id, node_id, directory_id))

    def _submit(self, state: QuorumState) -> None:
        self.state = state
        self._outbox.persist(state)
