"""Candidate: stands for election in an epoch of its own, with its own vote durable.

Its own vote counts only once it is on disk, so that a single voter, too, leads no epoch that it
could forget. After a lost election it backs off for a random, growing time, then asks for
pre-votes again; it never raises the epoch twice in a row. Source: KIP-595, Raft paper 5.2.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext, earliest
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.vote_round import VoteRound


class Candidate(Role):
    """A voter that has voted for itself."""

    name = RoleName.CANDIDATE

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._round = VoteRound(context, pre_vote=False)
        #: When the election is lost for want of answers.
        self._gives_up_at = context.moment(context.timing.election_timeout())
        #: Set once the election is lost.
        self._backs_off_until: Microseconds | None = None

    def enter(self) -> None:
        self._round.ask()
        self.deadline = earliest(self._gives_up_at, self._round.next_ask)

    def state_persisted(self) -> None:
        if self.context.outbox.state_is_durable:
            self._round.record(self.context.me.node_id, granted=True)
            self._go_on()

    def timer_elapsed(self) -> None:
        if self._backs_off_until is not None:
            if self.context.now >= self._backs_off_until:
                self.context.roles.become_prospective("backed off after a lost election")
            return
        if self.context.now >= self._gives_up_at:
            self._lose()
            return
        self._go_on()

    def vote_answered(self, peer: NodeId, answer: VoteAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            self._round.record(peer, granted=answer.granted)
        else:
            self.context.requests.back_off(peer, self.context.now)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        if refused:
            # No vote will come from a node that does not run: a split vote is known for one at
            # once, and the next attempt need not wait for this one to time out.
            self._round.record(peer, granted=False)
        self._go_on()

    def _go_on(self) -> None:
        if self._backs_off_until is not None:
            return
        if self._round.won:
            self.context.roles.become_leader(tuple(self._round.granted), "a majority of votes")
            return
        if self._round.lost:
            self._lose()
            return
        self._round.ask()
        self.deadline = earliest(self._gives_up_at, self._round.next_ask)

    def _lose(self) -> None:
        self._backs_off_until = self.context.moment(self.context.timing.back_off_after_defeat())
        self.deadline = self._backs_off_until
