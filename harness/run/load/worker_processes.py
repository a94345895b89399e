"""The worker processes of one load, and the one history that becomes of what they tell.

Their messages are merged up to the oldest watermark and written at once, so the history is at any
moment all that happened up to a moment some milliseconds ago. When a worker process dies, the
operations that it began after its last shipment are known to nobody but the system under test,
which later reads may show; so the history ends at the dead one's watermark, operations open there
become ``info``, and the run fails. Whoever is far ahead of the others is not listened to until they
follow, so that no more is held than the backlog allows.
"""

import asyncio
import contextlib
import itertools
import pickle
import time
from collections.abc import Callable
from typing import Any

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.frames import frame
from splitbrain.harness.run.clients import LoadSetup
from splitbrain.harness.run.load.merge import ENDED, Merge
from splitbrain.harness.run.load.messages import (
    Assignment,
    Begin,
    End,
    Ended,
    Ready,
    Shipment,
    Unsettled,
    final_reads_of,
)
from splitbrain.harness.run.load.seat import Processes
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event
from splitbrain.history.writer import HistoryWriter
from splitbrain.workloads.workload import Workload

#: Longest silence of a worker process that lives; it speaks many times a second.
SILENCE_MAX_S = 30.0
#: A fresh interpreter that does not report in this time is taken for broken.
START_PATIENCE_S = 60.0
#: Time that a worker process gets beyond the longest operation to end in order.
END_PATIENCE_S = 30.0
#: How often silence is looked for.
_WATCH_INTERVAL_S = 0.5
#: Lead that one worker process may have over the others.
BACKLOG_BYTES_MAX = 64 << 20
#: Error class of operations that were open where a history ends for a dead worker process.
WORKER_DIED = "worker-died"


