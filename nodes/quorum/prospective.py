"""Prospective: asks whether it would be elected, before it disturbs anyone (KIP-996).

It changes nothing durable. The leader that it had, if any, is remembered so that a lost pre-vote
leads back to it: the others may well hear that leader. It is not named to peers, for it may be
dead. A *granted* pre-vote may name the dead leader, too; following it was a livelock once.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from nodes.quorum.identifiers import NodeId
from nodes.quorum.messages import ErrorCode, VoteAnswer
from nodes.quorum.request_ledger import Outstanding
from nodes.quorum.role import Role, RoleContext
from nodes.quorum.timeline import earliest
from nodes.quorum.transitions import RoleName
from nodes.quorum.vote_round import VoteRound


class Prospective(Role):
    """A voter that sees no leader and asks for pre-votes."""

    name = RoleName.PROSPECTIVE

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._round = VoteRound(context, pre_vote=True)
        self._gives_up_at = context.moment(context.timing.election_timeout())

    def enter(self) -> None:
        self._round.record(self.context.me.node_id, granted=True)
        self._go_on()

    def timer_elapsed(self) -> None:
        if self.context.now >= self._gives_up_at:
            self._lose("no majority of pre-votes in time")
            return
        self._go_on()

    def vote_answered(self, peer: NodeId, answer: VoteAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            self._round.record(peer, granted=answer.granted)
        else:
            self.context.requests.back_off(peer, self.context.now)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding) -> None:
        super().request_failed(peer, outstanding)
        self._go_on()

    def vote_granted(self) -> None:
        # Somebody stands in this epoch with our vote: let them try before we stand ourselves.
        self.context.roles.become_unattached(
            self.context.durable.epoch, f"voted for {self.context.durable.state.voted_id}"
        )

    def _go_on(self) -> None:
        if self._round.won:
            self.context.roles.become_candidate("a majority of pre-votes")
            return
        if self._round.lost:
            self._lose("a majority refused the pre-vote")
            return
        self._round.ask()
        self.deadline = earliest(self._gives_up_at, self._round.next_ask)

    def _lose(self, reason: str) -> None:
        durable = self.context.durable
        if durable.leader_id is not None and durable.leader_id != self.context.me.node_id:
            self.context.roles.become_follower(durable.epoch, durable.leader_id, reason)
        else:
            self.context.roles.become_unattached(durable.epoch, reason)
