"""The follower's side of fetching: making the request, checking the answer, where to truncate.

Pure functions over positions; the follower acts on them. A leader's answer is a remote's word: what
does not fit is refused with a reason, it is never an invariant of ours. Sources: KIP-595, KIP-101.
"""

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import BatchHeader, FetchAnswer, FetchRequest
from splitbrain.nodes.quorum.persistent import EpochStart
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
