"""All clients of one test, on an event loop in a thread of its own.

A test is synchronous and may have several threads; its operations and those of the workload go
through the same worker slots' books as a run's.
"""

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.run.attempts import failure
from splitbrain.harness.run.clients import Clients, Load, LoadSetup, SlotClient, give_threads
from splitbrain.harness.run.load.reading import readers
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.load_phase import read_finally
from splitbrain.harness.run.options import PreparedTest
from splitbrain.harness.run.stage import Stage
from splitbrain.harness.testing.steps import SteppedWorkload

_Result = TypeVar("_Result")


class ClientLoop:
    """Clients of one cluster; ``close`` when nothing is asked any more."""

    def __init__(self, test: PreparedTest, stage: Stage) -> None:
        self._test, self._stop = test, stage.stop
        self.workload = SteppedWorkload(test.workload)
        slots = test.experiment.concurrency
        self._load = Load(
            slots, test.experiment.rate, 0.0, test.experiment.operation_timeout_s, workers=0
        )
        self._books = Books(
            *(stage.history, stage.progress.traffic, Processes(slots), test.workload.functions),
            timeout_us=self._load.operation_timeout_us,
        )
        self._open_client = partial(test.system.open_client, test.runtime)
        #: The workload's slots come first.
        self._slots = itertools.count(slots)
        self._clients: list[SlotClient] = []
        self._loads = 0
        self._loop = asyncio.new_event_loop()
        give_threads(self._loop, slots)
        self._thread = threading.Thread(target=self._loop.run_forever, name="clients", daemon=True)
        self._thread.start()

    @property
    def is_loaded(self) -> bool:
        """Whether the workload's own operations are under way."""
        return self._loads > 0

    def open(self, route: Route) -> SlotClient:
        """Return a client that is a process of its own; one operation at a time."""

        async def opened() -> SlotClient:
            slot = next(self._slots)
            open_client, books, stop = self._open_client, self._books, self._stop
            client = SlotClient(slot, route, open_client=open_client, books=books, stop=stop)
            self._clients.append(client)
            return client

        return self._await(opened())

    def perform(self, client: SlotClient, operation: Operation) -> Completion:
        """Have the client perform it, and record it.

        Raises:
            HarnessError: it cannot be recorded.
            UsageError: another thread has ended the cluster meanwhile.
        """
        try:
            return self._await(client.perform(operation))
        except CancelledError as error:
            raise UsageError(
                f"the cluster was ended while a thread waited for its {operation.f}",
                "Join the test's threads before check()",
            ) from error

    @contextmanager
    def loading(self, rate: float | None = None) -> Generator[None]:
        """Perform the workload's operations while the context lasts.

        Raises:
            HarnessError: they cannot be recorded.
        """
        load = self._load
        if rate is not None:
            load = msgspec.structs.replace(load, rate=rate)
        test = self._test
        setup = LoadSetup(test.nodes, self.workload, load, test.asked_observers)
        stopped = asyncio.Event()
        clients = Clients(setup, self._open_client, self._books, self._stop)
        under_way = asyncio.run_coroutine_threadsafe(clients.run(stopped), self._loop)
        self._loads += 1
        try:
            yield
        finally:
            self._loads -= 1
            self._loop.call_soon_threadsafe(stopped.set)
            try:
                under_way.result()
            except Exception as error:
                raise failure(error) from error

    def read_finally(self) -> int:
        """Take the final reads; return how many could not be settled."""
        test = self._test
        reads = self.workload.final_reads()
        requests = readers(test.nodes, test.asked_observers, reads, self.workload)
        return self._await(read_finally(requests, self._open_client, self._books, self._stop))

    def close(self) -> None:
        """Drop all connections and end the thread."""

        async def drop_all() -> None:
            under_way = asyncio.all_tasks() - {asyncio.current_task()}
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            for client in self._clients:
                await client.close()

        self._await(drop_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _await(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
