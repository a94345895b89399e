"""One worker slot's process: what is recorded of its operations, and when it is retired. Sans-I/O.

After an unknown outcome, and after an operation that timed out, the process is retired and its
client replaced, so that a late answer never meets a later operation (design, section 4). The
driver, who holds the client, is told.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final, Protocol, Unpack

import msgspec

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.history.functions import Functions, only_reads
from splitbrain.history.records import Event, EventFields, EventType

#: A failure that took this share of the timeout is taken for a timeout.
TIMED_OUT_SHARE: Final = Fraction(9, 10)
_NS_PER_US: Final = 1_000


class Recorder(Protocol):
    """The history, or what a worker process hands over to it: events are recorded there."""

    def append(
        self, process: int, type_: EventType, f: str, **fields: Unpack[EventFields]
    ) -> Event:
        """Stamp and record one event; HarnessError where that cannot be done."""
        ...


class TrafficCounter(Protocol):
    """Counts what the clients' operations came to."""

    def completed(self, event: Event, invoked: int) -> None:
        """An operation that was invoked at this time (ns since the run's start) ended so."""
        ...


class Processes:
    """Numbers logical processes: one per worker slot at a time, never used again once retired.

    A process's number modulo the number of slots is its slot, so that a history shows which slot an
    operation came from, and worker processes that share out the slots never use one number twice.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._next = list(range(slots))

    def fresh(self, slot: int) -> int:
        """Return a process for the slot that no operation ran in before."""
        place = slot % self._slots
        process = self._next[place]
        self._next[place] += self._slots
        return process

    def upcoming(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Return the process that ``fresh`` would hand out next, for each of these slots."""
        return tuple(self._next[slot % self._slots] for slot in slots)

    def skip_to(self, process: int) -> None:
        """Hand out nothing before ``process`` in its slot: the others were used elsewhere."""
        place = process % self._slots
        self._next[place] = max(self._next[place], process)


class Books(msgspec.Struct, frozen=True):
    """All that the slots of one load have in common."""

    recorder: Recorder
    traffic: TrafficCounter
    processes: Processes
    #: Of the workload.
    functions: Functions
    #: Of an operation, microseconds.
    timeout_us: int


class Seat:
    """A slot's present process; one operation at a time."""

    def __init__(self, slot: int, route: Route, books: Books) -> None:
        self.slot = slot
        #: Node that the client keeps to, None where it finds the leader itself.
        self._node = route.node if route.kind == "pinned" else None
        self._append, self._traffic = books.recorder.append, books.traffic
        self._processes, self._functions = books.processes, books.functions
        self._slow_ns = int(books.timeout_us * TIMED_OUT_SHARE) * _NS_PER_US
        self._process = books.processes.fresh(slot)
        self._invoked: Event | None = None

    def begin(self, operation: Operation, *, final: bool = False) -> None:
        """Record that an operation begins, before the client is asked for it."""
        key, value, node = operation.key, operation.value, self._node
        self._invoked = self._append(
            self._process, "invoke", operation.f, key=key, value=value, node=node, final=final
        )

    def end(self, completion: Completion) -> tuple[Completion, bool]:
        """Record what became of it; the second value says that the client must be replaced."""
        invoked = self._invoked
        assert invoked is not None
        self._invoked = None
        is_open = completion.type == "info"
        if is_open and only_reads(self._functions, invoked.f, invoked.value):
            # The adapter need not know what the workload's operations do.
            completion = msgspec.structs.replace(completion, type="fail")
        is_ok = completion.type == "ok"
        completed = self._append(
            self._process,
            completion.type,
            invoked.f,
            key=invoked.key,
            value=completion.value if is_ok else invoked.value,
            node=completion.node or self._node,
            error=completion.error,
            position=completion.position,
            final=invoked.final,
        )
        self._traffic.completed(completed, invoked.time)
        is_retired = not is_ok and (is_open or completed.time - invoked.time >= self._slow_ns)
        if is_retired:
            self._process = self._processes.fresh(self.slot)
        return completion, is_retired
