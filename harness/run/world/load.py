"""The load's worker slots in virtual time; on a machine they are ``harness.run.clients``.

Each slot begins a little later than its timetable says, by its own draw, so that seeds differ in
what the clients do at one moment. After the last heal the limits on operations no longer hold for
the first slot, which follows the leader: progress can only be demanded where somebody asks for it.
"""

from collections.abc import Callable, Sequence
from typing import Final, Unpack

import msgspec

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.scenario import LoadOptions
from splitbrain.contracts.simulation import SimulatedCluster
from splitbrain.contracts.system import Route
from splitbrain.harness.run.load.reading import Reading
from splitbrain.harness.run.load.routes import routes
from splitbrain.harness.run.load.seat import Books, Seat
from splitbrain.harness.run.load.timetable import SlotTimes, Timetable
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.records import Event, EventFields, EventType
from splitbrain.simulation.world.world import SimulatedWorld
from splitbrain.workloads.workload import Workload

#: The highest rate in a world: where refusals take no time, more would let no time pass.
_RATE_MAX: Final = 1_000_000.0
_NS_PER_US: Final = 1_000


class VirtualHistory:
    """The clients' history and what it shows of the traffic."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self.events: list[Event] = []
        self.traffic = Traffic()
        #: Kinds of operations that were ever invoked, in the order of their first one.
        self.kinds: dict[str, None] = {}
        #: Kind to the latest invocation among its acknowledged operations.
        self.acknowledged_by_kind: dict[str, int] = {}
        #: Told the invocation time of each acknowledged operation.
        self.listeners: list[Callable[[int], None]] = []

    def append(
        self, process: int, type_: EventType, f: str, **fields: Unpack[EventFields]
    ) -> Event:
        """Stamp and record one event."""
        if type_ == "invoke":
            self.kinds[f] = None
        index, time = len(self.events), self._world.now * _NS_PER_US
        event = Event(index, time, process, type_, f, **fields)
        self.events.append(event)
        return event

    def completed(self, event: Event, invoked: int) -> None:
        """An operation that was invoked at this time, ns, ended so."""
        self.traffic.completed(event, invoked)
        if event.type != "ok":
            return
        invoked_us = invoked // _NS_PER_US
        latest_us = self.acknowledged_by_kind.get(event.f, -1)
        self.acknowledged_by_kind[event.f] = max(latest_us, invoked_us)
        for listener in self.listeners:
            listener(invoked_us)


class VirtualClient:
    """One slot's process and client, which are replaced together; one operation at a time."""

    def __init__(self, slot: int, route: Route, cluster: SimulatedCluster, books: Books) -> None:
        self._seat = Seat(slot, route, books)
        self._route, self._cluster = route, cluster
        self._timeout_us = books.timeout_us
        self._client = cluster.open_client(slot, route)

    def perform(
        self, operation: Operation, done: Callable[[Completion], None], *, final: bool = False
    ) -> None:
        """Perform one operation; ``done`` is called when the slot is ready for the next."""
        self._seat.begin(operation, final=final)

        def completed(completion: Completion) -> None:
            completion, is_retired = self._seat.end(completion)
            if is_retired:
                self._client.close()
                self._client = self._cluster.open_client(self._seat.slot, self._route)
            done(completion)

        self._client.invoke(operation, self._timeout_us, completed)

    def close(self) -> None:
        """Drop the connection."""
        self._client.close()


class _Slot:
    """One worker slot."""

    __slots__ = ("client", "is_busy", "number", "times")

    def __init__(self, number: int, times: SlotTimes, client: VirtualClient) -> None:
        self.number, self.times, self.client = number, times, client
        #: An operation is open or due.
        self.is_busy = False


class SimulatedLoad:
    """All worker slots of one simulated run."""

    def __init__(
        self,
        world: SimulatedWorld,
        cluster: SimulatedCluster,
        workload: Workload,
        options: LoadOptions,
        books: Books,
    ) -> None:
        self._world, self._workload = world, workload
        self._is_resting = False
        #: Operations under way.
        self.open_count = 0
        clients = options.clients
        timetable = Timetable(
            *(clients, min(options.rate, _RATE_MAX), options.operations_per_slot), options.kept
        )
        voters = [node for node in cluster.nodes if node not in cluster.observers]

        reading_us = options.readers_timeout_us or options.timeout_us
        readers_books = msgspec.structs.replace(books, timeout_us=reading_us)

        def slot(number: int, route: Route) -> _Slot:
            offset_us = world.between(f"client {number}", 0, timetable.period_us)
            times = SlotTimes(timetable, number, offset_us)
            own = readers_books if number >= clients - options.readers else books
            return _Slot(number, times, VirtualClient(number, route, cluster, own))

        placed = enumerate(routes(voters, clients, cluster.observers, options.readers))
        self._slots = [slot(number, route) for number, route in placed]

    def begin(self) -> None:
        """Note that the timetable starts now."""
        for slot in self._slots:
            self._schedule_next(slot)

    def demand_progress(self) -> None:
        """From now on, after a rest too, the first slot invokes operations, whatever is kept."""
        self._is_resting = False
        slot = self._slots[0]
        slot.times.demand(self._world.now, is_idle=not slot.is_busy)
        if not slot.is_busy:
            self._schedule_next(slot)

    def rest(self) -> None:
        """No operation begins any more."""
        self._is_resting = True

    def close(self) -> None:
        """Drop all connections; what is open stays open."""
        for slot in self._slots:
            slot.client.close()

    def _schedule_next(self, slot: _Slot) -> None:
        now_us = self._world.now
        due_us = None if self._is_resting else slot.times.due_us(now_us)
        slot.is_busy = due_us is not None
        if due_us is not None:
            self._world.after(due_us - now_us, lambda: self._invoke(slot))

    def _invoke(self, slot: _Slot) -> None:
        if self._is_resting:
            slot.is_busy = False
            return
        operation = self._workload.operation(slot.number, slot.times.begin(self._world.now))
        self.open_count += 1

        def done(completion: Completion) -> None:
            self.open_count -= 1
            self._workload.completed(operation, completion)
            self._schedule_next(slot)

        slot.client.perform(operation, done)


class VirtualFinalReads:
    """Reads of everything that was touched, by one reader."""

    def __init__(
        self,
        client: VirtualClient,
        kind: str,
        operations: Sequence[Operation],
        world: SimulatedWorld,
    ) -> None:
        """``kind``: of the client's route."""
        self._client, self._world = client, world
        self._reading = Reading(kind, operations)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self._reading.next is None

    def ask(self) -> None:
        """Ask for the next one, and so on until the last."""
        operation = self._reading.next
        if operation is None:
            self._client.close()
        else:
            self._client.perform(operation, self._took, final=True)

    def _took(self, completion: Completion) -> None:
        self._reading.took(completion)
        if self.is_over:
            self.ask()
        else:
            # Never within the answer itself, so that refusals at once do not nest.
            self._world.after(1 + self._reading.pause_us, self.ask)
