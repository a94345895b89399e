"""Resigned: led this epoch and gave it up, or led it in an earlier life of the process.

It never leads this epoch again: in an earlier life it may have given offsets to records that are
gone from its disk. It tells the other voters until each has confirmed, the best successor first in
the list, and stands again, by pre-vote, only after an election timeout.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import EndQuorumEpochAnswer, EndQuorumEpochRequest, ErrorCode
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext, earliest
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.voters import ReplicaKey


class Resigned(Role):
    """Says farewell."""

    name = RoleName.RESIGNED

    def __init__(self, context: RoleContext, preferred: tuple[ReplicaKey, ...]) -> None:
        super().__init__(context)
        self._preferred = preferred
        #: When it stands itself.
        self._election_at = context.moment(context.timing.election_timeout())
        self._unaware = list(context.voters.others)

    def enter(self) -> None:
        self._go_on()

    def timer_elapsed(self) -> None:
        if self.context.now >= self._election_at:
            self.context.roles.become_prospective("election timeout after the resignation")
            return
        self._go_on()

    def end_answered(self, peer: NodeId, answer: EndQuorumEpochAnswer) -> None:
        if answer.error is ErrorCode.NONE and peer in self._unaware:
            self._unaware.remove(peer)
        else:
            self.context.requests.back_off(peer, self.context.now)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        self._go_on()

    def _go_on(self) -> None:
        requests = self.context.requests
        for peer in self._unaware:
            if requests.may_send(peer, self.context.now):
                requests.send(peer, self._request())
        attempts: list[Microseconds | None] = [requests.next_attempt(p) for p in self._unaware]
        self.deadline = earliest(self._election_at, *attempts)

    def _request(self) -> EndQuorumEpochRequest:
        return EndQuorumEpochRequest(
            cluster_id=self.context.cluster_id,
            leader_id=self.context.me.node_id,
            epoch=self.context.durable.epoch,
            preferred=tuple((key.node_id, key.directory_id) for key in self._preferred),
        )
