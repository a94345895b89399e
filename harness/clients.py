"""The clients' load: worker slots on one event loop, each running its own stream of operations.

About half of the slots follow the leader and half are pinned to one node each, because only a
client that stays with a deposed leader sees what that leader still answers. Operation n of a slot
depends on (seed, slot, n) alone. Slots keep to a timetable: operation n of slot w is due at
``(n * slots + w) / rate`` seconds, and a slot that lost time to a dead node catches up at a
bounded pace, so that all slots work on the same keys and quick refusals never spin.

After an unknown outcome, and after a read that timed out, the process is retired and its
connection closed, so that a late answer never meets a later operation (design, section 4).

The same code runs in the run's own process and in worker processes, which have a share of the
slots each. Must never hold anything for each operation: runs of millions are run.
"""

import asyncio
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import msgspec

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.operations import Client, Completion, Operation
from contracts.system import ROUTE_KINDS, Route
from harness.load.deadline import Deadline
from harness.processes import Processes
from harness.run_clock import NANOSECONDS
from harness.stop import Stop
from harness.traffic import Traffic
from history.functions import Functions, only_reads
from history.records import Event, EventType
from workloads.workload import Workload

#: A slot behind its timetable runs at most this many times as fast as its share of the rate.
CATCH_UP_FACTOR = 3
#: What a client gets beyond the operation's timeout to report it by itself.
_CLIENT_GRACE_S = 0.5
#: A failure that took this share of the timeout is taken for a timeout.
TIMED_OUT_SHARE = Fraction(9, 10)
_OVERDUE = "client-overdue"
_CRASHED = "client-crashed"


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


class Recorder(Protocol):
    """Where events are recorded: the history, or what a worker process hands over to it."""

    def append(
        self,
        process: int,
        type_: EventType,
        f: str,
        *,
        key: str | None = None,
        value: Any = None,
        node: str | None = None,
        error: str | None = None,
        position: tuple[int, int] | None = None,
        final: bool = False,
    ) -> Event:
        """Stamp and record one event; HarnessError where that cannot be done."""
        ...


def routes(
    nodes: Sequence[NodeName], slots: int, observers: Sequence[NodeName] = ()
) -> list[Route]:
    """The route of each slot: following and pinned in turn, each over the nodes round robin.

    Where there are nodes that do not vote, it is they whom slots are pinned to.
    """
    result: list[Route] = []
    for slot in range(slots):
        turn, kind = divmod(slot, len(ROUTE_KINDS))
        if ROUTE_KINDS[kind] == "leader":
            result.append(Route("leader", nodes[turn % len(nodes)]))
        else:
            among = observers or nodes
            result.append(Route("pinned", among[turn % len(among)]))
    return result


def reader_slots(
    nodes: Sequence[NodeName], slots: int, observers: Sequence[NodeName] = ()
) -> frozenset[int]:
    """The first slot that is pinned to each node, if that leaves pinned slots that also write.

    Nodes that do not vote are only ever read: there it is every pinned slot.
    """
    if observers:
        found = routes(nodes, slots, observers)
        return frozenset(slot for slot, route in enumerate(found) if route.kind == "pinned")
    pinned: dict[NodeName, list[int]] = {}
    for slot, route in enumerate(routes(nodes, slots)):
        if route.kind == "pinned":
            pinned.setdefault(route.node, []).append(slot)
    return (
        frozenset(taken[0] for taken in pinned.values()) if slots > 2 * len(nodes) else frozenset()
    )


class Performer:
    """Performs single operations: records both events, and judges what must follow."""

    def __init__(
        self,
        history: Recorder,
        traffic: Traffic,
        timeout_s: float,
        stop: Stop,
        *,
        functions: Functions,
    ) -> None:
        """``functions``: those of the workload."""
        self._history = history
        self._functions = functions
        self._traffic = traffic
        self._timeout_s = timeout_s
        self._slow_ns = round(TIMED_OUT_SHARE * timeout_s * NANOSECONDS)
        self._stop = stop

    def deadline(self) -> Deadline:
        """What a seat holds its client's calls to."""
        return Deadline(self._timeout_s + _CLIENT_GRACE_S)

    async def perform(
        self,
        seat: "Seat",
        operation: Operation,
        *,
        final: bool,
    ) -> tuple[Completion, bool]:
        """Perform one operation; the second value says that process and client must retire."""
        process, asked, append = seat.process, seat.asked, self._history.append
        f, key = operation.f, operation.key
        invoked = append(
            process, "invoke", f, key=key, value=operation.value, node=asked, final=final
        )
        completion = await self._invoke(seat, operation)
        is_open = completion.type == "info"
        if is_open and only_reads(self._functions, f, operation.value):
            # The adapter need not know what the workload's operations do.
            completion = msgspec.structs.replace(completion, type="fail")
        outcome, node = completion.type, completion.node or asked
        completed = append(
            *(process, outcome, f),
            key=key,
            value=completion.value if outcome == "ok" else operation.value,
            node=node,
            error=completion.error,
            position=completion.position,
            final=final,
        )
        self._traffic.completed(outcome, node, invoked.time)
        if outcome == "ok":
            return completion, False
        slow = completed.time - invoked.time >= self._slow_ns
        return completion, is_open or slow

    async def _invoke(self, seat: "Seat", operation: Operation) -> Completion:
        try:
            return await seat.deadline.hold(seat.client.invoke(operation, self._timeout_s))
        except TimeoutError:
            return Completion("info", error=_OVERDUE)
        except Exception as error:  # noqa: BLE001 - see below
            # A client reports the system's faults as outcomes; whatever it raises is a defect of
            # the adapter. The operation may have happened, and the run must not look green.
            self._stop.fail(
                HarnessError(
                    f"perform the operation {operation.f}",
                    "client of the system under test",
                    f"it raised {type(error).__name__}: {error}",
                    "This is a defect of the system's adapter; please report it.",
                )
            )
            return Completion("info", error=_CRASHED)


