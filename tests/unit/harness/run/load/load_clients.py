"""Clients for tests of the load that pickle by name, so that worker processes can open them.

Each notes what it does in a ledger, a file that every process appends to: the system's own truth,
which a history must be a prefix of.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route


class Entry(msgspec.Struct, frozen=True):
    """An operation that reached the system."""

    #: On the machine's monotonic clock, ns.
    time: int
    process_id: int
    f: str
    key: str | None
    value: Any


#: Of an entry's line.
_BEGIN = b'{"time":'


class Ledger(msgspec.Struct, frozen=True):
    """Operations that the system saw."""

    path: str

    def note(self, operation: Operation) -> None:
        entry = Entry(time.monotonic_ns(), os.getpid(), operation.f, operation.key, operation.value)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        path = Path(self.path)
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        # Whoever is killed where a line crosses a page leaves its beginning before the next one.
        whole = [line[line.rindex(_BEGIN) :] for line in lines]
        return [msgspec.json.decode(line, type=Entry) for line in whole]


class Behaviour(msgspec.Struct, frozen=True):
    """How clients answer; opens them."""

    ledger: Ledger | None = None
    #: Time that an answer takes.
    delay_s: float = 0.0
    #: Clients of these nodes block their whole process that long instead.
    blocking_s: float = 0.0
    blocking_nodes: tuple[str, ...] = ()
    #: Clients of these routes answer ``info``.
    info_routes: tuple[str, ...] = ()
    raises_at: int | None = None
    hangs: bool = False

    def __call__(self, route: Route) -> "LedgerClient":
        return LedgerClient(self, route)


class LedgerClient:
    def __init__(self, behaviour: Behaviour, route: Route) -> None:
        self._behaviour = behaviour
        self._route = route
        self._count = 0
        self._closed = False

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        assert not self._closed
        self._count += 1
        behaviour = self._behaviour
        if behaviour.ledger is not None:
            behaviour.ledger.note(operation)
        if behaviour.raises_at == self._count:
            raise ValueError("a defect of the adapter")
        if behaviour.hangs:
            await asyncio.Event().wait()
        if self._route.node in behaviour.blocking_nodes:
            time.sleep(behaviour.blocking_s)  # noqa: ASYNC251 - the whole process is to be late
        elif behaviour.delay_s:
            await asyncio.sleep(behaviour.delay_s)
        if self._route.kind in behaviour.info_routes:
            return Completion("info", error="lost", node=self._route.node)
        value = [*operation.value, True] if operation.f == "cas" else operation.value
        return Completion("ok", value, None, (1, self._count), self._route.node)

    async def close(self) -> None:
        self._closed = True


def cannot_be_loaded() -> Behaviour:
    raise RuntimeError("this adapter cannot be loaded here")


class Unloadable:
    """Pickles here, and breaks where it is unpickled."""

    def __reduce__(self) -> Any:
        return cannot_be_loaded, ()

    def __call__(self, route: Route) -> LedgerClient:
        return LedgerClient(Behaviour(), route)
