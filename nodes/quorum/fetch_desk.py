"""The leader's desk for fetches: answers what has news, parks what has none (long poll).

A parked fetch is woken by new records, by a high watermark that its sender does not know, by a
read that its sender could confirm, and by its own time. Nothing is answered before the quorum
state of this leadership is durable. At most one fetch per connection is parked.

Sources: KIP-595 (fetch validation), KIP-101, KIP-630; Kafka's ``RaftLog.validateOffsetAndEpoch``.
"""

import msgspec

from splitbrain.nodes.quorum.admission import fetch_refusal
from splitbrain.nodes.quorum.effects import AnswerFetch
from splitbrain.nodes.quorum.events import RequestReceived
from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    ConnectionId,
    Epoch,
    Microseconds,
    Offset,
)
from splitbrain.nodes.quorum.linearizable_reads import LinearizableReads
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import ErrorCode, FetchRequest
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.quorum.role import RoleContext


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
        self._announced: dict[ConnectionId, Offset] = {}

    @property
    def next_expiry(self) -> Microseconds | None:
        """When the first parked fetch must be answered; None while none may be.

        That is, before the quorum state is durable: a time that is over already would have the
        host come back again and again for as long as the disk takes.
        """
        if not self._parked or not self._context.outbox.state_is_durable:
            return None
        return min([parked.expires for parked in self._parked.values()])

    def accept(self, event: RequestReceived, request: FetchRequest, high_watermark: Offset) -> None:
        """Answers or parks a fetch that agrees with the log."""
        expires = self._context.after(max(request.max_wait_ms, 0))
        # A second fetch on a connection replaces the first: its sender has given that one up.
        self._parked[event.connection] = ParkedFetch(event, request, expires)
        self._answer_if_due(event.connection, high_watermark)

    def wake(self, high_watermark: Offset) -> None:
        """Answers every parked fetch that has something to hear by now."""
        for connection in list(self._parked):
            self._answer_if_due(connection, high_watermark)

    def closed(self, connection: ConnectionId) -> None:
        """Note that the connection is gone."""
        self._parked.pop(connection, None)
        self._announced.pop(connection, None)

    def take_all(self) -> list[RequestReceived]:
        """Remove and return what is parked: the leadership is over."""
        events = [parked.event for parked in self._parked.values()]
        self._parked.clear()
        return events

    def _answer_if_due(self, connection: ConnectionId, high_watermark: Offset) -> None:
        parked = self._parked[connection]
        if not self._context.outbox.state_is_durable or not self._has_news(parked, high_watermark):
            return
        del self._parked[connection]
        self._announced[connection] = high_watermark
        self._reads.answered(connection)
        log = self._context.log
        snapshot_id = needed_snapshot(log, parked.request)
        epoch = self._context.durable.epoch
        leader_id = self._context.me.node_id
        refusal = fetch_refusal(ErrorCode.NONE, leader_id, epoch, log.start_offset)
        # The log's start may have moved while the fetch was parked.
        answer = msgspec.structs.replace(
            refusal, high_watermark=high_watermark, snapshot_id=snapshot_id
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

    def _has_news(self, parked: ParkedFetch, high_watermark: Offset) -> bool:
        request = parked.request
        # Fetches before v18 do not say what they know: what this connection was told counts, too.
        announced = self._announced.get(parked.event.connection, UNKNOWN_OFFSET)
        known = max(request.high_watermark, announced)
        is_voter = self._context.voters.is_voter(request.replica_id, request.replica_directory_id)
        log = self._context.log
        return (
            log.end_offset > request.fetch_offset
            or request.fetch_offset < log.start_offset
            or high_watermark > known
            or self._context.now >= parked.expires
            or (is_voter and self._reads.needs(request.replica_id))
        )


def needed_snapshot(log: LogPositions, request: FetchRequest) -> SnapshotId | None:
    """The snapshot with which the fetching log must begin anew; None where records can follow.

    It must where what it lacks, or the place where it leaves this log, lies below our log's start.
    An empty log gets a snapshot wherever there is one: that is less than all the records.
    """
    newest = log.newest_snapshot
    if newest is None or request.fetch_offset == 0:
        return newest
    start, last_epoch = log.start_offset, request.last_fetched_epoch
    is_beyond = request.fetch_offset < start or (start > 0 and last_epoch < log.start_epoch)
    leaves_at_start = request.fetch_offset == start and last_epoch != log.start_epoch
    return newest if is_beyond or leaves_at_start else None


def divergence(log: LogPositions, request: FetchRequest) -> tuple[Epoch, Offset] | None:
    """Where the fetching log leaves this one; None if all that it has is here as well.

    Otherwise the largest epoch here not above the follower's last one, and the offset where it
    ends here: the follower cuts back to that and asks again. An empty log never diverges. Not for
    a log that needs a snapshot.
    """
    if request.fetch_offset == log.start_offset:
        return None
    epoch, end = log.epochs.end_of(request.last_fetched_epoch, log.start_offset, log.end_offset)
    if epoch == NO_EPOCH:
        return Epoch(0), log.start_offset
    if epoch != request.last_fetched_epoch or request.fetch_offset > end:
        return epoch, end
    return None
