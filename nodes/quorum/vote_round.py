"""Asking every other voter for a vote, or a pre-vote, and counting the answers.

Shared by the prospective (pre-vote) and the candidate (vote). Counts; never decides what follows.
"""

from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import VoteRequest
from splitbrain.nodes.quorum.role import RoleContext


class VoteRound:
    """One election, or its rehearsal, in one epoch."""

    def __init__(self, context: RoleContext, *, pre_vote: bool) -> None:
        self._context = context
        self._pre_vote = pre_vote
        #: Voters that said yes, in the order of arrival, and those that said no.
        self.granted: list[NodeId] = []
        self.refused: list[NodeId] = []

    @property
    def won(self) -> bool:
        """Whether a majority granted, this node included."""
        return self._context.voters.is_majority(self.granted)

    @property
    def lost(self) -> bool:
        """Whether so many refused that no majority is left."""
        voters = self._context.voters
        return len(voters.ids) - len(self.refused) < voters.majority

    @property
    def silent(self) -> list[NodeId]:
        """Voters that have not answered yet."""
        answered = (*self.granted, *self.refused)
        return [peer for peer in self._context.voters.others if peer not in answered]

    @property
    def next_ask(self) -> Microseconds | None:
        """When a request may go to the first of the silent."""
        moments = [self._context.requests.next_attempt(peer) for peer in self.silent]
        return min((moment for moment in moments if moment is not None), default=None)

    def ask(self) -> None:
        """Send to every silent voter that may be sent to now."""
        for peer in self.silent:
            if self._context.requests.may_send(peer, self._context.now):
                self._context.requests.send(peer, self._request(peer))

    def forget_refusal(self, peer: NodeId) -> None:
        """Note that the peer's refusal is out of date: it is asked again."""
        if peer in self.refused:
            self.refused.remove(peer)

    def record(self, voter: NodeId, *, granted: bool) -> None:
        """Count an answer, once per voter."""
        if voter not in self.granted and voter not in self.refused:
            (self.granted if granted else self.refused).append(voter)

    def _request(self, peer: NodeId) -> VoteRequest:
        context = self._context
        return VoteRequest(
            cluster_id=context.cluster_id,
            voter_id=peer,
            voter_directory_id=context.voters.directory_of(peer),
            epoch=context.durable.epoch,
            candidate_id=context.me.node_id,
            candidate_directory_id=context.me.directory_id,
            last_epoch=context.log.last_epoch,
            end_offset=context.log.end_offset,
            pre_vote=self._pre_vote,
        )