class Child(FramedChild):
    """One worker process, which ends by itself when this end of its input is closed.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, number: int, assignment: bytes) -> None:
        super().__init__(f"{__package__}.worker")
        self.number = number
        self._reason: str | None = None
        self.is_ready = False
        #: Whether it has said that nothing more will come.
        self.has_ended = False
        #: Whether it is not listened to, being far ahead of the others.
        self.is_ahead = False
        #: When it last said something, on the monotonic clock, s.
        self.heard_s = time.monotonic()
        with contextlib.suppress(OSError):  # then its output ends, which says more
            self.send_frame(assignment)

    def say(self, message: Any) -> None:
        """Send it a message, after what it has not taken yet."""
        with contextlib.suppress(OSError):
            self.send(message)

    def hear(self) -> list[Any]:
        """Messages that have arrived whole; to be called when its output can be read."""
        self.receive()
        self.heard_s = time.monotonic()
        return list(self.arrived())

    def kill_for(self, reason: str) -> None:
        """End it at once for this reason, a clause; its output then comes to an end."""
        self._reason = reason
        self.kill()

    def story(self) -> str:
        """How it ended, as a clause."""
        how = self.end()
        return how if self._reason is None else f"{self._reason} and was killed"

    def close(self) -> None:
        """Make sure that it is gone, and forget it."""
        if self.has_ended:
            self.end()
        super().close()


class WorkerProcesses:
    """All worker processes of one load; used once, on one event loop."""

    def __init__(
        self,
        *,
        setup: LoadSetup,
        open_client: Callable[[Route], Client],
        history: HistoryWriter,
        clock: RunClock,
        traffic: Traffic,
        processes: Processes,
        stop: Stop,
    ) -> None:
        """Prepare the assignments; no process is started yet.

        Raises:
            HarnessError: the system's adapter or the workload cannot be sent to a process.
        """
        self._workload: Workload = setup.workload
        self._load = load = setup.load
        self._history, self._traffic = history, traffic
        self._processes, self._stop = processes, stop
        self._shares = shares(load.concurrency, load.processes_needed)
        self._merge = Merge(len(self._shares))
        self._assignments = [
            _sendable(Assignment(slots, setup, open_client, clock.start_ns))
            for slots in self._shares
        ]
        self._children: list[Child] = []
        self._final_reads: list[tuple[Operation, ...]] = []
        self._is_recording = True
        self._end_asked_s: float | None = None
        #: Error of this process while it took a message.
        self._defect: Exception | None = None
        self._somebody_died = False
        self._changed = asyncio.Event()

    def final_reads(self) -> list[Operation]:
        """Return the reads after the load: of all that any worker process has touched."""
        return final_reads_of(self._workload, self._final_reads)

    async def get_ready(self, stopped: asyncio.Event) -> None:
        """Start the worker processes, and return when each can begin or the run is to end."""
        for number, assignment in enumerate(self._assignments):
            child = Child(number, assignment)
            self._children.append(child)
            self._listen_to(child)
        deadline = time.monotonic() + START_PATIENCE_S
        while not stopped.is_set() and not all(c.is_ready or c.is_gone for c in self._children):
            await self._change()
            for child in self._children:
                with contextlib.suppress(OSError):  # then its output ends
                    child.flush()
            if time.monotonic() > deadline:
                raise _failure(
                    f"start {len(self._children)} worker processes",
                    f"they were not ready within {START_PATIENCE_S:g} s",
                    "Give the machine less to do, or choose a lower --rate.",
                )

    async def run(self, stopped: asyncio.Event) -> None:
        """Have the system loaded until ``stopped``; every operation has ended when this returns.

        A failure is told to the run's ``Stop``, which ends the load.
        """
        for child in self._children:
            # A worker that was ready early has waited for the others in silence.
            child.heard_s = time.monotonic()
        self._tell_all(Begin(asyncio.get_running_loop().time()))
        ending = asyncio.ensure_future(self._end_when(stopped))
        try:
            while not all(child.has_ended or child.is_gone for child in self._children):
                await self._change()
                if self._defect is not None:
                    raise self._defect
                self._kill_hung_ones()
            self._record()
            if self._somebody_died:
                self._close_open_operations()
        finally:
            ending.cancel()

    def close(self) -> None:
        """Leave no process behind."""
        for child in self._children:
            with contextlib.suppress(ValueError, RuntimeError):
                asyncio.get_running_loop().remove_reader(child.output)
            child.close()
        self._children.clear()

    async def _change(self) -> None:
        """Wait until somebody has spoken, for a while at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WATCH_INTERVAL_S):
                await self._changed.wait()
        self._changed.clear()

    async def _end_when(self, stopped: asyncio.Event) -> None:
        await stopped.wait()
        self._end_asked_s = time.monotonic()
        while True:
            # Told again and again: who takes no message now may take it later.
            self._tell_all(End())
            await asyncio.sleep(_WATCH_INTERVAL_S)

    def _tell_all(self, message: Any, but: Child | None = None) -> None:
        for child in self._children:
            if child is not but and not child.has_ended and not child.is_gone:
                child.say(message)

    def _listen_to(self, child: Child) -> None:
        asyncio.get_running_loop().add_reader(child.output, self._hear, child)

    def _hear(self, child: Child) -> None:
        try:
            self._listen(child)
        # The event loop would only log it; ``run`` raises it, and nothing more is written.
        except Exception as error:  # noqa: BLE001
            self._is_recording = False
            self._defect = self._defect or error
        self._changed.set()

    def _listen(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        for message in child.hear():
            self._take(child, message)
        if child.is_gone:
            loop.remove_reader(child.output)
            if not child.has_ended:
                self._died(child)
        elif self._merge.held_bytes(child.number) > BACKLOG_BYTES_MAX:
            loop.remove_reader(child.output)
            child.is_ahead = True
        self._record()
        for other in self._children:
            if other.is_ahead and self._merge.held_bytes(other.number) <= BACKLOG_BYTES_MAX:
                other.is_ahead, other.heard_s = False, time.monotonic()
                self._listen_to(other)

    def _take(self, child: Child, message: Any) -> None:
        match message:
            case Ready():
                child.is_ready = True
            case Shipment():
                self._traffic.add(message.traffic)
                if self._is_recording:
                    self._merge.add(child.number, message.watermark, message.times, message.lines)
                for operation in message.unsettled:
                    self._tell_all(Unsettled((operation,)), but=child)
            case Ended():
                child.has_ended = True
                self._merge.add(child.number, ENDED, (), ())
                self._final_reads.append(message.final_reads)
                for process in message.upcoming:
                    self._processes.skip_to(process)
                if message.failure is not None:
                    self._stop.fail(HarnessError(*message.failure))
            case _:
                raise AssertionError(f"worker process {child.number} said {message!r}")

    def _record(self) -> None:
        """Write what can be told now; a disk that refuses ends the load and the history."""
        lines = self._merge.take()
        if not lines or not self._is_recording:
            return
        try:
            self._history.append_stamped(lines)
        except HarnessError as error:
            self._is_recording = False
            for number in range(len(self._shares)):
                self._merge.abandon(number)
            self._stop.fail(error)

    def _died(self, child: Child) -> None:
        self._somebody_died = True
        self._merge.abandon(child.number)
        target = f"worker process {child.number + 1} of {len(self._shares)} for the clients"
        next_step = (
            "The history ends where it was last heard of, and can be judged up to there; run again."
        )
        self._stop.fail(_failure(target, f"it {child.story()}", next_step))

    def _kill_hung_ones(self) -> None:
        now = time.monotonic()
        is_late = (
            self._end_asked_s is not None
            and now - self._end_asked_s > self._load.operation_timeout_s + END_PATIENCE_S
        )
        for child in self._children:
            if child.has_ended or child.is_gone:
                continue
            if is_late:
                child.kill_for(f"did not end within {END_PATIENCE_S:g} s")
            elif not child.is_ahead and now - child.heard_s > SILENCE_MAX_S:
                child.kill_for(f"said nothing for {SILENCE_MAX_S:g} s")

    def _close_open_operations(self) -> None:
        """Complete what is open where the history was cut: whatever came of it is not told."""
        open_events: dict[int, Event] = {}
        try:
            for event in HistoryReader(self._history.path):
                if event.type == "invoke":
                    open_events[event.process] = event
                else:
                    open_events.pop(event.process, None)
            for event in open_events.values():
                key, value, node = event.key, event.value, event.node
                self._history.append(
                    event.process,
                    "info",
                    event.f,
                    key=key,
                    value=value,
                    node=node,
                    error=WORKER_DIED,
                )
                self._processes.skip_to(event.process + self._load.concurrency)
        except HarnessError as error:
            self._stop.fail(error)


def shares(slots: int, workers: int) -> list[tuple[int, ...]]:
    """The slots of each worker process: neighbours, so that each has both kinds of routes."""
    bounds = [slots * number // workers for number in range(workers + 1)]
    return [tuple(range(first, end)) for first, end in itertools.pairwise(bounds) if end > first]


def _sendable(assignment: Assignment) -> bytes:
    try:
        return frame(assignment)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise _failure(
            "clients of this system in worker processes",
            f"what opens them cannot be sent to another process: {error}",
            "Choose a lower --rate, which one process carries.",
        ) from error


def _failure(target: str, problem: str, next_step: str) -> HarnessError:
    return HarnessError("load the system", target, problem, next_step)
