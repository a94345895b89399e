"""The load's worker slots on one event loop, each with its client.

The driver of ``harness.run.load.timetable`` and ``harness.run.load.seat`` on a machine: it waits,
holds the clients, and ends what takes too long. The same code runs in the run's own process and in
worker processes, which have a share of the slots each. Nothing is held for each operation: runs of
millions are run.
"""

import asyncio
import math
import os
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar, cast

import msgspec

from splitbrain.contracts.errors import AdapterError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import CLIENT_OVERDUE
from splitbrain.harness.run.load.routes import routes
from splitbrain.harness.run.load.seat import Books, Seat
from splitbrain.harness.run.load.timetable import SlotTimes, Timetable
from splitbrain.history.functions import tells_refusals
from splitbrain.plugins.blame import authors_error, place_of
from splitbrain.workloads.workload import Workload

#: Time that a client gets beyond the operation's timeout to report it by itself.
_CLIENT_GRACE_S = 0.5
#: Threads for each client: one that it blocks, and those that clients before it still block.
_THREADS_PER_CLIENT: Final = 4
_CRASHED = "client-crashed"
US_PER_S: Final = 1_000_000
#: Operations a second that one process is trusted with. A null client reaches many times this; a
#: client that really talks costs some tens of microseconds, and the nemesis wants its share.
RATE_PER_PROCESS_MAX: Final = 5_000
_Result = TypeVar("_Result")


class Load(msgspec.Struct, frozen=True):
    """How hard the clients work."""

    concurrency: int
    #: Operations per second over all slots; infinite: as many as there can be.
    rate: float
    time_limit_s: float
    operation_timeout_s: float
    #: Worker processes that share the slots; 0: the run's own process, None: as the rate needs.
    workers: int | None = None
    #: Operations after which a slot ends, None: when the time is up.
    operations_per_slot: int | None = None

    @property
    def operation_timeout_us(self) -> int:
        """The timeout in whole microseconds, as seats count."""
        return _in_us(self.operation_timeout_s)

    @property
    def processes_needed(self) -> int:
        """Number of worker processes; 0: the run's own process does it all."""
        if self.workers is not None:
            return min(self.workers, self.concurrency)
        if self.rate <= RATE_PER_PROCESS_MAX:
            return 0
        has_affinity = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
        wanted = math.ceil(min(self.rate / RATE_PER_PROCESS_MAX, self.concurrency))
        workers = min(wanted, cores or 1, self.concurrency)
        return workers if workers > 1 else 0


class LoadSetup(msgspec.Struct, frozen=True):
    """A load and the system that it is for; pickles as its workload does."""

    #: Those that vote.
    nodes: tuple[NodeName, ...]
    #: A ``Workload``, as it was when the load began.
    workload: Any
    load: Load
    #: The other nodes that clients ask.
    observers: tuple[NodeName, ...] = ()


