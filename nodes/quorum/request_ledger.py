"""Our own requests: which are outstanding, what may be sent when, which answers are stale.

One outstanding request per peer. A request belongs to the role that sent it: when the role changes
it is *orphaned*, so that a late answer tells no more than its epoch. An answer counts only if peer,
correlation and incarnation match (a correlation alone once matched an answer to an earlier life).
"""

import msgspec

from splitbrain.nodes.quorum.effects import AbandonRequest, SendRequest
from splitbrain.nodes.quorum.identifiers import CorrelationId, Incarnation, Microseconds, NodeId
from splitbrain.nodes.quorum.messages import Request
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.nodes.quorum.settings import QuorumSettings


class Outstanding(msgspec.Struct):
    """A request that has been sent, or waits for the quorum state to be durable."""

    correlation: CorrelationId
    request: Request
    #: True once the role that sent it is over.
    orphaned: bool = False


class RequestLedger:
    """Sends requests, at most one at a time per peer, and matches what comes back."""

    def __init__(self, outbox: Outbox, incarnation: Incarnation, settings: QuorumSettings) -> None:
        self._outbox = outbox
        self._incarnation = incarnation
        self._request_timeout_ms = settings.request_timeout_ms
        self._retry_back_off = settings.retry_back_off_ms * 1000
        self._next_correlation = 0
        self._outstanding: dict[NodeId, Outstanding] = {}
        self._not_before: dict[NodeId, Microseconds] = {}

    def next_attempt(self, peer: NodeId) -> Microseconds | None:
        """When this role may send to the peer; None while its last request is outstanding."""
        outstanding = self._outstanding.get(peer)
        if outstanding is not None and not outstanding.orphaned:
            return None
        return self._not_before.get(peer, Microseconds(0))

    def may_send(self, peer: NodeId, now: Microseconds) -> bool:
        """Whether no request of this role is outstanding and no back-off is running."""
        attempt = self.next_attempt(peer)
        return attempt is not None and attempt <= now

    def send(self, peer: NodeId, request: Request, wait_ms: int = 0) -> None:
        """Send, and abandon what is still outstanding to that peer.

        ``wait_ms``: how long the peer itself may take over the answer; added to the timeout.
        """
        self._abandon(peer)
        correlation = CorrelationId(self._next_correlation)
        self._next_correlation += 1
        self._outstanding[peer] = Outstanding(correlation, request)
        timeout_ms = self._request_timeout_ms + wait_ms
        self._outbox.send(SendRequest(peer, correlation, request, timeout_ms))

    def back_off(self, peer: NodeId, now: Microseconds, duration: int | None = None) -> None:
        """Send nothing to the peer for a while (default: the retry back-off), in microseconds."""
        wait = self._retry_back_off if duration is None else duration
        self._not_before[peer] = Microseconds(now + wait)

    def settle(
        self, peer: NodeId, correlation: CorrelationId, incarnation: Incarnation
    ) -> Outstanding | None:
        """Take the matching request off the ledger; None for a stale answer or failure."""
        outstanding = self._outstanding.get(peer)
        if outstanding is None or outstanding.correlation != correlation:
            return None
        if incarnation != self._incarnation:
            return None
        del self._outstanding[peer]
        return outstanding

    def orphan_all(self) -> None:
        """Note that the role is over: forget its back-offs, and what it still waits for."""
        self._not_before.clear()
        for peer in list(self._outstanding):
            outstanding = self._outstanding[peer]
            if self._outbox.withdraw_request(outstanding.correlation):
                del self._outstanding[peer]
            else:
                outstanding.orphaned = True

    def _abandon(self, peer: NodeId) -> None:
        outstanding = self._outstanding.pop(peer, None)
        if outstanding and not self._outbox.withdraw_request(outstanding.correlation):
            self._outbox.emit(AbandonRequest(peer, outstanding.correlation))
