"""Carries out a story of the load: the one part of the goldens that knows who does that.

Now it is ``harness.run.clients`` and ``harness.run.load_phase`` on an event loop. Whoever takes
their place has a function ``loaded`` of the same kind; stories, rendering and golden files stay.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import Clients, LoadSetup
from splitbrain.harness.run.load.reading import readers
from splitbrain.harness.run.load.routes import reader_slots
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.load_phase import read_finally
from splitbrain.harness.run.traffic import Counts, Traffic
from splitbrain.history.records import Event, EventType
from splitbrain.workloads.workload import Workload, workload
from tests.golden.load_story import OBSERVERS, VOTERS, Answer, LoadStory
from tests.golden.virtual_loop import VirtualLoop

#: How long an answer to a final read takes: no two readers are answered at one moment.
_FINAL_MS: Final = {
    ("leader", VOTERS[0]): 5.01,
    **{("pinned", node): 11.03 + 4.07 * place for place, node in enumerate((*VOTERS, *OBSERVERS))},
}
#: From the end of the load to the final reads.
_CALM_S = 0.5


class Opened(msgspec.Struct, frozen=True):
    """A client was opened."""

    number: int
    route: Route


class ClientEnded(msgspec.Struct, frozen=True):
    """A client was closed, was given up while it waited, or got an answer when it was too late."""

    number: int
    how: str


class Told(msgspec.Struct, frozen=True):
    """The workload was told an outcome."""

    slot: int
    n: int
    completion: Completion


class Ended(msgspec.Struct, frozen=True):
    """A part of the run is over."""

    words: str


Entry = Event | Opened | ClientEnded | Told | Ended


class LoadRecord(msgspec.Struct, frozen=True):
    """All that a load has shown."""

    story: LoadStory
    #: Microseconds since the loop's start, and what was seen.
    entries: list[tuple[int, Entry]]
    counts: Counts
    failure: HarnessError | None
    #: The process that each slot would have next.
    upcoming: tuple[int, ...]


class _Tape:
    """All that a load shows; the recorder of its events too."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._count = 0
        self.entries: list[tuple[int, Entry]] = []

    def tell(self, entry: Entry) -> None:
        self.entries.append((self._loop.now_us, entry))

    def append(self, process: int, type_: EventType, f: str, **fields: Any) -> Event:
        """Stamp and record one event."""
        event = Event(
            index=self._count,
            time=self._loop.now_us * 1000,
            process=process,
            type=type_,
            f=f,
            **fields,
        )
        self._count += 1
        self.tell(event)
        return event


class _ToldWorkload:
    """The workload, which remembers whose operation each of them is."""

    def __init__(self, inner: Workload, tape: _Tape) -> None:
        self._inner = inner
        self._tape = tape
        self.name, self.checkers, self.functions = inner.name, inner.checkers, inner.functions
        self.final_reads, self.at_observer = inner.final_reads, inner.at_observer
        self.options = inner.options
        #: By identity, and the operation itself, so that no other takes its place.
        self.places: dict[int, tuple[int, int, Operation]] = {}

    def operation(self, slot: int, n: int) -> Operation:
        operation = msgspec.structs.replace(self._inner.operation(slot, n))
        self.places[id(operation)] = (slot, n, operation)
        return operation

    def completed(self, operation: Operation, completion: Completion) -> None:
        slot, n, _ = self.places[id(operation)]
        self._tape.tell(Told(slot, n, completion))
        self._inner.completed(operation, completion)


