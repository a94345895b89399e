"""Samples of ``bench.runner`` while a load runs: memory, and how far the file is behind.

A thread that looks a few times a second; it disturbs what it measures by less than a percent.
"""

import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from splitbrain.history.process_budget import resident_mib
from splitbrain.history.records import Event

_INTERVAL_S = 0.25
#: More than any line of the load that is measured.
_TAIL_BYTES = 4096


class Course(msgspec.Struct, frozen=True):
    """One figure along a run."""

    first: float
    median: float
    last: float
    max: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Course":
        """Its course, rounded to a tenth."""
        if not samples:
            return cls(0.0, 0.0, 0.0, 0.0)
        figures = (samples[0], statistics.median(samples), samples[-1], max(samples))
        return cls(*(round(figure, 1) for figure in figures))


class Sampler:
    """A context: samples until it is left.

    Args:
        history: the file that is being written.
        now: the run's clock, ns.
        is_loading: whether the load is going on; nothing is sampled before and after.
    """

    def __init__(
        self, history: Path, now: Callable[[], int], is_loading: Callable[[], bool]
    ) -> None:
        self._history = history
        self._now = now
        self._is_loading = is_loading
        #: Resident memory of this process, and of the largest of its children, MiB.
        self.parent_mib: list[float] = []
        self.worker_mib: list[float] = []
        #: Age of the newest event in the file, ms.
        self.lag_ms: list[float] = []
        #: When the file was synced, monotonic seconds.
        self.synced_s: list[float] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def longest_unsynced_s(self) -> float:
        """Longest time between two syncs of the file while it was written."""
        return max((b - a for a, b in itertools.pairwise(self.synced_s)), default=0.0)

    def _sync(self, descriptor: int) -> None:
        self._fsync(descriptor)
        self.synced_s.append(time.monotonic())

    def __enter__(self) -> Self:
        self._fsync, os.fsync = os.fsync, self._sync
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync = self._fsync
        self._ending.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ending.wait(_INTERVAL_S):
            if not self._is_loading():
                continue
            self.parent_mib.append(resident_mib(os.getpid()))
            # Those that have just ended weigh nothing.
            largest = max(map(resident_mib, _children()), default=0.0)
            self.worker_mib += [largest] if largest else []
            written = self._newest_time()
            now = self._now()
            if written is not None and self._is_loading():
                self.lag_ms.append((now - written) / 1e6)

    def _newest_time(self) -> int | None:
        with self._history.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")
        # The last piece is empty, or a line that is being written.
        return msgspec.json.decode(lines[-2], type=Event).time if len(lines) > 2 else None


def _children() -> list[int]:
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        try:
            found += map(int, (thread / "children").read_text().split())
        except OSError:
            continue  # the thread has ended, or this kernel does not tell
    return found