class Deadline:
    """Ends an await that takes too long, for one task at a time, again and again.

    Making and cancelling a timer for each operation costs more than all else that an operation
    costs the harness. Here the timer of an earlier operation, when it rings in a later one, is set
    anew for what is left; only an operation that is really late is ever cancelled.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._due = 0.0
        self._expired = False

    async def hold(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Await ``work``.

        Raises:
            TimeoutError: it took longer than the limit and was cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        cancels_before = task.cancelling()
        self._due, self._expired, self._task = loop.time() + self._limit_s, False, task
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._ring)
        try:
            return await work
        except asyncio.CancelledError as error:
            # Somebody else may have cancelled it too; then that is what counts.
            if self._expired and task.cancelling() == cancels_before + 1:
                raise TimeoutError from error
            raise
        finally:
            self._task = None
            if self._expired:
                # However it ended: our cancellation goes no further.
                task.uncancel()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        assert self._loop is not None
        if self._task is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._ring)
            return
        self._expired = True
        self._task.cancel()


class SlotClient:
    """One worker slot's process and client, which are replaced together; used by one task."""

    def __init__(
        self,
        slot: int,
        route: Route,
        *,
        open_client: Callable[[Route], Client],
        books: Books,
        stop: Stop,
    ) -> None:
        self._seat = Seat(slot, route, books)
        self._route, self._open_client, self._stop = route, open_client, stop
        self._timeout_s = books.timeout_us / US_PER_S
        self._functions = books.functions
        self._deadline = Deadline(self._timeout_s + _CLIENT_GRACE_S)
        self._client = open_client(route)

    async def perform(self, operation: Operation, *, final: bool = False) -> Completion:
        """Perform one operation and make ready for the next."""
        self._seat.begin(operation, final=final)
        asked = msgspec.structs.replace(operation, final=True) if final else operation
        completion, is_retired = self._seat.end(await self._ask(asked))
        if is_retired:
            await self._client.close()
            self._client = self._open_client(self._route)
        return completion

    async def close(self) -> None:
        """Drop the connection."""
        self._deadline.close()
        await self._client.close()

    async def _ask(self, operation: Operation) -> Completion:
        """Have the client perform an operation; where it is late or raises, that is unknown."""
        try:
            # Adapters are code of others: the type is a promise.
            answer = self._client.invoke(operation, self._timeout_s)
            given = cast("object", await self._deadline.hold(answer))
        except TimeoutError:
            return Completion("info", error=CLIENT_OVERDUE)
        except AdapterError as error:
            return self._crashed(error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - see below
            # A client reports the system's faults as outcomes; whatever it raises is a defect of
            # the adapter. The operation may have happened, and the run must not look green.
            action = f"perform the operation {operation.f}"
            target = "client of the system under test"
            problem = f"it raised {type(error).__name__}: {error}"
            next_step = "This is a defect of the system's adapter; please report it."
            failure = HarnessError(action, target, problem, next_step)
            return self._crashed(authors_error(error) or failure, error)
        if not isinstance(given, Completion):
            invoke = type(self._client).invoke
            target = f"{invoke.__qualname__}, {place_of(invoke)}"
            problem = f"it returned {type(given).__name__}, not Completion"
            return self._crashed(
                AdapterError("use the adapter", target, problem, "Repair the adapter.")
            )
        is_empty = given.type == "ok" and given.value is None
        if is_empty and tells_refusals(self._functions, operation.f):
            return self._crashed(_unanswered(operation))
        return given

    def _crashed(self, failure: HarnessError, error: BaseException | None = None) -> Completion:
        failure.__cause__ = error or failure.__cause__
        self._stop.fail(failure)
        return Completion("info", error=_CRASHED)


def give_threads(loop: asyncio.AbstractEventLoop, clients: int) -> None:
    """Let clients whose libraries block have threads (``asyncio.to_thread``), as many as they need.

    A loop has a few more than the machine has processors, by default: clients of a frozen node
    would hold up all others.
    """
    loop.set_default_executor(ThreadPoolExecutor(_THREADS_PER_CLIENT * clients, "client"))


def _unanswered(operation: Operation) -> AdapterError:
    return AdapterError(
        f"perform the operation {operation.f}",
        "client of the system under test",
        "its ok has no value, which must tell whether it was done or refused",
        "Repair the adapter; perhaps its ask has no return.",
    )


class Clients:
    """Worker slots of one run: all, or those of one worker process."""

    def __init__(
        self,
        setup: LoadSetup,
        open_client: Callable[[Route], Client],
        books: Books,
        stop: Stop,
        slots: Sequence[int] | None = None,
    ) -> None:
        load = setup.load
        self._routes = routes(setup.nodes, load.concurrency, setup.observers)
        self._slots = range(load.concurrency) if slots is None else slots
        self._workload: Workload = setup.workload
        self._timetable = Timetable(load.concurrency, load.rate, load.operations_per_slot)
        self._open_client, self._books, self._stop = open_client, books, stop
        self._is_ending = False
        #: In the order in which they began to wait.
        self._sleeping: dict[asyncio.Future[None], None] = {}

    async def get_ready(self, stopped: asyncio.Event) -> None:
        """There is nothing to prepare: clients connect at their first operation."""

    async def run(self, stopped: asyncio.Event, start_s: float | None = None) -> None:
        """Load the system until ``stopped``; no operation is open when this returns.

        The timetable begins at ``start_s`` on the loop's clock, or now.
        """
        start_s = asyncio.get_running_loop().time() if start_s is None else start_s
        ending = asyncio.ensure_future(self._end_when(stopped))
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(self._run_slot(slot, start_s))
        finally:
            ending.cancel()

    async def _end_when(self, stopped: asyncio.Event) -> None:
        await stopped.wait()
        self._is_ending = True
        for sleeping in self._sleeping:
            _wake(sleeping)

    async def _run_slot(self, slot: int, start_s: float) -> None:
        clock = asyncio.get_running_loop().time
        route, open_client = self._routes[slot], self._open_client
        client = SlotClient(
            slot, route, open_client=open_client, books=self._books, stop=self._stop
        )
        times = SlotTimes(self._timetable, slot)
        now_us = _in_us(clock() - start_s)
        try:
            while (due_us := times.due_us(now_us)) is not None:
                if due_us <= now_us:
                    # Others get their turn even where this slot is behind.
                    await asyncio.sleep(0)
                elif not self._is_ending:
                    await self._sleep_until(start_s + due_us / US_PER_S)
                    now_us = _in_us(clock() - start_s)
                if self._is_ending:
                    return
                operation = self._workload.operation(slot, times.begin(now_us))
                completion = await client.perform(operation)
                self._workload.completed(operation, completion)
                now_us = _in_us(clock() - start_s)
        finally:
            await client.close()

    async def _sleep_until(self, due_s: float) -> None:
        """Wait for a moment of the loop's clock, or for the end of the load."""
        loop = asyncio.get_running_loop()
        sleeping: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(due_s, _wake, sleeping)
        self._sleeping[sleeping] = None
        try:
            await sleeping
        finally:
            del self._sleeping[sleeping]
            timer.cancel()


def _in_us(seconds: float) -> int:
    return round(seconds * US_PER_S)


def _wake(sleeping: "asyncio.Future[None]") -> None:
    if not sleeping.done():
        sleeping.set_result(None)
