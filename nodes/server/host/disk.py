"""Performs the storage effects: appends at once, and lets a queue of jobs wait for the disk.

Flushes are grouped: while one runs, appends gather, and the next one covers them all. A truncation
runs alone: the node performs no effect until it is done, so that nothing is read or appended behind
its back. Source: the contracts of ``nodes.storage.log`` and ``nodes.quorum.effects``.
"""

from collections.abc import Callable, Iterator

from splitbrain.nodes.quorum import effects
from splitbrain.nodes.quorum.events import Event, LogFlushed, QuorumStatePersisted
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, Offset
from splitbrain.nodes.server.host.surroundings import DiskJobs, Timers
from splitbrain.nodes.storage.durable_mark import LogPosition
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.wire.batches import RecordBatch
from splitbrain.nodes.wire.control import LeaderChange


class Disk:
    """Log and quorum state of one node."""

    def __init__(
        self, jobs: DiskJobs, timers: Timers, log: LogStore, quorum_state: QuorumStateFile
    ) -> None:
        self._jobs = jobs
        self._timers = timers
        self._log = log
        self._quorum_state = quorum_state
        self._feed: Callable[[Event], None] = _nobody
        self._failed: Callable[[Exception], None] = _nobody
        #: Last log effect that was submitted, and the one up to which a flush is under way.
        self._submitted = 0
        self._flushing: int | None = None
        #: Whether effects must wait.
        self.is_truncating = False

    @property
    def end_position(self) -> LogPosition:
        """Where the bytes of the log end, those that wait for a flush included."""
        return self._log.end_position

    def attach(self, feed: Callable[[Event], None], failed: Callable[[Exception], None]) -> None:
        """Say who gets completions, and who is told, once, that the disk failed."""
        self._feed = feed
        self._failed = failed

    def persist(self, effect: effects.PersistQuorumState) -> None:
        """Make the quorum state durable."""
        self._jobs.submit(
            lambda: self._quorum_state.write(effect.state),
            lambda failure: self._complete(failure, QuorumStatePersisted(effect.version)),
        )

    def append_leader_change(self, effect: effects.AppendLeaderChange) -> None:
        """Append the record that opens an epoch; raises StorageFailed."""
        change = LeaderChange(
            leader_id=effect.leader_id,
            voters=tuple((voter, NO_DIRECTORY) for voter in effect.voters),
            granting_voters=tuple((voter, NO_DIRECTORY) for voter in effect.granting_voters),
        )
        self._log.append_control(
            effect.base_offset, effect.epoch, self._timers.wall_clock_ms(), change
        )
        self._appended(effect.submission)

    def append_records(self, effect: effects.AppendRecords) -> None:
        """Append a batch of commands; raises StorageFailed."""
        self._log.append_records(
            effect.base_offset,
            effect.epoch,
            self._timers.wall_clock_ms(),
            [(None, payload) for payload in effect.payloads],
        )
        self._appended(effect.submission)

    def append_batches(self, effect: effects.AppendBatches) -> None:
        """Append what the leader sent, byte for byte; raises StorageFailed."""
        self._log.append_raw(effect.records, effect.batches)
        self._appended(effect.submission)

    def truncate(self, effect: effects.TruncateLog) -> None:
        """Drop the end of the log; ``is_truncating`` until it is done."""
        self.is_truncating = True
        self._submitted = effect.submission

        def done(failure: Exception | None) -> None:
            self.is_truncating = False
            self._complete(failure, LogFlushed(effect.submission))

        self._jobs.submit(lambda: self._log.truncate(effect.end_offset), done)

    def replace(self, effect: effects.ReplaceLog, replaced: Callable[[], None]) -> None:
        """Drop the whole log for a snapshot; ``is_truncating`` until it is done.

        ``replaced`` is called then, before anything else happens.
        """
        self.is_truncating = True
        self._submitted = effect.submission

        def done(failure: Exception | None) -> None:
            self.is_truncating = False
            if failure is None:
                replaced()
            self._complete(failure, LogFlushed(effect.submission))

        self._jobs.submit(lambda: self._log.replace(effect.snapshot_id), done)

    def cut_start(self, effect: effects.CutLogStart) -> None:
        """Let the log start later; what lies below is removed later."""
        self._jobs.submit(self._log.cut_start(effect.snapshot_id), self._done_unheard)

    def read(self, from_offset: Offset, end_offset: Offset, max_bytes: int) -> bytes:
        """Whole batches as they lie in the log; raises StorageFailed."""
        return self._log.read(from_offset, end_offset, max_bytes)

    def batches(self, from_offset: Offset, end_offset: Offset) -> Iterator[RecordBatch]:
        """Decoded batches; raises StorageError."""
        return self._log.batches(from_offset, end_offset)

    def close(self) -> None:
        """Finish what was submitted and close the files."""
        self._feed = self._failed = _nobody
        self._jobs.stop()
        self._log.close()

    def _appended(self, submission: int) -> None:
        self._submitted = submission
        if self._flushing is None:
            self._flush()

    def _flush(self) -> None:
        submission = self._flushing = self._submitted
        point = self._log.prepare_flush()

        def flush() -> None:
            self._log.flush(point)

        def done(failure: Exception | None) -> None:
            self._flushing = None
            self._complete(failure, LogFlushed(submission))
            more = self._submitted > submission and self._flushing is None
            if failure is None and more and not self.is_truncating:
                self._flush()

        self._jobs.submit(flush, done)
        self._jobs.submit(self._log.persist_mark, self._done_unheard)

    def _done_unheard(self, failure: Exception | None) -> None:
        if failure is not None:
            self._failed(failure)

    def _complete(self, failure: Exception | None, event: Event) -> None:
        if failure is None:
            self._feed(event)
        else:
            self._failed(failure)


def _nobody(_: object) -> None:
    """Nobody listens: before the node is put together and after its end."""
