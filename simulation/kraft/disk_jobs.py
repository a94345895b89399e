"""The disk thread of one life in a simulated world: a job runs at once, and is done later.

A job's syncs become durable when it is done; a crash before that keeps some of its steps
(``simulation.disk.file_system``). A process that ends in order waits for the jobs that it has given
(``finish``). Must never run two jobs at a time, nor one after a failure.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from splitbrain.contracts.names import NodeName
from splitbrain.history.timeline_records import TimelineDisk
from splitbrain.nodes.server.host.surroundings import DiskJob, DiskJobDone
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.layout import QUORUM_STATE
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.world.world import Pending, SimulatedWorld

_STREAM: Final = "disk"


class DiskSpeed:
    """How fast one machine's disk is now; outlives the node's process."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._factor = 1
        #: Completes the job in flight, and its timer.
        self._in_flight: tuple[Pending, Callable[[], None]] | None = None

    def slow_down(self, factor: int) -> None:
        """Jobs take so many times as long from now on; a disk that recovers hastens its job too."""
        is_faster = factor < self._factor
        self._factor = factor
        if is_faster and self._in_flight is not None:
            timer, complete = self._in_flight
            if timer.is_pending:
                timer.cancel()
                self.complete_later(complete)

    def complete_later(self, complete: Callable[[], None]) -> int:
        """Run an action when a job that begins now is done; how long that takes, microseconds."""
        latency_us = self.latency_us()
        timer = self._world.after(latency_us, complete)
        # That of an ended life stays here until the next job; hastening it does nothing.
        self._in_flight = (timer, complete)
        return latency_us

    def latency_us(self) -> int:
        """Of the next job."""
        options, world = self._world.scenario.disk, self._world
        if world.chance(_STREAM, options.slow_chance):
            usual_us = world.between(_STREAM, options.latency_us_max, options.slow_us_max)
        else:
            usual_us = world.between(_STREAM, options.latency_us_min, options.latency_us_max)
        return usual_us * self._factor


class SimulatedDiskJobs:
    """``nodes.server.host.surroundings.DiskJobs``."""

    def __init__(
        self,
        world: SimulatedWorld,
        filesystem: MemoryFileSystem,
        speed: DiskSpeed,
        enter: Callable[[Callable[[], None]], None],
        name: str,
    ) -> None:
        """``enter`` runs an action as the node, now or when it is no longer frozen."""
        self._world = world
        self._filesystem = filesystem
        self._speed = speed
        self._enter = enter
        self._name = name
        self._queue: deque[tuple[DiskJob, DiskJobDone]] = deque()
        self._is_busy = False
        self._is_over = False
        #: Set once no job is taken any more: told when those that were given are done.
        self._finished: Callable[[], None] | None = None

    def submit(self, job: DiskJob, done: DiskJobDone) -> None:
        """Run a job after all earlier ones."""
        if self._is_over or self._finished is not None:
            return
        self._queue.append((job, done))
        if not self._is_busy:
            self._begin()

    def stop(self) -> None:
        """Take no more jobs and forget those that wait: the process is no more."""
        self._is_over = True
        self._queue.clear()

    def finish(self, finished: Callable[[], None]) -> None:
        """Take no more jobs and do those that were given, without a word to who gave them.

        ``finished`` is called when they are done, which is now where there are none.
        """
        self._finished = finished
        if self._is_over or not self._is_busy:
            self._is_over = True
            finished()

    def _begin(self) -> None:
        self._is_busy = True
        job, done = self._queue.popleft()
        # In a turn of its own, as a thread would take it.
        self._world.after(0, partial(self._enter, partial(self._run, job, done)))

    def _run(self, job: DiskJob, done: DiskJobDone) -> None:
        if self._is_over:
            return
        failure: Exception | None = None
        self._filesystem.begin_job()
        try:
            job()
        except (StorageError, OSError) as error:
            failure = error
        finally:
            self._filesystem.end_job()
        latency_us = self._speed.complete_later(partial(self._complete, failure, done))
        if self._world.is_recording:
            self._tell(self._filesystem.job_steps, latency_us, failure)
        if self._world.is_watched and (steps := self._filesystem.job_steps):
            # A crash at this leaves the job half done. Nobody waits for a snapshot either.
            name = _name_of(steps).replace("snapshot", "mark")
            self._world.happened(NodeName(self._name), f"disk-{name}")

    def _tell(
        self, steps: Sequence[tuple[str, str]], latency_us: int, failure: Exception | None
    ) -> None:
        """The job as a record of the story of the run."""
        if not steps and failure is None:
            return
        now = self._world.now
        record = TimelineDisk(
            time=now,
            node=self._name,
            name=_name_of(steps) if failure is None else f"{_name_of(steps)} failed",
            until=now + latency_us,
            detail=str(failure or ", ".join(f"{action} {path}" for action, path in steps)),
        )
        self._world.record(record)

    def _complete(
        self, failure: Exception | None, done: Callable[[Exception | None], None]
    ) -> None:
        """The disk is done, also where the process is frozen; the process hears of it later."""
        if self._is_over:
            return
        self._filesystem.complete_job()

        def tell() -> None:
            if self._is_over:
                return
            if failure is not None:
                self._is_over = True
                self._queue.clear()
            self._is_busy = False
            if self._queue:
                self._begin()
            if self._finished is None:
                done(failure)
            elif not self._is_busy:
                self._is_over = True
                self._finished()

        self._enter(tell)


def _name_of(steps: Sequence[tuple[str, str]]) -> str:
    """Return a job's operation in one word."""
    name = "mark"
    for action, path in steps:
        if path.endswith(".log"):
            if action == "truncate":
                return "truncate"
            name = "flush" if name == "mark" else name
        elif ".checkpoint" in path:
            name = "snapshot"
        elif path.endswith(QUORUM_STATE) and name != "snapshot":
            name = "persist"
    return name
