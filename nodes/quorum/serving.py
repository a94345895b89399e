"""The leader's side of fetching: does the follower's log agree with ours up to where it fetches?

Pure functions over positions. Sources: KIP-595 (fetch validation), KIP-101, KIP-630; Kafka's
``RaftLog.validateOffsetAndEpoch``.
"""

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import FetchRequest
from splitbrain.nodes.quorum.persistent import SnapshotId


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
