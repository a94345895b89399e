"""A node's surroundings on an event loop: its timers, and the one thread that waits for the disk.

Jobs of the disk run in the order in which they were given; each one's completion is called on the
loop. After a job has failed no later one runs: what a failed fsync left on the disk is not known,
so nothing may be promised any more.
"""

import asyncio
import threading
import time
from queue import SimpleQueue
from typing import Final

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.surroundings import Action, DiskJob, DiskJobDone

#: Timers of the loop are no finer than this.
_TIMER_S_MIN: Final = 0.001


class LoopTimers:
    """``nodes.server.host.surroundings.Timers`` on one event loop; used on its thread alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> Microseconds:
        """Microseconds on the machine's monotonic clock."""
        return Microseconds(time.monotonic_ns() // 1_000)

    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970 on the machine's clock."""
        return time.time_ns() // 1_000_000

    def call_soon(self, action: Action) -> None:
        """Do it in the loop's next turn."""
        self._loop.call_soon(action)

    def call_later(self, delay_us: int, action: Action) -> asyncio.TimerHandle:
        """Do it after the delay, which is at least a millisecond."""
        return self._loop.call_later(max(delay_us / 1_000_000, _TIMER_S_MIN), action)


class DiskThread:
    """``DiskJobs`` of ``nodes.server.host.surroundings``; owned by the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[DiskJob, DiskJobDone] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: DiskJob, done: DiskJobDone) -> None:
        """Run a job after all earlier ones; ``done`` is called on the loop."""
        self._jobs.put((job, done))

    def stop(self) -> None:
        """Finish the jobs that were given, then end the thread; waits for it."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            failure: Exception | None = None
            try:
                job()
            except Exception as error:  # noqa: BLE001 - whatever a disk job raises stops the node
                failure = error
            try:
                self._loop.call_soon_threadsafe(done, failure)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more
            if failure is not None:
                return
