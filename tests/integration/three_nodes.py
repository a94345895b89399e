"""A cluster of three real node processes on 127.0.0.1, without containers, for the tests here."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import tenacity

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.convergence import await_ready
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.systems.kraft.adapter import KraftSystem

PATIENCE_S = 20.0

Result = TypeVar("Result")


class Cluster:
    """A running cluster and its adapter, with the few steps that the tests share."""

    def __init__(self, folder: Path, bugs: tuple[str, ...]) -> None:
        self.folder = folder
        self.system = KraftSystem()
        options = Experiment(system="kraft", nodes=3, bugs=bugs)
        self.runtime = LocalRuntime("processes")
        self.spec = self.system.deployment(
            RunId("integration"), folder, options, self.runtime.place
        )

    def terminate(self, node: NodeName) -> int:
        """SIGTERM, as an operator stops a node; its exit code."""
        code = self.runtime.processes.terminate(node, PATIENCE_S)
        assert code is not None, "it runs on"
        return code

    def await_ready(self) -> None:
        """All three follow one leader, within the time that a run would give them."""
        await_ready(self.system, self.runtime, self.system.tempo().ready_s, Stop())

    def await_converged(self) -> None:
        """All three hold the same committed log."""
        awaited(lambda: self.system.converged(self.runtime))

    def leader(self) -> NodeName:
        """The node that leads now; waits until there is one."""

        def found() -> NodeName:
            node = self.system.leader(self.runtime, 1.0).leader
            assert node is not None, "no leader"
            return node

        return awaited(found)

    def paused_others(self, leader: NodeName) -> list[NodeName]:
        """Pause every node but this one."""
        others = [node for node in self.runtime.nodes() if node != leader]
        for node in others:
            self.runtime.pause(node)
        return others

    def follower(self) -> NodeName:
        """A node that does not lead now."""
        leader = self.leader()
        return next(node for node in self.runtime.nodes() if node != leader)

    def invoke(
        self, *operations: Operation, route: Route | None = None, timeout_s: float = 5.0
    ) -> list[Completion]:
        """Perform operations one after the other with one client."""

        async def body() -> list[Completion]:
            client = self.system.open_client(self.runtime, route or Route("leader", NodeName("n1")))
            try:
                return [await client.invoke(operation, timeout_s) for operation in operations]
            finally:
                await client.close()

        return asyncio.run(body())

    def pinned(self, node: NodeName, operation: Operation, timeout_s: float = 5.0) -> Completion:
        """Perform one operation at one node."""
        (completion,) = self.invoke(operation, route=Route("pinned", node), timeout_s=timeout_s)
        return completion

    def value_of(self, key: str) -> object:
        """A register's value; asks again where leadership moves on."""

        def answered() -> object:
            (completion,) = self.invoke(Operation("read", key, None))
            assert completion.type == "ok", completion
            return completion.value

        return awaited(answered)


def awaited(step: Callable[[], Result]) -> Result:
    """Try again until it raises nothing, for as long as the patience lasts."""
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_delay(PATIENCE_S), wait=tenacity.wait_fixed(0.02), reraise=True
    )
    return retrying(step)
