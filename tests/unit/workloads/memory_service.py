"""A service in memory that does what workloads ask for, and mutants of it that break one promise.

Slots are tasks that take turns; where a client pauses, others go on. Some answers are lost.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.history.functions import only_reads
from splitbrain.history.records import PairedOperation
from splitbrain.systems.cells import RULES, Rule, Step, Values
from splitbrain.systems.workload_client import client_for
from splitbrain.workloads.workload import Workload

#: Ticks after which a lease has run out.
LEASE_TICKS: Final = 60
#: One answer in so many is lost.
LOST: Final = 40
_OF_ROWS: Final = ("insert", "delete", "range")


def _parts(operation: Operation, values: Values) -> Step:
    """Parts that each name a key; a list that was never appended to is null."""
    present, changes, answer = dict(values), dict[str, Any](), list[Any]()
    for kind, key, value in operation.value:
        if kind in _OF_ROWS:
            rows = list(present[key] or ())
            if kind == "range":
                answer.append([kind, key, rows])
                continue
            after = [*rows, value] if kind == "insert" else [row for row in rows if row != value]
            present[key] = changes[key] = after
            answer.append([kind, key, value if kind == "insert" or value in rows else None])
            continue
        if kind != "r":
            present[key] = changes[key] = value if kind == "w" else [*(present[key] or ()), value]
        answer.append([kind, key, value if kind != "r" else present[key]])
    return Step(answer, changes)


#: Transactions without an object.
_OF_KEYS: Final = Rule(lambda of: tuple(dict.fromkeys(key for _, key, _ in of.value)), _parts)


class Service:
    """Correct: each operation takes effect at one moment."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.values: dict[str, Any] = {}
        #: Values that were there before the present ones.
        self.former: dict[str, Any] = {}
        #: Token of a lock, and when it runs out.
        self.leases: dict[str, tuple[int, int]] = {}
        self.revision = 0
        self.time = 0

    def tick(self) -> int:
        self.time += 1
        return self.time

    async def pause(self) -> None:
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)

    async def perform(self, operation: Operation) -> Any:
        key = operation.key or ""
        match operation.f:
            case "read" | "get":
                return await self.read(key)
            case "write" | "put":
                self.put(key, operation.value)
                return operation.value
            case "generate":
                return await self.generate()
            case "acquire-lease":
                return self.acquire(key)
            case "release-lease":
                is_held = self.leases.get(key, (0, 0))[0] == operation.value
                return is_held and bool(self.leases.pop(key))
            case "txn" if operation.key is None:
                return await self.step(_OF_KEYS, operation)
            case other:
                return await self.step(RULES[other], operation)

    def put(self, cell: str, value: Any) -> None:
        self.revision += 1
        self.former[cell] = self.values.get(cell)
        self.values[cell] = value

    async def read(self, key: str) -> Any:
        return self.values.get(key)

    async def generate(self) -> int:
        self.revision += 1
        return self.revision

    def acquire(self, key: str) -> int | bool:
        _, until = self.leases.get(key, (0, 0))
        if until > self.time:
            return False
        self.revision += 1
        self.leases[key] = self.revision, self.time + LEASE_TICKS
        return self.revision

    async def step(self, rule: Rule, operation: Operation) -> Any:
        step = rule.step(operation, {cell: self.values.get(cell) for cell in rule.cells(operation)})
        for cell, value in step.changes.items():
            self.put(cell, value)
        return step.answer


class LosesUpdates(Service):
    """Does not look whether something was changed since it looked."""

    async def step(self, rule: Rule, operation: Operation) -> Any:
        step = rule.step(operation, {cell: self.values.get(cell) for cell in rule.cells(operation)})
        await self.pause()
        for cell, value in step.changes.items():
            self.put(cell, value)
        return step.answer


class TearsChanges(Service):
    """Changes one cell after the other."""

    async def step(self, rule: Rule, operation: Operation) -> Any:
        step = rule.step(operation, {cell: self.values.get(cell) for cell in rule.cells(operation)})
        for cell, value in step.changes.items():
            self.put(cell, value)
            await self.pause()
        return step.answer


class TearsReads(Service):
    """Looks at one cell after the other."""

    async def step(self, rule: Rule, operation: Operation) -> Any:
        values: dict[str, Any] = {}
        for cell in rule.cells(operation):
            values[cell] = self.values.get(cell)
            for _ in range(3):
                await self.pause()
        seen = rule.step(operation, values)
        return await super().step(rule, operation) if seen.changes else seen.answer


class GrantsTwice(Service):
    """Grants a lock that is held, now and then."""

    async def step(self, rule: Rule, operation: Operation) -> Any:
        if operation.f == "acquire" and not self._random.randrange(10):
            self.put(operation.key or "", operation.value)
            return True
        return await super().step(rule, operation)


class RepeatsIds(Service):
    """Looks up the next id, and notes later that it is taken."""

    async def generate(self) -> int:
        taken = self.revision + 1
        await self.pause()
        self.revision = taken
        return taken


class ReadsOldCopies(Service):
    """Answers a read by a copy that lacks the newest change, now and then."""

    async def read(self, key: str) -> Any:
        return (self.values if self._random.randrange(10) else self.former).get(key)


class TakesAnyToken(Service):
    """Accepts a guarded write whatever its token."""

    async def step(self, rule: Rule, operation: Operation) -> Any:
        if operation.f != "write-guarded":
            return await super().step(rule, operation)
        (cell,) = rule.cells(operation)
        self.put(cell, operation.value)
        return [*operation.value, True]


class MemoryClient:
    def __init__(self, service: Service, random: Random) -> None:
        self._service, self._random = service, random

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        await self._service.pause()
        is_lost = not self._random.randrange(LOST)
        if is_lost and self._random.randrange(2):
            return Completion("info", error="connection-lost")
        answer = await self._service.perform(operation)
        await self._service.pause()
        if is_lost:
            return Completion("info", error="connection-lost")
        return Completion("ok", answer)

    async def close(self) -> None:
        """There is nothing to drop."""


def history_of(
    workload: Workload, kind: type[Service], slots: int, operations_per_slot: int
) -> Sequence[PairedOperation]:
    """Run a workload on a service of this kind; the final reads are asked at the end."""
    random = Random(1)
    service = kind(random)
    found: list[PairedOperation] = []

    def open_client() -> Client:
        return client_for(workload.name, MemoryClient(service, random))

    async def ask(client: Client, process: int, operation: Operation, *, final: bool) -> Completion:
        start = service.tick()
        completion = await client.invoke(operation, 1.0)
        type_ = completion.type
        if type_ == "info" and only_reads(workload.functions, operation.f, operation.value):
            type_ = "fail"
        fields: dict[str, Any] = {"index": start, "process": process, "start": start}
        fields |= {"f": operation.f, "key": operation.key, "argument": operation.value}
        fields |= {"end": None if type_ == "info" else service.tick(), "final": final}
        found.append(PairedOperation(**fields, result=completion.value, type=type_))
        workload.completed(operation, completion)
        return completion

    async def work(slot: int) -> None:
        client, process = open_client(), slot
        for n in range(operations_per_slot):
            completion = await ask(client, process, workload.operation(slot, n), final=False)
            if completion.type == "info":
                client, process = open_client(), process + slots

    async def run() -> None:
        await asyncio.gather(*map(work, range(slots)))
        client = open_client()
        for operation in workload.final_reads():
            for _ in range(3):
                if (await ask(client, -1, operation, final=True)).type == "ok":
                    break

    asyncio.run(run())
    return sorted(found, key=lambda operation: operation.index)
