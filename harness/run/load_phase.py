"""The part of a run in which clients work and faults are injected, and the final reads after it.

The event loop runs in the calling thread and carries the clients alone, or what worker processes
tell of theirs; the nemesis, whose calls block, works on a thread. The load lasts for the time limit
and then until the nemesis is done, so that every heal is seen to let traffic through again.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import Clients, Load
from splitbrain.harness.run.defects import defect, failure
from splitbrain.harness.run.final_reads import FinalReads
from splitbrain.harness.run.load.crew import Crew
from splitbrain.harness.run.load.messages import ClientOpener
from splitbrain.harness.run.load.reading import readers
from splitbrain.harness.run.load.seat import Books
from splitbrain.harness.run.load.shares import workers_for
from splitbrain.harness.run.processes import Processes
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import NANOSECONDS, RunClock
from splitbrain.history.writer import HistoryWriter
from splitbrain.workloads.workload import Workload


class Nemesis(Protocol):
    """Carries out a schedule of faults."""

    def run(self, load_start: int, load_end: int) -> object:
        """Block until the schedule is carried out; both times in ns since the run's start."""
        ...


class LoadPhase:
    """Clients and nemesis of one run."""

    def __init__(
        self,
        *,
        nodes: Sequence[NodeName],
        workload: Workload,
        load: Load,
        open_client: Callable[[Route], Client],
        nemesis: Nemesis,
        history: HistoryWriter,
        clock: RunClock,
        progress: Progress,
        stop: Stop,
        opener_for_workers: Callable[[], ClientOpener] | None = None,
        observers: Sequence[NodeName] = (),
    ) -> None:
        """``opener_for_workers`` makes what opens clients in worker processes, if they are used."""
        self._nodes = nodes
        self._observers = observers
        self._workload = workload
        self._load = load
        self._open_client = open_client
        self._opener_for_workers = opener_for_workers
        self._nemesis = nemesis
        self._history = history
        self._clock = clock
        self._progress = progress
        self._stop = stop
        self._processes = Processes(load.concurrency)
        self._books = Books(
            *(history, progress.traffic, self._processes, workload.functions),
            timeout_us=load.operation_timeout_us,
        )
        self._crew: Crew | None = None

    def run(self) -> None:
        """Load the system and carry out the schedule; failures are told to the run's ``Stop``."""
        asyncio.run(self._run())

    def read_finally(self) -> int:
        """Take the final reads; returns how many could not be settled."""
        reads = FinalReads(open_client=self._open_client, books=self._books, stop=self._stop)
        crew, workload = self._crew, self._workload
        operations = workload.final_reads() if crew is None else crew.final_reads()
        return asyncio.run(reads.run(readers(self._nodes, self._observers, operations, workload)))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        self._stop.notify(loop, stopped)
        try:
            clients = self._crew = self._make_crew()
            if clients is None:
                clients = self._make_clients()
            else:
                self._progress.say(f"starting {workers_for(self._load)} processes for the clients")
            await clients.get_ready(stopped)
            await self._load_and_break(clients, stopped)
        except HarnessError as error:
            self._stop.fail(error)
        finally:
            self._stop.forget_listeners()
            if self._crew is not None:
                self._crew.close()

    async def _load_and_break(self, clients: Clients | Crew, stopped: asyncio.Event) -> None:
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

    def _make_clients(self) -> Clients:
        return Clients(
            nodes=self._nodes,
            observers=self._observers,
            workload=self._workload,
            load=self._load,
            open_client=self._open_client,
            books=self._books,
            stop=self._stop,
        )

    def _make_crew(self) -> Crew | None:
        """Return the worker processes, if the load needs any."""
        workers = workers_for(self._load)
        if not workers or self._opener_for_workers is None:
            return None
        return Crew(
            workers=workers,
            nodes=self._nodes,
            observers=self._observers,
            workload=self._workload,
            load=self._load,
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
            self._nemesis.run(start, end)
        except HarnessError as error:
            self._stop.fail(error)
        except Exception as error:
            self._stop.fail(defect(error))
            raise