class _System:
    """The system under test, which answers as the story says."""

    def __init__(self, story: LoadStory, tape: _Tape, told: _ToldWorkload) -> None:
        self.story, self.tape = story, tape
        self._told = told
        self._count = 0
        self._tries: Counter[tuple[str, str, str | None]] = Counter()

    def open_client(self, route: Route) -> "_Client":
        client = _Client(self, self._count, route)
        self._count += 1
        self.tape.tell(Opened(client.number, route))
        return client

    def answer_to(self, operation: Operation, route: Route) -> Answer:
        place = self._told.places.get(id(operation))
        if place is None:
            return self._final_answer(operation, route)
        slot, n, _ = place
        story = self.story
        return story.answers.get((slot, n)) or story.slot_answers.get(slot) or story.usual

    def _final_answer(self, operation: Operation, route: Route) -> Answer:
        whose = (route.kind, route.node, operation.key)
        number = self._tries[whose]
        self._tries[whose] += 1
        place: Any = (*whose, number)
        # The answer of the most exact place counts.
        found = [self.story.final_answers.get(place[:length]) for length in (4, 3, 2)]
        given = next((answer for answer in found if answer is not None), None)
        return given or Answer(after_ms=_FINAL_MS[route.kind, route.node])


class _Client:
    """One connection's worth of the system."""

    def __init__(self, system: _System, number: int, route: Route) -> None:
        self._system = system
        self.number = number
        self._route = route
        self._count = 0

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        answer = self._system.answer_to(operation, self._route)
        try:
            if answer.type == "never":
                await asyncio.Event().wait()
            if answer.after_ms:
                await asyncio.sleep(answer.after_ms / 1000)
        except asyncio.CancelledError:
            self._tell("given up")
            raise
        if answer.type == "raises":
            raise ValueError("a defect of the adapter")
        if answer.late_ms is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(answer.late_ms / 1000, self._tell, "answered too late")
        if answer.type in ("fail", "info"):
            return Completion(answer.type, error=answer.error, node=answer.node)
        self._count += 1
        value = [*operation.value, True] if operation.f == "cas" else operation.value
        if operation.f == "delete":
            value = True
        node = answer.node or self._route.node
        return Completion("ok", value, None, (1, self._count), node)

    async def close(self) -> None:
        if self._system.story.closing_ms:
            await asyncio.sleep(self._system.story.closing_ms / 1000)
        self._tell("closed")

    def _tell(self, how: str) -> None:
        self._system.tape.tell(ClientEnded(self.number, how))


def loaded(story: LoadStory) -> LoadRecord:
    """The story, from the load's start to its end, and to that of the final reads."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_loaded(story, loop))
    finally:
        loop.close()


async def _loaded(story: LoadStory, loop: VirtualLoop) -> LoadRecord:
    tape, stop, traffic = _Tape(loop), Stop(), Traffic()
    slots = story.load.concurrency
    inner = workload(
        story.workload,
        seed=story.seed,
        slots=slots,
        readers=reader_slots(VOTERS, slots, story.observers),
        options=story.workload_options,
    )
    told = _ToldWorkload(inner, tape)
    system = _System(story, tape, told)
    processes = Processes(slots)
    timeout_us = story.load.operation_timeout_us
    books = Books(tape, traffic, processes, inner.functions, timeout_us)
    setup = LoadSetup(VOTERS, told, story.load, story.observers)
    clients = Clients(setup, system.open_client, books, stop, story.slots)
    stopped = asyncio.Event()
    stop.notify(loop, stopped)
    loop.call_later(story.load.time_limit_s, stopped.set)
    if story.interrupt_ms is not None:
        loop.call_later(story.interrupt_ms / 1000, stop.interrupt)
    await clients.get_ready(stopped)
    await clients.run(stopped, None if story.start_ms is None else story.start_ms / 1000)
    tape.tell(Ended("the load is over"))
    if story.reads_finally:
        await asyncio.sleep(_CALM_S)
        requests = readers(VOTERS, story.observers, inner.final_reads(), inner)
        unsettled = await read_finally(requests, system.open_client, books, stop)
        tape.tell(Ended(f"{unsettled} final reads of the leader are not settled"))
    # Later completions are told to nobody.
    await asyncio.sleep(_CALM_S)
    return LoadRecord(
        story, tape.entries, traffic.counts(), stop.failure, processes.upcoming(range(slots))
    )
