"""Unattached: knows no leader of its epoch.

A voter waits for one, or for a candidate, until its election timeout; then it becomes prospective.
An observer never stands: it asks the voters in turn who leads.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from splitbrain.nodes.quorum.fetching import fetch_request
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import FetchAnswer, FetchRequest
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext
from splitbrain.nodes.quorum.transitions import RoleName


class Unattached(Role):
    """Waits for a leader."""

    name = RoleName.UNATTACHED

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._election_at = context.moment(context.timing.election_timeout())
        #: Observers only: how many voters were asked, and when to ask the next one.
        self._asked_count = 0

    def enter(self) -> None:
        if self.context.voters.includes_me:
            self.deadline = self._election_at
        else:
            self._ask_a_voter()

    def timer_elapsed(self) -> None:
        if not self.context.voters.includes_me:
            self._ask_a_voter()
        elif self.context.now >= self._election_at:
            self.context.roles.become_prospective("election timeout")

    def vote_granted(self) -> None:
        # The candidate gets a whole election timeout to win with this vote.
        self._election_at = self.context.moment(self.context.timing.election_timeout())
        self.deadline = self._election_at

    def log_flushed(self) -> None:
        self._ask_a_voter()

    def fetch_answered(self, peer: NodeId, answer: FetchAnswer, request: FetchRequest) -> None:
        # A voter that named a leader has made a follower of us already.
        self.context.requests.back_off(peer, self.context.now)
        self._ask_a_voter()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        self._ask_a_voter()

    def _ask_a_voter(self) -> None:
        """Asks the next voter in turn that may be asked now; one at a time."""
        context = self.context
        if context.voters.includes_me:
            return
        if not context.log.settled:
            # A fetch offset says that all before it is flushed (INV-07).
            self.deadline = None
            return
        peers = context.voters.others
        attempts = {peer: context.requests.next_attempt(peer) for peer in peers}
        if None in attempts.values():
            self.deadline = None
            return
        for step in range(len(peers)):
            peer = peers[(self._asked_count + step) % len(peers)]
            if context.requests.may_send(peer, context.now):
                self._asked_count += step + 1
                wait_ms = context.settings.fetch_max_wait_ms
                context.requests.send(peer, fetch_request(context), wait_ms)
                self.deadline = None
                return
        self.deadline = min(
            (Microseconds(moment) for moment in attempts.values() if moment is not None),
            default=None,
        )
