"""The leader's side of fetching: does the follower's log agree with ours up to where it fetches?

Pure functions over positions. Source: KIP-595 (fetch validation), KIP-101.
"""

from nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from nodes.quorum.log_positions import LogPositions
from nodes.quorum.messages import FetchRequest


def divergence(log: LogPositions, request: FetchRequest) -> tuple[Epoch, Offset] | None:
    """Where the fetching log leaves this one; None if all that it has is here as well.

    Otherwise the largest epoch here not above the follower's last one, and the offset where it
    ends here: the follower cuts back to that and asks again. An empty log never diverges.
    """
    if request.fetch_offset == log.start_offset:
        return None
    epoch, end = log.epochs.end_of(request.last_fetched_epoch, log.start_offset, log.end_offset)
    if epoch == NO_EPOCH:
        return Epoch(0), log.start_offset
    if epoch != request.last_fetched_epoch or request.fetch_offset > end:
        return epoch, end
    return None
