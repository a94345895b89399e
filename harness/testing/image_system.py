"""A container image as a system under test, with a client that the test has in its own words."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any, cast

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address, Runtime
from splitbrain.contracts.system import CLIENT_PORT, Route
from splitbrain.systems.servers import Refused, Server, ServerSystem

#: Performs one operation and returns the value of its ``ok``.
Ask = Callable[[Operation], Any]
#: Connects to a node and returns what asks it, or a context that yields it and is left at the end.
Connect = Callable[[Address], Ask | AbstractContextManager[Ask]]


class ImageSystem(ServerSystem):
    """Nodes of one image."""

    def __init__(
        self, image: str, command: Sequence[str], port: int, connect: Connect, workload: str
    ) -> None:
        """Take what ``splitbrain.cluster`` is given; the image has its tag."""
        self.name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
        self.image = image
        self.ports = {CLIENT_PORT: port}
        self._command, self._connect, self._workload = tuple(command), connect, workload

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Return the one that the test has chosen."""
        return (self._workload,)

    def check_options(self, options: Experiment) -> None:
        """Refuse a runtime without images, too."""
        super().check_options(options)
        if options.runtime != "docker":
            raise UsageError(
                f"the image {self.image!r} cannot run on the runtime {options.runtime!r}",
                "Choose runtime='docker'",
            )

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the same for every node."""
        return self._command

    def open_client(self, runtime: Runtime, route: Route) -> "FunctionClient":  # type: ignore[override]
        """Return a client of the route's node that asks as the test says."""
        there = runtime.endpoint(route.node, CLIENT_PORT)
        return FunctionClient(self._connect, route.node, there)


class FunctionClient:
    """Client of one node by two functions, on a thread of its own."""

    def __init__(self, connect: Connect, node: NodeName, there: Address) -> None:
        self._connect, self._node, self._there = connect, node, there
        self._ask: Ask | None = None
        self._connection = ExitStack()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"client of {node}")

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; errors of the connection are outcomes, others are the test's.

        Raises:
            Exception: one of Python's own that no broken connection raises.
        """
        loop = asyncio.get_running_loop()
        is_connected = False

        def performed() -> Any:
            nonlocal is_connected
            if self._ask is None:
                made = self._connect(self._there)
                if isinstance(made, AbstractContextManager):
                    context = cast("AbstractContextManager[Ask]", made)
                    made = self._connection.enter_context(context)
                self._ask = made
            is_connected = True
            return self._ask(operation)

        try:
            async with asyncio.timeout(timeout_s):
                value = await loop.run_in_executor(self._thread, performed)
        except Refused as answer:
            return Completion("fail", error=str(answer), node=self._node)
        except TimeoutError:
            # Its thread goes on, and may send it yet.
            return Completion("info", error="timeout")
        except Exception as broken:
            if type(broken).__module__ == "builtins" and not isinstance(broken, OSError | EOFError):
                raise
            # Of a library: nobody knows what became of the operation.
            if is_connected:
                return Completion("info", error="connection-broken")
            return Completion("fail", error="no-connection")
        return Completion("ok", value, node=self._node)

    async def close(self) -> None:
        """Ask nothing more; the connection is left once what is under way has ended by itself."""
        self._thread.submit(self._connection.close)
        self._thread.shutdown(wait=False)
