"""The follower's side of fetching: making the request, checking the answer, where to truncate.

Positions alone; the follower acts on them. A leader's answer is a remote's word: what does not fit
is refused, it is never an invariant of ours. Sources: KIP-595, KIP-101, KIP-630.
"""

from enum import Enum

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import (
    BatchHeader,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from splitbrain.nodes.quorum.persistent import EpochStart, SnapshotId
from splitbrain.nodes.quorum.role import RoleContext


def fetch_request(context: RoleContext) -> FetchRequest:
    """Return a fetch from the log's end, in the present epoch."""
    log = context.log
    return FetchRequest(
        cluster_id=context.cluster_id,
        replica_id=context.me.node_id,
        replica_directory_id=context.me.directory_id,
        epoch=context.durable.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        high_watermark=log.high_watermark,
        max_wait_ms=context.settings.fetch_max_wait_ms,
        max_bytes=context.settings.fetch_max_bytes,
    )


def refusal_of_batches(log: LogPositions, answer: FetchAnswer) -> str | None:
    """Why these batches may not be appended; None if they continue the log.

    Offsets must follow each other without gap, epochs must not fall nor pass the answer's.
    """
    offset = log.end_offset
    epoch = log.last_epoch
    for batch in answer.batches:
        if batch.base_offset != offset or batch.last_offset < batch.base_offset:
            return f"batch {batch.base_offset}..{batch.last_offset} where {offset} should begin"
        if not max(epoch, 0) <= batch.epoch <= answer.epoch:
            return f"batch of epoch {batch.epoch} after {epoch} from a leader of {answer.epoch}"
        offset = Offset(batch.last_offset + 1)
        epoch = batch.epoch
    return None


def epoch_starts(log: LogPositions, batches: tuple[BatchHeader, ...]) -> tuple[EpochStart, ...]:
    """Return the epochs that begin with these batches.

    In a log that has lost its beginning the first batch begins one, also where it goes on with the
    epoch of the record before the log's start.
    """
    last_epoch = NO_EPOCH if log.epochs.is_empty else log.last_epoch
    starts: list[EpochStart] = []
    for batch in batches:
        if batch.epoch > last_epoch:
            last_epoch = batch.epoch
            starts.append(EpochStart(batch.epoch, batch.base_offset))
    return tuple(starts)


def truncation_offset(log: LogPositions, diverging: tuple[Epoch, Offset]) -> Offset:
    """Where this log must end so that it may agree with the leader's.

    The leader named its largest epoch not above ours and the offset where that epoch ends there;
    we keep what both may have of it. Several rounds may be needed.

    Where that epoch is not one of ours the leader's offset says nothing of our batches, and may lie
    within one: we drop our later epochs, and ask again. Source: Kafka's
    ``ReplicatedLog.truncateToEndOffset``.
    """
    epoch, leader_end = diverging
    found, end = log.epochs.end_of(epoch, log.start_offset, log.end_offset)
    if found == NO_EPOCH:
        return log.start_offset
    if found != epoch:
        return max(log.start_offset, end)
    return max(log.start_offset, min(end, leader_end))


class Fit(Enum):
    """Verdict on an answer."""

    #: It has the next bytes.
    MORE = "more"
    #: It has the last bytes.
    LAST = "last"
    #: The leader does not have this snapshot any more, or makes no sense: begin anew.
    GONE = "gone"
    #: It is no answer to what is fetched now, or an error that may pass.
    USELESS = "useless"


class SnapshotFetch:
    """One snapshot that one follower fetches from one leader, and how much of it is here.

    The bytes go to the host as they come; none are taken for another place or another snapshot.
    """

    def __init__(self, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        #: Bytes that have come, in order.
        self.position = 0
        #: Whether all have come; the host checks them and makes them durable then.
        self.is_whole = False

    def request(self, context: RoleContext) -> FetchSnapshotRequest:
        """Asks for the next bytes, in the present epoch."""
        return FetchSnapshotRequest(
            cluster_id=context.cluster_id,
            replica_id=context.me.node_id,
            replica_directory_id=context.me.directory_id,
            epoch=context.durable.epoch,
            snapshot_id=self.snapshot_id,
            position=self.position,
            max_bytes=context.settings.fetch_snapshot_max_bytes,
        )

    def take(self, answer: FetchSnapshotAnswer, request: FetchSnapshotRequest) -> Fit:
        """Take note of an answer."""
        if self.is_whole or (request.snapshot_id, request.position) != (
            self.snapshot_id,
            self.position,
        ):
            return Fit.USELESS
        lost = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
        if answer.error in lost:
            return Fit.GONE
        if answer.error is not ErrorCode.NONE:
            return Fit.USELESS
        end = answer.position + len(answer.data)
        fits = (answer.snapshot_id, answer.position) == (self.snapshot_id, self.position)
        if not (fits and self.position < end <= answer.size_bytes):
            return Fit.GONE
        self.position = end
        self.is_whole = end == answer.size_bytes
        return Fit.LAST if self.is_whole else Fit.MORE
