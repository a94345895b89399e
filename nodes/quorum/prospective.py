"""Prospective: asks whether it would be elected, before it disturbs anyone (KIP-996).

It changes nothing durable. The leader that it had, if any, is remembered so that a lost pre-vote
leads back to it: the others may well hear that leader. It is not named to peers, for it may be
dead. A *granted* pre-vote may name the dead leader, too; following it was a livelock once. Where no
epoch is left to stand in (``nodes.quorum.epoch_limit``) it asks nobody, and waits for a leader.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from splitbrain.nodes.quorum.epoch_limit import may_stand
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer, VoteRequest
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext, earliest
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.vote_round import VoteRound


class Prospective(Role):
    """A voter that sees no leader and asks for pre-votes."""

    name = RoleName.PROSPECTIVE

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        #: Until when somebody who is preferred, and stands at the same time, goes first.
        self._yields_until: Microseconds | None = None
        self._has_yielded = False
        self._begin_round()

    def enter(self) -> None:
        self._go_on()

    def timer_elapsed(self) -> None:
        if self.context.now >= self._gives_up_at:
            self._lose("no majority of pre-votes in time")
            return
        if self._yields_until is not None and self.context.now >= self._yields_until:
            # Nothing came of it. A granted vote may be out of date: everybody is asked again.
            self._yields_until = None
            self._begin_round()
        self._go_on()

    def vote_answered(self, peer: NodeId, answer: VoteAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            self._round.record(peer, granted=answer.granted)
        else:
            self.context.requests.back_off(peer, self.context.now)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        self._go_on()

    def vote_granted(self) -> None:
        # Somebody stands in this epoch with our vote: let them try before we stand ourselves.
        self.context.roles.become_unattached(
            self.context.durable.epoch, f"voted for {self.context.durable.state.voted_id}"
        )

    def pre_vote_requested(self, request: VoteRequest, *, granted: bool) -> None:
        # 1. A candidate hears no leader either: its refusal, if it still heard one when it was
        #    asked, is out of date. Without asking again nobody would win where it may not win
        #    itself, since its log is the shorter one.
        # 2. Two that time out together would each win the pre-vote, and then split the votes. Of
        #    equal logs the lower id goes first; of unequal ones the shorter got no pre-vote anyway.
        #    Once, and not for long, for that one may have gone down or be cut off from the others.
        theirs = (request.last_epoch, request.end_offset)
        mine = (self.context.log.last_epoch, self.context.log.end_offset)
        if theirs <= mine:
            self._round.forget_refusal(request.candidate_id)
        is_preferred = theirs == mine and request.candidate_id < self.context.me.node_id
        if granted and is_preferred and not self._has_yielded:
            self._has_yielded = True
            self._yields_until = self.context.moment(self.context.timing.yield_time())
        self._go_on()

    def _begin_round(self) -> None:
        self._round = VoteRound(self.context, pre_vote=True)
        self._round.record(self.context.me.node_id, granted=True)
        self._gives_up_at = self.context.moment(self.context.timing.election_timeout())

    def _go_on(self) -> None:
        if not may_stand(self.context.durable.epoch):
            self.deadline = self._gives_up_at
            return
        if self._round.won and self._yields_until is None:
            self.context.roles.become_candidate("a majority of pre-votes")
            return
        if self._round.lost:
            self._lose("a majority refused the pre-vote")
            return
        self._round.ask()
        self.deadline = earliest(self._gives_up_at, self._yields_until, self._round.next_ask)

    def _lose(self, reason: str) -> None:
        durable = self.context.durable
        if durable.leader_id is not None and durable.leader_id != self.context.me.node_id:
            self.context.roles.become_follower(durable.epoch, durable.leader_id, reason)
        else:
            self.context.roles.become_unattached(durable.epoch, reason)
