"""The part of a run in which clients work and faults are injected, and the final reads after it.

The event loop runs in the calling thread and carries the clients alone, or what worker processes
tell of theirs; the nemesis, whose calls block, works on a thread. The load lasts for the time limit
and then until the nemesis is done, so that every heal is seen to let traffic through again.
"""

import asyncio
from collections.abc import Callable, Sequence

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.attempts import defect, failure
from splitbrain.harness.run.clients import US_PER_S, Clients, LoadSetup, SlotClient, give_threads
from splitbrain.harness.run.load.reading import Reading, readers
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.load.worker_processes import WorkerProcesses
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import NANOSECONDS, RunClock
from splitbrain.history.writer import HistoryWriter


class LoadPhase:
    """Clients and nemesis of one run."""

    def __init__(
        self,
        setup: LoadSetup,
        open_client: Callable[[Route], Client],
        *,
        carry_out: Callable[[int, int], object],
        history: HistoryWriter,
        clock: RunClock,
        progress: Progress,
        stop: Stop,
        opener_for_workers: Callable[[], Callable[[Route], Client]] | None = None,
    ) -> None:
        """Take what belongs to the load.

        ``carry_out`` blocks until the schedule is carried out; it is given the load's start and
        end, ns since the run's start. ``opener_for_workers`` makes what opens clients in worker
        processes, if they are used.
        """
        self._setup, self._load, self._carry_out = setup, setup.load, carry_out
        self._open_client, self._opener_for_workers = open_client, opener_for_workers
        self._history, self._clock = history, clock
        self._progress, self._stop = progress, stop
        self._processes = Processes(setup.load.concurrency)
        self._books = Books(
            *(history, progress.traffic, self._processes, setup.workload.functions),
            timeout_us=setup.load.operation_timeout_us,
        )
        self._workers: WorkerProcesses | None = None

    def run(self) -> None:
        """Load the system and carry out the schedule; failures are told to the run's ``Stop``."""
        asyncio.run(self._run())

    def read_finally(self) -> int:
        """Take the final reads; returns how many could not be settled."""
        workers, setup = self._workers, self._setup
        operations = setup.workload.final_reads() if workers is None else workers.final_reads()
        requests = readers(setup.nodes, setup.observers, operations, setup.workload)
        return asyncio.run(read_finally(requests, self._open_client, self._books, self._stop))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        give_threads(loop, self._load.concurrency)
        stopped = asyncio.Event()
        self._stop.notify(loop, stopped)
        try:
            clients = self._workers = self._make_workers()
            if clients is None:
                clients = Clients(self._setup, self._open_client, self._books, self._stop)
            else:
                count = self._load.processes_needed
                self._progress.say(f"starting {count} processes for the clients")
            await clients.get_ready(stopped)
            await self._load_and_break(clients, stopped)
        except HarnessError as error:
            self._stop.fail(error)
        finally:
            self._stop.forget_listeners()
            if self._workers is not None:
                self._workers.close()

    async def _load_and_break(
        self, clients: Clients | WorkerProcesses, stopped: asyncio.Event
    ) -> None:
        loop = asyncio.get_running_loop()
        self._progress.reached("load-started")
        start = self._clock.now()
        end = start + round(self._load.time_limit_s * NANOSECONDS)
        nemesis = loop.run_in_executor(None, self._carry_out_schedule, start, end)
        timer = asyncio.ensure_future(self._end_of_load(nemesis, stopped))
        try:
            await clients.run(stopped)
        except* HarnessError as group:
            self._stop.fail(failure(group))
        except* Exception as group:
            self._stop.fail(failure(group))
            raise
        finally:
            await nemesis
            timer.cancel()
            self._progress.reached("load-ended")

    def _make_workers(self) -> WorkerProcesses | None:
        if not self._load.processes_needed or self._opener_for_workers is None:
            return None
        return WorkerProcesses(
            setup=self._setup,
            open_client=self._opener_for_workers(),
            history=self._history,
            clock=self._clock,
            traffic=self._progress.traffic,
            processes=self._processes,
            stop=self._stop,
        )

    async def _end_of_load(self, nemesis: "asyncio.Future[None]", stopped: asyncio.Event) -> None:
        await asyncio.sleep(self._load.time_limit_s)
        await asyncio.shield(nemesis)
        stopped.set()

    def _carry_out_schedule(self, start: int, end: int) -> None:
        try:
            self._carry_out(start, end)
        except HarnessError as error:
            self._stop.fail(error)
        except Exception as error:
            self._stop.fail(defect(error))
            raise


async def read_finally(
    requests: Sequence[tuple[Route, Sequence[Operation]]],
    open_client: Callable[[Route], Client],
    books: Books,
    stop: Stop,
) -> int:
    """Have each reader read its own; return how many the first one could not settle."""
    give_threads(asyncio.get_running_loop(), len(requests))

    async def read_all(place: int, route: Route, operations: Sequence[Operation]) -> int:
        client = SlotClient(place, route, open_client=open_client, books=books, stop=stop)
        reading = Reading(route.kind, operations)
        try:
            while (operation := reading.next) is not None:
                if reading.pause_us:
                    await asyncio.sleep(reading.pause_us / US_PER_S)  # back-off
                reading.took(await client.perform(operation, final=True))
        finally:
            await client.close()
        return reading.unsettled_count

    unsettled = await asyncio.gather(
        *(read_all(place, route, reads) for place, (route, reads) in enumerate(requests))
    )
    return unsettled[0]