class Seat:
    """One worker slot's process and client, which are replaced together; used by one task."""

    def __init__(
        self,
        slot: int,
        route: Route,
        *,
        open_client: Callable[[Route], Client],
        performer: Performer,
        processes: Processes,
    ) -> None:
        self._slot = slot
        self._route = route
        self._open_client = open_client
        self._performer = performer
        self._processes = processes
        self.deadline = performer.deadline()
        #: Node that the client keeps to, None where it finds the leader itself.
        self.asked = route.node if route.kind == "pinned" else None
        self.client = open_client(route)
        self.process = processes.fresh(slot)

    async def perform(self, operation: Operation, *, final: bool = False) -> Completion:
        """Perform one operation and make ready for the next."""
        completion, retire = await self._performer.perform(self, operation, final=final)
        if retire:
            await self.client.close()
            self.client = self._open_client(self._route)
            self.process = self._processes.fresh(self._slot)
        return completion

    async def close(self) -> None:
        """Drop the connection."""
        self.deadline.close()
        await self.client.close()


class Clients:
    """Worker slots of one run: all, or those of one worker process."""

    def __init__(
        self,
        *,
        nodes: Sequence[NodeName],
        workload: Workload,
        load: Load,
        open_client: Callable[[Route], Client],
        performer: Performer,
        processes: Processes,
        slots: Sequence[int] | None = None,
        observers: Sequence[NodeName] = (),
    ) -> None:
        self._routes = routes(nodes, load.concurrency, observers)
        self._slots = range(load.concurrency) if slots is None else slots
        self._workload = workload
        self._load = load
        self._open_client = open_client
        self._performer = performer
        self._processes = processes
        self._is_ending = False
        self._sleeping: set[asyncio.Future[None]] = set()

    async def get_ready(self, stopped: asyncio.Event) -> None:
        """There is nothing to prepare: clients connect at their first operation."""

    async def run(self, stopped: asyncio.Event, start_s: float | None = None) -> None:
        """Load the system until ``stopped``; no operation is open when this returns.

        Args:
            stopped: ends the load.
            start_s: where on the loop's clock the timetable begins; None: now.
        """
        start = asyncio.get_running_loop().time() if start_s is None else start_s
        ending = asyncio.ensure_future(self._end_when(stopped))
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(self._run_slot(slot, start))
        finally:
            ending.cancel()

    async def _end_when(self, stopped: asyncio.Event) -> None:
        await stopped.wait()
        self._is_ending = True
        for sleeping in self._sleeping:
            _wake(sleeping)

    async def _run_slot(self, slot: int, start: float) -> None:
        clock = asyncio.get_running_loop().time
        slots, rate = self._load.concurrency, self._load.rate
        limit = self._load.operations_per_slot
        spacing_s = slots / rate / CATCH_UP_FACTOR
        seat = Seat(
            *(slot, self._routes[slot]),
            open_client=self._open_client,
            performer=self._performer,
            processes=self._processes,
        )
        n, last = 0, start - spacing_s
        try:
            while n != limit:
                due = max(start + (n * slots + slot) / rate, last + spacing_s)
                last = clock()
                if due <= last:
                    # Others get their turn even where this slot is behind.
                    await asyncio.sleep(0)
                elif not self._is_ending:
                    await self._sleep_until(due)
                    last = clock()
                if self._is_ending:
                    return
                operation = self._workload.operation(slot, n)
                completion = await seat.perform(operation)
                self._workload.completed(operation, completion)
                n += 1
        finally:
            await seat.close()

    async def _sleep_until(self, due: float) -> None:
        """Wait for a moment of the loop's clock, or for the end of the load."""
        loop = asyncio.get_running_loop()
        sleeping: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(due, _wake, sleeping)
        self._sleeping.add(sleeping)
        try:
            await sleeping
        finally:
            self._sleeping.discard(sleeping)
            timer.cancel()


def _wake(sleeping: "asyncio.Future[None]") -> None:
    if not sleeping.done():
        sleeping.set_result(None)
