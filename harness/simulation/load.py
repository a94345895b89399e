"""The clients' load in virtual time: the twin of ``harness.clients``, without an event loop.

Same routes, same timetable, same operations, same rule for retiring a process and its client; only
the clock differs, and each slot begins a little later than its timetable says, by its own draw, so
that seeds differ in what the clients do at one moment. All times are integer microseconds.

An operation that the scenario does not keep is left out without moving any other. After the last
heal the limits on operations no longer hold for the first slot, which follows the leader: progress
can only be demanded where somebody asks for it.

Must never look at a wall clock, nor hold a float as a time.
"""

import math
from collections.abc import Callable
from typing import Final

import msgspec

from contracts.names import NodeName
from contracts.operations import Completion, Operation
from contracts.scenario import LoadOptions
from contracts.simulation import SimulatedCluster, World
from contracts.system import Route
from harness.clients import CATCH_UP_FACTOR, TIMED_OUT_SHARE, routes
from harness.processes import Processes
from history.functions import Functions, only_reads
from history.records import Event
from workloads.workload import Workload

#: Operations per 1,000 seconds that stand for "as many as there can be".
_RATE_MILLI_MAX: Final = 1_000_000_000
#: How soon after an operation the next one follows where progress is demanded, at the least.
_DEMANDED_EVERY_US: Final = 20_000
_NS_PER_US: Final = 1_000
_US_PER_KILOSECOND: Final = 1_000_000_000


class VirtualHistory:
    """The clients' history and what it shows of the traffic."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.events: list[Event] = []
        #: Acknowledged operations: all, and by the node that answered.
        self.ok_count = 0
        self.ok_by_node: dict[str, int] = {}
        #: Latest invocation among the acknowledged operations; -1: there is none.
        self.acknowledged_us = -1
        #: Kinds of operations that were ever invoked, in the order of their first one.
        self.kinds: dict[str, None] = {}
        #: Kind to the latest invocation among its acknowledged operations.
        self.acknowledged_by_kind: dict[str, int] = {}
        #: Told the invocation time of each acknowledged operation.
        self.listeners: list[Callable[[int], None]] = []

    def invoked(
        self, process: int, operation: Operation, asked: NodeName | None, final: bool
    ) -> None:
        """An operation begins now."""
        self.kinds[operation.f] = None
        self.events.append(
            Event(
                len(self.events),
                self._world.now * _NS_PER_US,
                process,
                "invoke",
                operation.f,
                operation.key,
                operation.value,
                node=asked,
                final=final,
            )
        )

    def completed(
        self,
        process: int,
        operation: Operation,
        completion: Completion,
        node: str | None,
        final: bool,
        invoked_us: int,
    ) -> None:
        """An operation ends now."""
        is_ok = completion.type == "ok"
        self.events.append(
            Event(
                len(self.events),
                self._world.now * _NS_PER_US,
                process,
                completion.type,
                operation.f,
                operation.key,
                completion.value if is_ok else operation.value,
                node,
                completion.error,
                completion.position,
                final,
            )
        )
        if not is_ok:
            return
        self.ok_count += 1
        if node is not None:
            self.ok_by_node[node] = self.ok_by_node.get(node, 0) + 1
        self.acknowledged_us = max(self.acknowledged_us, invoked_us)
        latest_us = self.acknowledged_by_kind.get(operation.f, -1)
        self.acknowledged_by_kind[operation.f] = max(latest_us, invoked_us)
        for listener in self.listeners:
            listener(invoked_us)


class VirtualSeat:
    """One slot's process and client, which are replaced together; one operation at a time."""

    def __init__(
        self,
        *,
        world: World,
        cluster: SimulatedCluster,
        history: VirtualHistory,
        processes: Processes,
        slot: int,
        route: Route,
        timeout_us: int,
        functions: Functions,
    ) -> None:
        self._world = world
        self._functions = functions
        self._cluster = cluster
        self._history = history
        self._processes = processes
        self._slot = slot
        self._route = route
        self._timeout_us = timeout_us
        self._slow_us = int(timeout_us * TIMED_OUT_SHARE)
        #: Node that the client keeps to, None where it finds the leader itself.
        self._asked = route.node if route.kind == "pinned" else None
        self._client = cluster.open_client(slot, route)
        self._process = processes.fresh(slot)

    def perform(
        self, operation: Operation, done: Callable[[Completion], None], *, final: bool = False
    ) -> None:
        """Perform one operation; ``done`` is called when the seat is ready for the next."""
        invoked_us = self._world.now
        self._history.invoked(self._process, operation, self._asked, final)

        def completed(completion: Completion) -> None:
            is_open = completion.type == "info"
            if is_open and only_reads(self._functions, operation.f, operation.value):
                completion = msgspec.structs.replace(completion, type="fail")
            node = completion.node or self._asked
            self._history.completed(self._process, operation, completion, node, final, invoked_us)
            is_slow = self._world.now - invoked_us >= self._slow_us
            if is_open or (completion.type == "fail" and is_slow):
                self._client.close()
                self._client = self._cluster.open_client(self._slot, self._route)
                self._process = self._processes.fresh(self._slot)
            done(completion)

        self._client.invoke(operation, self._timeout_us, completed)

    def close(self) -> None:
        """Drop the connection."""
        self._client.close()


