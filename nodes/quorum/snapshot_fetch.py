"""A snapshot on its way from the leader: how much of it is here, and which answer brings more.

Pure positions; the bytes go to the host as they come. A misfit is a remote's mistake and
makes the follower begin anew. Must never take bytes for another place or another snapshot.
"""

from enum import Enum

from splitbrain.nodes.quorum.messages import ErrorCode, FetchSnapshotAnswer, FetchSnapshotRequest
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.quorum.role import RoleContext


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
    """One snapshot that one follower fetches from one leader."""

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

    def take(self, answer: FetchSnapshotAnswer, asked: FetchSnapshotRequest) -> Fit:
        """Take note of an answer."""
        if self.is_whole or (asked.snapshot_id, asked.position) != (
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
