"""The core's knowledge of the log: positions, epochs, and how much is durable. No bytes.

Appends and truncations are *submissions*, numbered in one sequence; the host completes them in
that order. A report that covers submission s makes durable what s left behind, less what a later
truncation has taken away since. Below the log's start are records that snapshots stand for.
"""

from collections import deque

from splitbrain.nodes.quorum.errors import InvariantViolation, StorageMismatch
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Offset
from splitbrain.nodes.quorum.leader_epochs import LeaderEpochs
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, SnapshotId


class LogPositions:
    """Start, end, flushed end, high watermark and epochs of this replica's log."""

    def __init__(self, shape: LogShape, high_watermark: Offset) -> None:
        """Take what recovery found, all durable; raises StorageMismatch where it cannot be."""
        before = NO_EPOCH
        if shape.start_offset > 0:
            first = shape.snapshots[0] if shape.snapshots else None
            if first is None or first.end_offset != shape.start_offset:
                raise StorageMismatch(f"no snapshot ends where the log starts: {shape}")
            before = first.epoch
        try:
            self.epochs = LeaderEpochs(shape.epochs, before)
        except InvariantViolation as violation:
            raise StorageMismatch(f"the leader epochs are out of order: {violation}") from violation
        starts = shape.epochs
        if shape.end_offset < shape.start_offset or (
            starts and starts[-1].start_offset >= shape.end_offset
        ):
            raise StorageMismatch(f"the log ends before it begins, or before an epoch: {shape}")
        if shape.end_offset > shape.start_offset and not starts:
            raise StorageMismatch(f"the log has records and no leader epoch: {shape}")
        if shape.snapshots and shape.snapshots[-1].end_offset > shape.end_offset:
            raise StorageMismatch(f"the log ends before its snapshot: {shape}")
        self.start_offset = shape.start_offset
        self.end_offset = shape.end_offset
        #: Those that can be used, oldest first.
        self.snapshots = shape.snapshots
        #: Everything below is durable here.
        self.flushed_end_offset = shape.end_offset
        #: Everything below is committed as far as this node knows; never falls.
        self.high_watermark = min(high_watermark, shape.end_offset)
        if shape.snapshots:
            self.high_watermark = max(self.high_watermark, shape.snapshots[-1].end_offset)
        self._submission = 0
        #: (submission, log end that it leaves), oldest first, not yet durable.
        self._in_flight: deque[tuple[int, Offset]] = deque()

    @property
    def settled(self) -> bool:
        """Whether every submission is durable."""
        return not self._in_flight

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record, NO_EPOCH where there never was one."""
        return self.epochs.last

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """The one that a replica which needs one is told to fetch."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def start_epoch(self) -> Epoch:
        """Epoch of the record before the log's start, NO_EPOCH where there is none."""
        return self.snapshots[0].epoch if self.start_offset > 0 else NO_EPOCH

    def append(self, end_offset: Offset, starts: tuple[EpochStart, ...]) -> int:
        """Move the end; return the submission's number. INV-21: the end must rise."""
        if end_offset <= self.end_offset:
            raise InvariantViolation("INV-21", f"append to {end_offset} at {self.end_offset}")
        for start in starts:
            self.epochs.begin(start)
        self.end_offset = end_offset
        return self._submit()

    def truncate(self, end_offset: Offset) -> int:
        """Cut the end; return the submission's number (INV-21), never below a commit (INV-08)."""
        if not self.start_offset <= end_offset < self.end_offset:
            raise InvariantViolation(
                "INV-21", f"truncation to {end_offset} of [{self.start_offset}, {self.end_offset})"
            )
        if end_offset < self.high_watermark:
            raise InvariantViolation(
                "INV-08", f"truncation to {end_offset} below {self.high_watermark}"
            )
        self.epochs.truncate(end_offset)
        self.end_offset = end_offset
        self.flushed_end_offset = min(self.flushed_end_offset, end_offset)
        # Older appends still in flight now end here at the latest.
        self._in_flight = deque((number, min(end, end_offset)) for number, end in self._in_flight)
        return self._submit()

    def add_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Take note of a durable snapshot. INV-28: of what is committed here, and the newest."""
        newest = self.newest_snapshot
        if snapshot_id.end_offset > self.high_watermark or (
            newest is not None and snapshot_id <= newest
        ):
            raise InvariantViolation(
                "INV-28", f"snapshot {snapshot_id} at {self.high_watermark} after {newest}"
            )
        self.snapshots = (*self.snapshots, snapshot_id)

    def cut_start(self, retained_count: int) -> SnapshotId | None:
        """Forgets older snapshots than so many, and the log below the oldest that stays.

        Returns the snapshot where the log starts now; None where nothing changes.
        """
        if len(self.snapshots) < retained_count:
            return None
        self.snapshots = self.snapshots[-retained_count:]
        first = self.snapshots[0]
        if first.end_offset <= self.start_offset:
            return None
        self.start_offset = first.end_offset
        self.epochs.cut_start(first.end_offset, first.epoch)
        return first

    def replace(self, snapshot_id: SnapshotId) -> int:
        """Let a snapshot stand for the whole log; return the submission's number (INV-08)."""
        if snapshot_id.end_offset < self.high_watermark:
            raise InvariantViolation(
                "INV-08", f"snapshot {snapshot_id} for a log committed to {self.high_watermark}"
            )
        end_offset = snapshot_id.end_offset
        self.snapshots = (snapshot_id,)
        self.epochs.restart(snapshot_id.epoch)
        self.start_offset = self.end_offset = end_offset
        # The snapshot is durable before the log goes.
        self.flushed_end_offset = self.high_watermark = end_offset
        self._in_flight = deque((number, end_offset) for number, _ in self._in_flight)
        return self._submit()

    def flushed(self, submission: int) -> None:
        """Take note that all up to this submission is durable. INV-21: it was submitted."""
        if submission > self._submission:
            raise InvariantViolation("INV-21", f"flush of {submission} of {self._submission}")
        while self._in_flight and self._in_flight[0][0] <= submission:
            self.flushed_end_offset = self._in_flight.popleft()[1]

    def advance_high_watermark(self, offset: Offset) -> None:
        """Raise InvariantViolation (INV-06) if it would fall or pass the log's end."""
        if not self.high_watermark <= offset <= self.end_offset:
            raise InvariantViolation(
                "INV-06",
                f"high watermark {self.high_watermark} to {offset}, log end {self.end_offset}",
            )
        self.high_watermark = offset

    def validate(self) -> None:
        """Raise InvariantViolation (INV-21) if the positions contradict each other."""
        in_order = (
            UNKNOWN_OFFSET <= self.high_watermark <= self.end_offset
            and self.start_offset <= self.flushed_end_offset <= self.end_offset
            and self._snapshots_fit
        )
        settled = self._in_flight or self.flushed_end_offset == self.end_offset
        if not (in_order and settled):
            raise InvariantViolation(
                "INV-21",
                f"start {self.start_offset}, flushed {self.flushed_end_offset}, high watermark"
                f" {self.high_watermark}, end {self.end_offset}, in flight {self._in_flight}",
            )

    @property
    def _snapshots_fit(self) -> bool:
        if not self.snapshots:
            return self.start_offset == 0
        starts_there = self.start_offset in (0, self.snapshots[0].end_offset)
        return starts_there and self.snapshots[-1].end_offset <= max(self.high_watermark, 0)

    def _submit(self) -> int:
        self._submission += 1
        self._in_flight.append((self._submission, self.end_offset))
        return self._submission
