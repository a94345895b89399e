"""The snapshots of one node at work: when due, written from its own state or as sent, and served.

The disk's queue does it in pieces, each a job of its own, so that neither the node nor a vote that
must become durable waits for a whole snapshot. One snapshot is written at a time: one that is
fetched ends whatever is under way, for who must fetch has nothing to tell. A snapshot is read back
before it gets its name, and the state machine's next state is made of what was read. Bytes that a
leader sent wrong do not end the node.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.quorum import effects
from splitbrain.nodes.quorum.events import Event, SnapshotFrozen, SnapshotWritten
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.quorum.messages import ErrorCode, FetchSnapshotAnswer
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host.state_machine import FrozenState, Loading, StateMachine
from splitbrain.nodes.server.host.surroundings import DiskJobs, LogSink
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.snapshots import SnapshotWriter, read_chunk
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.snapshots import SnapshotReader, encode_snapshot

#: Records that are read back in one job of the disk.
_PIECE_COUNT: Final = 2_000


class SnapshotSchedule:
    """When a node writes a snapshot of its state: after so many new bytes, or after so long a time.

    Asked whenever records were applied: a log in which nothing happens needs no snapshot. Source:
    Kafka's SnapshotGenerator.
    """

    def __init__(self, settings: QuorumSettings, now: Microseconds) -> None:
        self._new_bytes_max = settings.snapshot_max_new_record_bytes
        self._interval_us = settings.snapshot_max_interval_ms * 1_000
        self._since = now

    def began(self, now: Microseconds) -> None:
        """Note that a snapshot was begun, or the state was loaded from one."""
        self._since = now

    def is_due(self, new_bytes: int, now: Microseconds) -> bool:
        """Whether one is due, so many bytes after the last one; an interval of 0 is never over."""
        if not new_bytes:
            return False
        is_old = 0 < self._interval_us <= now - self._since
        return new_bytes >= self._new_bytes_max or is_old


class LoadedSnapshot(msgspec.Struct):
    """A state as a snapshot told it."""

    snapshot_id: SnapshotId
    timestamp_ms: int
    loading: Loading


class _Draft:
    """One snapshot on its way to its name; all but ``is_void`` is the disk thread's."""

    def __init__(self, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        #: Set by the owner: nobody wants it any more.
        self.is_void = False
        self.writer: SnapshotWriter | None = None
        self.is_over = False
        #: The problem with it; set at the end.
        self.problem: str | None = None
        self.loaded: LoadedSnapshot | None = None


class SnapshotFiles:
    """A node's work on snapshots, but for when it is due."""

    def __init__(
        self,
        jobs: DiskJobs,
        filesystem: FileSystem,
        folder: Path,
        machine: StateMachine,
        log_lines: LogSink,
    ) -> None:
        """``folder`` is the data folder; ``machine`` is never changed here."""
        self._jobs = jobs
        self._filesystem = filesystem
        self._folder = folder
        self._machine = machine
        self._log_lines = log_lines
        self._draft: _Draft | None = None
        self._loaded: LoadedSnapshot | None = None
        self._feed: Callable[[Event], None] = _nobody
        self._failed: Callable[[Exception], None] = _nobody

    @property
    def is_writing(self) -> bool:
        """Whether a snapshot is under way, own or fetched."""
        return self._draft is not None

    def attach(self, feed: Callable[[Event], None], failed: Callable[[Exception], None]) -> None:
        """Say who gets completions, and who is told that the disk failed."""
        self._feed = feed
        self._failed = failed

    def write(self, state: FrozenState) -> None:
        """Write a snapshot of the node's own; nothing may be under way."""
        draft = self._draft = _Draft(state.snapshot_id)
        self._go_on(draft, self._own_steps(draft, state), lambda: self._written(draft))

    def write_chunk(self, effect: effects.WriteSnapshotChunk) -> None:
        """Take bytes that a leader sent."""
        if effect.position == 0:
            self._drop()
            self._draft = _Draft(effect.snapshot_id)
        draft = self._draft
        if draft is not None:
            self._go_on(draft, self._chunk_steps(draft, effect), lambda: None)

    def freeze(self, effect: effects.FreezeSnapshot) -> None:
        """Check what a leader sent, and make it durable."""
        draft = self._draft
        if draft is not None and draft.snapshot_id == effect.snapshot_id:
            self._go_on(draft, self._seal_steps(draft), lambda: self._frozen(draft))

    def abandon(self, effect: effects.AbandonSnapshot) -> None:
        """Remove what a leader has sent so far."""
        if self._draft is not None and self._draft.snapshot_id == effect.snapshot_id:
            self._drop()

    def take_loaded(self, snapshot_id: SnapshotId) -> LoadedSnapshot:
        """Return the state of the snapshot that was frozen last, once."""
        loaded, self._loaded = self._loaded, None
        assert loaded is not None
        assert loaded.snapshot_id == snapshot_id
        return loaded

    def answer(
        self, effect: effects.AnswerFetchSnapshot, answer: Callable[[FetchSnapshotAnswer], None]
    ) -> None:
        """Read what a peer asks for, and answer it."""
        read: list[tuple[bytes, int] | None] = []

        def job() -> None:
            try:
                found = read_chunk(
                    self._filesystem,
                    self._folder,
                    effect.snapshot_id,
                    effect.position,
                    effect.max_bytes,
                )
                read.append(found)
            except FileNotFoundError:
                read.append(None)

        def done(failure: Exception | None) -> None:
            if failure is None:
                answer(_filled(effect.answer, read[0]))
            else:
                self._failed(failure)

        self._jobs.submit(job, done)

    def _own_steps(self, draft: _Draft, state: FrozenState) -> Iterator[None]:
        writer = draft.writer = self._begin(draft)
        batches = encode_snapshot(state.snapshot_id, state.timestamp_ms, state.values())
        for batch in batches:
            writer.append(batch)
            yield
        yield from self._seal_steps(draft)

    def _chunk_steps(self, draft: _Draft, effect: effects.WriteSnapshotChunk) -> Iterator[None]:
        if draft.writer is None:
            draft.writer = self._begin(draft)
        draft.writer.append(effect.data)
        yield from ()

    def _seal_steps(self, draft: _Draft) -> Iterator[None]:
        """Sync, read back, name; the state that was read is kept."""
        writer = draft.writer
        assert writer is not None
        writer.sync()
        yield
        loading = self._machine.begin_loading()
        try:
            reader = SnapshotReader(draft.snapshot_id, writer.read_back())
            for number, record in enumerate(reader.records(), 1):
                loading.add(record.value or b"")
                if number % _PIECE_COUNT == 0:
                    yield
        except (WireError, CorruptStorageError) as error:
            draft.problem = str(error)
            writer.abandon()
            return
        yield
        writer.publish()
        draft.loaded = LoadedSnapshot(draft.snapshot_id, reader.timestamp_ms, loading)

    def _begin(self, draft: _Draft) -> SnapshotWriter:
        return SnapshotWriter(self._filesystem, self._folder, draft.snapshot_id)

    def _go_on(self, draft: _Draft, steps: Iterator[None], over: Callable[[], None]) -> None:
        """Have the disk take one step after the other, then say so, unless the draft is void."""
        ended: list[bool] = []

        def job() -> None:
            if not draft.is_void and next(steps, _END) is _END:
                ended.append(True)

        def done(failure: Exception | None) -> None:
            if failure is not None:
                self._failed(failure)
            elif draft.is_void:
                return
            elif ended:
                over()
            else:
                self._jobs.submit(job, done)

        self._jobs.submit(job, done)

    def _written(self, draft: _Draft) -> None:
        self._draft = None
        name = draft.snapshot_id
        if draft.problem is None:
            self._log_lines.write(
                "info", "snapshot written", end_offset=name.end_offset, epoch=name.epoch
            )
            self._feed(SnapshotWritten(name))
        else:
            self._log_lines.write("error", "snapshot not written", reason=draft.problem)

    def _frozen(self, draft: _Draft) -> None:
        self._draft = None
        self._loaded = draft.loaded
        if draft.problem is not None:
            self._log_lines.write("warning", "fetched snapshot refused", reason=draft.problem)
        self._feed(SnapshotFrozen(draft.snapshot_id, draft.problem))

    def _drop(self) -> None:
        draft, self._draft = self._draft, None
        if draft is None:
            return
        draft.is_void = True

        def job() -> None:
            # It may have its name by now, or have been given up: then nothing is left to remove.
            if draft.writer is not None and draft.loaded is None and draft.problem is None:
                draft.writer.abandon()

        self._jobs.submit(job, self._report_failure)

    def _report_failure(self, failure: Exception | None) -> None:
        if failure is not None:
            self._failed(failure)


def _filled(answer: FetchSnapshotAnswer, read: tuple[bytes, int] | None) -> FetchSnapshotAnswer:
    """Return the answer with what was read of the file; None: it is gone."""
    if read is None:
        return _refused(answer, ErrorCode.SNAPSHOT_NOT_FOUND)
    data, size_bytes = read
    if not data:
        return _refused(answer, ErrorCode.POSITION_OUT_OF_RANGE)
    return msgspec.structs.replace(answer, data=data, size_bytes=size_bytes)


def _refused(answer: FetchSnapshotAnswer, error: ErrorCode) -> FetchSnapshotAnswer:
    return msgspec.structs.replace(answer, error=error, snapshot_id=None, position=0)


_END: Final = object()


def _nobody(_: object) -> None:
    """Nobody listens: before the node is put together."""
