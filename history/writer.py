"""Appends events to the run folder's files; the one place of ``history`` that touches a disk.

Each record is one ``write`` of one line before the caller goes on: an invocation is in the file
before its operation is sent, and a completion before anything can depend on it. So the file is a
prefix of the truth whenever the harness dies; only the machine's own death can lose what the last
second's fsync has not covered, and only a torn last line. It must never reorder, rewrite or drop
a record (design, section 5).
"""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from contracts.errors import HarnessError
from history.records import Event, EventType

#: Time between two fsyncs of one file.
SYNC_INTERVAL_S = 1.0


class LineWriter:
    """Appends JSON lines to one file; safe to use from several threads.

    Raises (from every method that writes):
        HarnessError: the disk refuses, for example because it is full.
    """

    def __init__(self, path: Path, *, sync_interval_s: float = SYNC_INTERVAL_S) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._dirty = False
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise self._failure("open the file", error) from error
        self._syncer = threading.Thread(
            target=self._sync_regularly,
            args=(sync_interval_s,),
            name=f"fsync {path.name}",
            daemon=True,
        )
        self._syncer.start()

    def append(self, record: Any) -> None:
        """Write one record as one line; it is in the file when this returns."""
        with self._lock:
            self._write(record)

    def _write(self, record: Any) -> None:
        if self._closed:
            message = f"{self._path} is closed"
            raise RuntimeError(message)
        line = memoryview(self._encoder.encode(record) + b"\n")
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise self._failure("write to the file", error) from error
        self._dirty = True

    def sync(self) -> None:
        """Make all that was appended durable."""
        with self._lock:
            if self._closed or not self._dirty:
                return
            self._dirty = False
            descriptor = os.dup(self._descriptor)
        # Outside of the lock: an fsync may take a while, and clients must not wait for it.
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise self._failure("sync the file", error) from error
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Sync and close; harmless when called twice."""
        self._closing.set()
        if threading.current_thread() is not self._syncer:
            self._syncer.join()
        self.sync()
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _sync_regularly(self, interval_s: float) -> None:
        while not self._closing.wait(interval_s):
            # The next append or the close meets the same disk and reports it.
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
    """Appends events, giving each its index and its time in one step.

    Because both are given under one lock, times never decrease with the index. An invocation is
    stamped before it is sent and a completion after it has arrived, so that an operation's
    interval in the history contains its real one.
    """

    def __init__(
        self, path: Path, clock: Callable[[], int], *, sync_interval_s: float = SYNC_INTERVAL_S
    ) -> None:
        """``clock`` gives nanoseconds since the run's start, monotonic."""
        self._lines = LineWriter(path, sync_interval_s=sync_interval_s)
        self._clock = clock
        self._lock = threading.Lock()
        self._next_index = 0

    def append(
        self,
        process: int,
        type_: EventType,
        f: str,
        *,
        key: str | None = None,
        value: Any = None,
        node: str | None = None,
        error: str | None = None,
        position: tuple[int, int] | None = None,
        final: bool = False,
    ) -> Event:
        """Write one event and return it with its index and time."""
        with self._lock:
            event = Event(
                index=self._next_index,
                time=self._clock(),
                process=process,
                type=type_,
                f=f,
                key=key,
                value=value,
                node=node,
                error=error,
                position=position,
                final=final,
            )
            self._lines.append(event)
            self._next_index += 1
            return event

    @property
    def count(self) -> int:
        """Number of events written so far."""
        return self._next_index

    def close(self) -> None:
        """Sync and close."""
        self._lines.close()