class _Slot:
    """Where one worker slot is in its stream of operations."""

    __slots__ = ("is_busy", "is_unlimited", "last_us", "n", "number", "offset_us", "seat")

    def __init__(self, number: int, offset_us: int, seat: VirtualSeat) -> None:
        self.number = number
        self.offset_us = offset_us
        self.seat = seat
        #: Its next operation.
        self.n = 0
        #: When it last began one.
        self.last_us = 0
        #: An operation is open or due.
        self.is_busy = False
        #: Limits do not hold any more.
        self.is_unlimited = False


class SimulatedLoad:
    """All worker slots of one simulated run."""

    def __init__(
        self,
        *,
        world: World,
        cluster: SimulatedCluster,
        workload: Workload,
        options: LoadOptions,
        history: VirtualHistory,
        processes: Processes,
    ) -> None:
        self._world = world
        self._workload = workload
        self._options = options
        self._is_resting = False
        #: Operations under way.
        self.open_count = 0
        # The one float is turned into an integer at once.
        rate = options.rate
        self._rate_milli = (
            max(1, min(_RATE_MILLI_MAX, int(rate * 1000)))
            if math.isfinite(rate)
            else _RATE_MILLI_MAX
        )
        clients = options.clients
        self._spacing_us = clients * _US_PER_KILOSECOND // (self._rate_milli * CATCH_UP_FACTOR)
        self._kept = None if options.kept is None else frozenset(options.kept)
        self._kept_end = 0 if not options.kept else 1 + max(n for _, n in options.kept)
        period_us = clients * _US_PER_KILOSECOND // self._rate_milli
        voters = [node for node in cluster.nodes if node not in cluster.observers]
        self._slots = [
            _Slot(
                number,
                world.between(f"client {number}", 0, period_us),
                VirtualSeat(
                    world=world,
                    cluster=cluster,
                    history=history,
                    processes=processes,
                    slot=number,
                    route=route,
                    timeout_us=options.timeout_us,
                    functions=workload.functions,
                ),
            )
            for number, route in enumerate(routes(voters, clients, cluster.observers))
        ]

    def begin(self) -> None:
        """The timetable starts now."""
        for slot in self._slots:
            slot.last_us = -self._spacing_us
            self._schedule_next(slot)

    def demand_progress(self) -> None:
        """From now on the first slot invokes operations, whatever the scenario keeps.

        Also after a rest.
        """
        self._is_resting = False
        slot = self._slots[0]
        slot.is_unlimited = True
        if not slot.is_busy:
            elapsed_us = max(0, self._world.now - slot.offset_us)
            passed = elapsed_us * self._rate_milli // (_US_PER_KILOSECOND * len(self._slots))
            slot.n = max(slot.n, passed)
            self._schedule_next(slot)

    def rest(self) -> None:
        """No operation begins any more."""
        self._is_resting = True

    def close(self) -> None:
        """Drop all connections; what is open stays open."""
        for slot in self._slots:
            slot.seat.close()

    def _schedule_next(self, slot: _Slot) -> None:
        """Wait until the slot's next operation is due, if there is one."""
        slot.is_busy = False
        if self._is_resting:
            return
        if not slot.is_unlimited:
            if self._kept is not None:
                while slot.n < self._kept_end and (slot.number, slot.n) not in self._kept:
                    slot.n += 1
                if slot.n >= self._kept_end:
                    return
            limit = self._options.operations_per_slot
            if limit is not None and slot.n >= limit:
                return
        slot.is_busy = True
        if slot.is_unlimited:
            # At a pace of its own: of some kinds of operations only one in many is.
            due_us = max(self._world.now, slot.last_us + _DEMANDED_EVERY_US)
            self._world.after(due_us - self._world.now, lambda: self._invoke(slot))
            return
        place = slot.n * len(self._slots) + slot.number
        due_us = max(
            slot.offset_us + place * _US_PER_KILOSECOND // self._rate_milli,
            slot.last_us + self._spacing_us,
        )
        self._world.after(due_us - self._world.now, lambda: self._invoke(slot))

    def _invoke(self, slot: _Slot) -> None:
        if self._is_resting:
            slot.is_busy = False
            return
        slot.last_us = self._world.now
        operation = self._workload.operation(slot.number, slot.n)
        slot.n += 1
        self.open_count += 1

        def done(completion: Completion) -> None:
            self.open_count -= 1
            self._workload.completed(operation, completion)
            self._schedule_next(slot)

        slot.seat.perform(operation, done)


class VirtualFinalReads:
    """Reads of everything that was touched, by a client that follows the leader.

    As in ``harness.final_reads`` it tries a few times, because a final read that is missing proves
    nothing; when even that settles nothing the rest is left.
    """

    _TRIES: Final = 5

    def __init__(self, seat: VirtualSeat, operations: tuple[Operation, ...], world: World) -> None:
        self._seat = seat
        self._left = list(operations)
        self._world = world
        self._tries = 0
        #: Whether nothing is left to do.
        self.is_over = not operations
        self.settled_count = 0

    def begin(self) -> None:
        """Ask for the first."""
        if not self.is_over:
            self._seat.perform(self._left[0], self._done, final=True)

    def _done(self, completion: Completion) -> None:
        self._tries += 1
        if completion.type == "ok":
            self._left.pop(0)
            self._tries = 0
            self.settled_count += 1
        self.is_over = not self._left or self._tries == self._TRIES
        if self.is_over:
            self._seat.close()
        else:
            # Never within the answer itself, so that refusals at once do not nest.
            self._world.after(
                1 + self._tries * _RETRY_PAUSE_US,
                lambda: self._seat.perform(self._left[0], self._done, final=True),
            )


#: A quick refusal is not asked again at once.
_RETRY_PAUSE_US: Final = 50_000
