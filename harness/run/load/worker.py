"""A worker process of the load: performs its share of the slots and hands over what happened.

Started as ``python -m splitbrain.harness.run.load.worker``. The first frame in is the assignment;
the frames out are ready, shipments every few milliseconds, and the end. A thread reads the input
and ends the process at its end, so that none outlives the run's. Nothing that a client prints may
reach the frames.
"""

import asyncio
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Unpack

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.pool.frames import read_body, take_over_pipes, write_frame
from splitbrain.harness.run.attempts import failure
from splitbrain.harness.run.clients import Clients, give_threads
from splitbrain.harness.run.load.messages import (
    Assignment,
    Begin,
    End,
    Ended,
    Ready,
    Shipment,
    Unsettled,
)
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.records import Event, EventFields, EventType
from splitbrain.history.writer import stamped_line
from splitbrain.workloads.workload import Workload

#: Time between two shipments: events are in the file within 100 ms.
SHIPMENT_INTERVAL_S = 0.01
_UNKNOWN = Completion("info")


class EventBuffer:
    """Records like ``history.writer.HistoryWriter``, in memory; for one thread.

    An event is stamped when it is recorded, so that an operation's interval in the history contains
    its real one, and encoded at once: what a client does with its values later changes nothing.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._times: list[int] = []
        self._lines: list[bytes] = []

    def append(
        self, process: int, type_: EventType, f: str, **fields: Unpack[EventFields]
    ) -> Event:
        """Record one event and return it with its time; its index is not known yet."""
        time = self._clock()
        event = Event(0, time, process, type_, f, **fields)
        self._lines.append(stamped_line(event))
        self._times.append(time)
        return event

    def take(self) -> tuple[int, list[int], list[bytes]]:
        """The watermark, the times and the lines since the last call, and forget them here."""
        times, lines = self._times, self._lines
        self._times, self._lines = [], []
        # One thread: whatever is recorded later is stamped later.
        return self._clock(), times, lines


class _SharedWorkload:
    """The worker's copy of the workload, which also learns of unknown outcomes elsewhere."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.name, self.checkers = workload.name, workload.checkers
        self.functions = workload.functions
        self.operation = workload.operation
        self.final_reads = workload.final_reads
        self.at_observer = workload.at_observer
        self.options = workload.options
        self._unsettled: list[Operation] = []

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Tell the copy here now, and the others with the next shipment."""
        self._workload.completed(operation, completion)
        if completion.type == "info":
            self._unsettled.append(operation)

    def completed_elsewhere(self, operations: tuple[Operation, ...]) -> None:
        """Operations of other worker processes ended as ``info``."""
        for operation in operations:
            self._workload.completed(operation, _UNKNOWN)

    def take_unsettled(self) -> tuple[Operation, ...]:
        """Own operations that ended as ``info`` since the last call."""
        unsettled = tuple(self._unsettled)
        self._unsettled.clear()
        return unsettled


class Worker:
    """One worker process' share of the load."""

    def __init__(self, assignment: Assignment, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._slots = assignment.slots
        self._incoming, self._outgoing = incoming, outgoing
        self._events = EventBuffer(RunClock(assignment.clock_start_ns).now)
        self._traffic, self._stop = Traffic(), Stop()
        load = assignment.setup.load
        self._processes = Processes(load.concurrency)
        self._workload = shared = _SharedWorkload(assignment.setup.workload)
        setup = msgspec.structs.replace(assignment.setup, workload=shared)
        books = Books(
            *(self._events, self._traffic, self._processes, shared.functions),
            timeout_us=load.operation_timeout_us,
        )
        self._clients = Clients(setup, assignment.open_client, books, self._stop, assignment.slots)

    async def run(self) -> None:
        """Perform the load from ``Begin`` to ``End``, or until something of ours fails."""
        loop = asyncio.get_running_loop()
        give_threads(loop, len(self._slots))
        stopped = asyncio.Event()
        self._stop.notify(loop, stopped)
        begin: asyncio.Future[Begin] = loop.create_future()
        threading.Thread(target=self._listen, args=(loop, stopped, begin), daemon=True).start()
        write_frame(self._outgoing, Ready())
        start_s = (await begin).start_s
        shipping = asyncio.ensure_future(self._ship_regularly())
        try:
            await self._clients.run(stopped, start_s)
        except* HarnessError as group:
            self._stop.fail(failure(group))
        # Whatever it is, the run must not look green, and the run's process tells of it.
        except* Exception as group:  # noqa: BLE001
            traceback.print_exception(group)
            self._stop.fail(failure(group))
        shipping.cancel()
        self._ship()
        error, failure_fields = self._stop.failure, None
        if error is not None:
            failure_fields = (error.action, error.target, error.problem, error.next_step)
        upcoming = self._processes.upcoming(self._slots)
        write_frame(self._outgoing, Ended(upcoming, self._workload.final_reads(), failure_fields))

    async def _ship_regularly(self) -> None:
        while True:
            await asyncio.sleep(SHIPMENT_INTERVAL_S)
            self._ship()

    def _ship(self) -> None:
        watermark, times, lines = self._events.take()
        unsettled = self._workload.take_unsettled()
        shipment = Shipment(watermark, times, lines, self._traffic.take(), unsettled)
        # Blocks while the other end cannot keep up: so its memory and ours stay bounded.
        write_frame(self._outgoing, shipment)

    def _listen(
        self,
        loop: asyncio.AbstractEventLoop,
        stopped: asyncio.Event,
        begin: "asyncio.Future[Begin]",
    ) -> None:
        while True:
            message = read_message(self._incoming)
            match message:
                case Begin():
                    loop.call_soon_threadsafe(begin.set_result, message)
                case Unsettled(operations):
                    loop.call_soon_threadsafe(self._workload.completed_elsewhere, operations)
                case End():
                    loop.call_soon_threadsafe(stopped.set)
                case _:
                    # The run's process is gone, or done with us.
                    os._exit(0)


def read_message(stream: BinaryIO) -> Any:
    """Return the next frame's message, None at the end of the stream."""
    body = read_body(stream)
    return None if body is None else pickle.loads(body)  # noqa: S301 - from our own parent


def main() -> None:
    """Take the assignment, perform it, end."""
    incoming, outgoing = take_over_pipes()
    assignment = read_message(incoming)
    if not isinstance(assignment, Assignment):
        sys.exit("no assignment came")
    try:
        asyncio.run(Worker(assignment, incoming, outgoing).run())
    except BrokenPipeError:
        # The run's process is gone; nobody is left to tell.
        os._exit(0)
    # The listening thread holds the input, and ends the process where it is not at its end yet.
    os._exit(0)


if __name__ == "__main__":
    main()
