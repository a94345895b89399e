"""The clients' load: worker slots on one event loop, each running its own stream of operations.

About half of the slots follow the leader and half are pinned to one node each, because only a
client that stays with a deposed leader sees what that leader still answers. Operation n of a slot
depends on (seed, slot, n) alone. Slots keep to a timetable: operation n of slot w is due at
``(n * slots + w) / rate`` seconds, and a slot that lost time to a dead node catches up at a
bounded pace, so that all slots work on the same keys and quick refusals never spin.

After an unknown outcome, and after a read that timed out, the process is retired and its
connection closed, so that a late answer never meets a later operation (design, section 4).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.operations import Client, Completion, Operation
from contracts.system import ROUTE_KINDS, Route
from harness.processes import Processes
from harness.stop import Stop
from harness.traffic import Traffic
from history.writer import HistoryWriter
from workloads.workload import Workload

#: A slot behind its timetable runs at most this many times as fast as its share of the rate.
_CATCH_UP_FACTOR = 3.0
#: What a client gets beyond the operation's timeout to report it by itself.
_CLIENT_GRACE_S = 0.5
#: A failure that took this share of the timeout is taken for a timeout.
_TIMED_OUT_SHARE = 0.9
#: Operation kinds that change nothing: without an answer they certainly did nothing.
PURE_READS = frozenset({"read"})
_OVERDUE = "client-overdue"
_CRASHED = "client-crashed"


class Load(msgspec.Struct, frozen=True):
    """How hard the clients work."""

    concurrency: int
    #: Operations per second over all slots.
    rate: float
    time_limit_s: float
    operation_timeout_s: float


def routes(nodes: Sequence[NodeName], slots: int) -> list[Route]:
    """The route of each slot: following and pinned in turn, each over the nodes round robin."""
    result: list[Route] = []
    for slot in range(slots):
        turn, kind = divmod(slot, len(ROUTE_KINDS))
        node = nodes[turn % len(nodes)]
        result.append(Route("leader" if ROUTE_KINDS[kind] == "leader" else "pinned", node))
    return result


def reader_slots(nodes: Sequence[NodeName], slots: int) -> frozenset[int]:
    """The first slot that is pinned to each node, if that leaves pinned slots that also write."""
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
        self, history: HistoryWriter, traffic: Traffic, timeout_s: float, stop: Stop
    ) -> None:
        self._history = history
        self._traffic = traffic
        self._timeout_s = timeout_s
        self._stop = stop

    async def perform(
        self, client: Client, process: int, route: Route, operation: Operation, *, final: bool
    ) -> tuple[Completion, bool]:
        """Perform one operation; the second value says that process and client must retire."""
        asked = route.node if route.kind == "pinned" else None
        invoked = self._history.append(
            *(process, "invoke", operation.f),
            key=operation.key,
            value=operation.value,
            node=asked,
            final=final,
        )
        completion = await self._invoke(client, operation)
        completed = self._history.append(
            *(process, completion.type, operation.f),
            key=operation.key,
            value=completion.value if completion.type == "ok" else operation.value,
            node=completion.node or asked,
            error=completion.error,
            position=completion.position,
            final=final,
        )
        self._traffic.completed(completion.type, completion.node or asked, invoked.time)
        took_s = (completed.time - invoked.time) / 1e9
        slow = took_s >= _TIMED_OUT_SHARE * self._timeout_s
        return completion, completion.type == "info" or (completion.type == "fail" and slow)

    async def _invoke(self, client: Client, operation: Operation) -> Completion:
        unanswered = "fail" if operation.f in PURE_READS else "info"
        try:
            async with asyncio.timeout(self._timeout_s + _CLIENT_GRACE_S):
                return await client.invoke(operation, self._timeout_s)
        except TimeoutError:
            return Completion(unanswered, error=_OVERDUE)
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
            return Completion(unanswered, error=_CRASHED)


class Clients:
    """All worker slots of one run."""

    def __init__(
        self,
        *,
        nodes: Sequence[NodeName],
        workload: Workload,
        load: Load,
        open_client: Callable[[Route], Client],
        performer: Performer,
        processes: Processes,
    ) -> None:
        self._routes = routes(nodes, load.concurrency)
        self._workload = workload
        self._load = load
        self._open_client = open_client
        self._performer = performer
        self._processes = processes

    async def run(self, stopped: asyncio.Event) -> None:
        """Load the system until ``stopped``; no operation is open when this returns."""
        start = asyncio.get_running_loop().time()
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            async with asyncio.TaskGroup() as group:
                for slot in range(self._load.concurrency):
                    group.create_task(self._run_slot(slot, start, stopping))
        finally:
            stopping.cancel()

    async def _run_slot(self, slot: int, start: float, stopping: "asyncio.Future[Any]") -> None:
        loop = asyncio.get_running_loop()
        slots, rate = self._load.concurrency, self._load.rate
        spacing_s = slots / rate / _CATCH_UP_FACTOR
        route = self._routes[slot]
        client, process = self._open_client(route), self._processes.fresh(slot)
        n, last = 0, start - spacing_s
        try:
            while True:
                due = max(start + (n * slots + slot) / rate, last + spacing_s)
                await _until(due, stopping)
                if stopping.done():
                    return
                last = loop.time()
                operation = self._workload.operation(slot, n)
                completion, retire = await self._performer.perform(
                    client, process, route, operation, final=False
                )
                self._workload.completed(operation, completion)
                n += 1
                if retire:
                    await client.close()
                    client, process = self._open_client(route), self._processes.fresh(slot)
        finally:
            await client.close()


async def _until(due: float, stopping: "asyncio.Future[Any]") -> None:
    delay_s = due - asyncio.get_running_loop().time()
    if delay_s > 0:
        await asyncio.wait((stopping,), timeout=delay_s)
    else:
        # Others get their turn even where this slot is behind.
        await asyncio.sleep(0)
