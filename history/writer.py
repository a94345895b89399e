"""Writer of events to the run folder's files; the one place of ``history`` that touches a disk.

Each record is one ``write`` of one line before the caller goes on: an invocation is in the file
before its operation is sent, and a completion before anything can depend on it. So the file is a
prefix of the truth whenever the harness dies; only the machine's own death can lose the last second
since an fsync, and only a torn last line. Events stamped by worker processes come in batches that
hold all of them up to a moment: a prefix too, which lags by some milliseconds. It must never
reorder, rewrite or drop a record (design, section 5); where the disk refuses one, the history ends
before it.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.records import Event, EventFields, EventType

#: Time between two fsyncs of one file.
SYNC_INTERVAL_S = 1.0
#: Beginning of an event's line without an index yet.
_UNINDEXED = b'{"index":0,'
_ENCODER = msgspec.json.Encoder()


def stamped_line(event: Event) -> bytes:
    """Return the line of a stamped event behind its index."""
    return _ENCODER.encode(event)[len(_UNINDEXED) :]


class LineWriter:
    """Appender of JSON lines to one file; safe to use from several threads.

    Raises (from every method that writes):
        HarnessError: the disk refuses, for example because it is full.
    """

    def __init__(self, path: Path, *, sync_interval_s: float = SYNC_INTERVAL_S) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._dirty = False
        self._closed = False
        self._sync_failure: HarnessError | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            #: Bytes of whole lines in the file.
            self._length = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise self._failure("open the file", error) from error
        sync = partial(self._sync_regularly, sync_interval_s)
        self._syncer = threading.Thread(target=sync, name=f"fsync {path.name}", daemon=True)
        self._syncer.start()

    def append(self, record: Any) -> None:
        """Write one record as one line; it is in the file when this returns."""
        self.append_lines(_ENCODER.encode(record) + b"\n")

    def append_lines(self, lines: bytes) -> None:
        """Write whole lines, each with its line feed; where the disk refuses, whole ones stay."""
        with self._lock:
            if self._closed:
                message = f"{self._path} is closed"
                raise RuntimeError(message)
            if self._sync_failure is not None:
                # Linux reports a failed write-back once; later success proves nothing.
                raise self._sync_failure
            written = 0
            try:
                while written < len(lines):
                    written += os.write(self._descriptor, memoryview(lines)[written:])
            except OSError as error:
                # Half a line would spoil later lines once there is room again.
                self._length += lines.rfind(b"\n", 0, written) + 1
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, self._length)
                raise self._failure("write to the file", error) from error
            self._length += written
            self._dirty = True

    def sync(self) -> None:
        """Make all appended lines durable."""
        with self._lock:
            if self._closed or not self._dirty:
                return
            self._dirty = False
            descriptor = os.dup(self._descriptor)
        # Outside of the lock: an fsync may take a while, and clients must not wait for it.
        try:
            os.fsync(descriptor)
        except OSError as error:
            self._sync_failure = self._failure("sync the file", error)
            raise self._sync_failure from error
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Sync and close; harmless when called twice."""
        self._closing.set()
        if threading.current_thread() is not self._syncer:
            self._syncer.join()
        try:
            self.sync()
        finally:
            with self._lock:
                if not self._closed:
                    self._closed = True
                    os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sync_regularly(self, interval_s: float) -> None:
        while not self._closing.wait(interval_s):
            # The next append reports it.
            with contextlib.suppress(HarnessError):
                self.sync()

    def _failure(self, action: str, error: OSError) -> HarnessError:
        return HarnessError(
            action,
            str(self._path),
            error.strerror or str(error),
            "Make room or permissions on that disk, or choose another --runs-folder.",
        )


class HistoryWriter:
    """Appender of events, giving each its index and its time in one step.

    Because both are given under one lock, times never decrease with the index. An invocation is
    stamped before it is sent and a completion after it has arrived, so that an operation's interval
    in the history contains its real one.

    Raises (from every method that appends):
        HarnessError: the disk refuses, or has refused before: a history has no gaps.
    """

    def __init__(
        self, path: Path, clock: Callable[[], int], *, sync_interval_s: float = SYNC_INTERVAL_S
    ) -> None:
        """Take a ``clock`` of monotonic nanoseconds since the run's start."""
        self.path = path
        self._lines = LineWriter(path, sync_interval_s=sync_interval_s)
        self._clock = clock
        self._lock = threading.Lock()
        self._next_index = 0
        self._refused: HarnessError | None = None

    def append(
        self, process: int, type_: EventType, f: str, **fields: Unpack[EventFields]
    ) -> Event:
        """Write one event and return it with its index and time."""
        with self._lock:
            event = Event(self._next_index, self._clock(), process, type_, f, **fields)
            self._write(_ENCODER.encode(event) + b"\n", 1)
            return event

    def append_stamped(self, lines: Sequence[bytes]) -> None:
        """Write stamped events, giving each its index.

        Args:
            lines: as ``stamped_line`` makes them, in the order of their times, none older than the
                history's last.
        """
        with self._lock:
            indexed = [b'{"index":%d,%b\n' % pair for pair in enumerate(lines, self._next_index)]
            if indexed:
                self._write(b"".join(indexed), len(indexed))

    def _write(self, lines: bytes, count: int) -> None:
        if self._refused is not None:
            raise self._refused
        try:
            self._lines.append_lines(lines)
        except HarnessError as error:
            self._refused = error
            raise
        self._next_index += count

    @property
    def count(self) -> int:
        """Number of events written so far."""
        return self._next_index

    def close(self) -> None:
        """Sync and close."""
        self._lines.close()
