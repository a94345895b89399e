"""The one thread that waits for the disk, so that the event loop never does.

Jobs run in the order in which they were given; each one's completion is called on the loop. After
a job has failed no later one runs: what a failed fsync left on the disk is not known, so nothing
may be promised any more. Must never touch the replica: it sees jobs only.
"""

import asyncio
import threading
from queue import SimpleQueue

from splitbrain.nodes.server.host.surroundings import DiskJob, DiskJobDone


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
