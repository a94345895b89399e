"""Clients that write all the time, so that the first write a new leader takes is seen at once.

One writer is pinned to each node, and a few follow the leader as an application's client does. All
run on one event loop. Must never decide what an acknowledgement is worth.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from bench.failover_arithmetic import Acknowledgement
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.system import LeaderView, Route, System

#: Time to ask for the leader's view, where writes tell no epoch.
VIEW_TIMEOUT_S: Final = 1.0


class WriterOptions(msgspec.Struct, frozen=True):
    """How the writers work."""

    #: Pause between the starts of two writes of one writer.
    interval_s: float = 0.01
    #: A write without an answer is given up after this, and its connection closed.
    timeout_s: float = 0.3
    #: Clients that look for the leader themselves.
    following_count: int = 2
    #: Whether epochs tell which leader has acknowledged a write; not all systems tell them.
    tells_epochs: bool = True


class Writers:
    """A fleet of writers, from ``start`` to ``stop``."""

    def __init__(
        self,
        system: System,
        runtime: Runtime,
        options: WriterOptions,
        nodes: Sequence[NodeName] = (),
    ) -> None:
        """``nodes``: those that are asked; none given: all."""
        self._system = system
        self._runtime = runtime
        self._nodes = tuple(nodes) or tuple(runtime.nodes())
        self._options = options
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._numbers = itertools.count()
        self._fault_is_on = False
        #: In the order of arrival; the owner may clear it.
        self.acknowledgements: list[Acknowledgement] = []

    def start(self) -> None:
        """Begin to write."""
        nodes = self._nodes
        for node in nodes:
            self._tasks.append(asyncio.create_task(self._write([Route("pinned", node)])))
        for number in range(self._options.following_count):
            turned = nodes[number % len(nodes) :] + nodes[: number % len(nodes)]
            routes = [Route("leader", node) for node in turned]
            self._tasks.append(asyncio.create_task(self._write(routes)))

    async def stop(self) -> None:
        """End every writer and wait for it."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def expect_new_leader(self) -> None:
        """From now on views are asked for where writes tell no epoch; before it is not needed."""
        self._fault_is_on = True

    async def until(self, reached: Callable[[], bool], patience_s: float) -> bool:
        """Wait until the acknowledgements satisfy the condition; False if they never did."""
        try:
            async with asyncio.timeout(patience_s):
                while not reached():
                    self._raise_failure()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return reached()
        return True

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _write(self, routes: list[Route]) -> None:
        """One writer: write, note, pause; a new client, by the next route, after a doubt."""
        turns = itertools.cycle(routes)
        client: Client | None = None
        follows = routes[0].kind == "leader"
        try:
            while True:
                began = time.monotonic()
                if client is None:
                    client = self._system.open_client(self._runtime, next(turns))
                if not await self._write_once(client, follows=follows):
                    await client.close()
                    client = None
                # The rate is what is asked for here; there is no condition to await.
                await asyncio.sleep(max(0.0, began + self._options.interval_s - time.monotonic()))
        except Exception:
            self._changed.set()  # whoever waits shall see it
            raise
        finally:
            if client is not None:
                await client.close()

    async def _write_once(self, client: Client, *, follows: bool) -> bool:
        """One write; whether the client may be used again."""
        operation = Operation("write", "failover", next(self._numbers))
        invoked_ns = time.monotonic_ns()
        completion = await client.invoke(operation, self._options.timeout_s)
        acknowledged_ns = time.monotonic_ns()
        if completion.type == "ok":
            epoch = None if completion.position is None else completion.position[0]
            view: LeaderView | None = None
            if epoch is None and self._fault_is_on and self._options.tells_epochs:
                view = await asyncio.to_thread(self._system.leader, self._runtime, VIEW_TIMEOUT_S)
            self.acknowledgements.append(
                Acknowledgement(
                    invoked_ns, acknowledged_ns, completion.node, epoch, view, follows=follows
                )
            )
            self._changed.set()
        return completion.type != "info"
