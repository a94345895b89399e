"""The leader's desk for fetches: answers what has news, parks what has none (long poll).

A parked fetch is woken by new records, by a high watermark that its sender does not know, by a
read that its sender could confirm, and by its own time. Nothing is answered before the quorum
state of this leadership is durable. At most one fetch per connection is parked.
"""

import msgspec

from splitbrain.nodes.quorum.effects import AnswerFetch
from splitbrain.nodes.quorum.events import RequestReceived
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, ConnectionId, Microseconds, Offset
from splitbrain.nodes.quorum.linearizable_reads import LinearizableReads
from splitbrain.nodes.quorum.messages import ErrorCode, FetchAnswer, FetchRequest
from splitbrain.nodes.quorum.role import RoleContext
from splitbrain.nodes.quorum.serving import needed_snapshot


class ParkedFetch(msgspec.Struct, frozen=True):
    """A fetch that has passed every check and found nothing new."""

    event: RequestReceived
    request: FetchRequest
    #: When it is answered at the latest.
    expires: Microseconds


class FetchDesk:
    """The fetches of one leadership."""

    def __init__(self, context: RoleContext, reads: LinearizableReads) -> None:
        self._context = context
        self._reads = reads
        self._parked: dict[ConnectionId, ParkedFetch] = {}
        #: High watermark in the last answer on each connection.
        self._told: dict[ConnectionId, Offset] = {}

    @property
    def next_expiry(self) -> Microseconds | None:
        """When the first parked fetch must be answered; None while none may be.

        That is, before the quorum state is durable: a time that is over already would have the
        host come back again and again for as long as the disk takes.
        """
        if not self._parked or not self._context.outbox.state_is_durable:
            return None
        return min([parked.expires for parked in self._parked.values()])

    def accept(self, event: RequestReceived, request: FetchRequest, told: Offset) -> None:
        """Answers or parks a fetch that agrees with the log; ``told`` is the high watermark."""
        expires = self._context.after(max(request.max_wait_ms, 0))
        # A second fetch on a connection replaces the first: its sender has given that one up.
        self._parked[event.connection] = ParkedFetch(event, request, expires)
        self._answer_if_due(event.connection, told)

    def wake(self, told: Offset) -> None:
        """Answers every parked fetch that has something to hear by now."""
        for connection in list(self._parked):
            self._answer_if_due(connection, told)

    def closed(self, connection: ConnectionId) -> None:
        """Note that the connection is gone."""
        self._parked.pop(connection, None)
        self._told.pop(connection, None)

    def take_all(self) -> list[RequestReceived]:
        """Remove and return what is parked: the leadership is over."""
        events = [parked.event for parked in self._parked.values()]
        self._parked.clear()
        return events

    def _answer_if_due(self, connection: ConnectionId, told: Offset) -> None:
        parked = self._parked[connection]
        if not self._context.outbox.state_is_durable or not self._has_news(parked, told):
            return
        del self._parked[connection]
        self._told[connection] = told
        self._reads.answered(connection)
        log = self._context.log
        snapshot_id = needed_snapshot(log, parked.request)
        answer = FetchAnswer(
            error=ErrorCode.NONE,
            leader_id=self._context.me.node_id,
            epoch=self._context.durable.epoch,
            high_watermark=told,
            log_start_offset=log.start_offset,
            diverging=None,
            batches=(),
            records=b"",
            # The log's start may have moved while the fetch was parked.
            snapshot_id=snapshot_id,
        )
        self._context.outbox.emit(
            AnswerFetch(
                connection=connection,
                correlation=parked.event.correlation,
                answer=answer,
                read_offset=parked.request.fetch_offset,
                end_offset=log.end_offset if snapshot_id is None else parked.request.fetch_offset,
                max_bytes=parked.request.max_bytes,
            )
        )

    def _has_news(self, parked: ParkedFetch, told: Offset) -> bool:
        request = parked.request
        # Fetches before v18 do not say what they know: what this connection was told counts, too.
        known = max(request.high_watermark, self._told.get(parked.event.connection, UNKNOWN_OFFSET))
        is_voter = self._context.voters.is_voter(request.replica_id, request.replica_directory_id)
        log = self._context.log
        return (
            log.end_offset > request.fetch_offset
            or request.fetch_offset < log.start_offset
            or told > known
            or self._context.now >= parked.expires
            or (is_voter and self._reads.needs(request.replica_id))
        )
