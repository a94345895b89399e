"""A workload's client of the quorum: drives ``client_machine`` on a loop, and decides nothing."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Final

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_connection import (
    ClientConnection,
    LostError,
    NotAnsweredError,
    NotGreetedError,
    NotSentError,
    connect,
)
from splitbrain.systems.kraft import client_machine as machine

_US: Final = 1_000_000

#: Where a node's client listener is reached now.
Endpoint = Callable[[NodeName], Address]


class KraftClient:
    """One worker slot's connections; implements ``contracts.operations.Client``."""

    def __init__(self, endpoint: Endpoint, nodes: Sequence[NodeName], route: Route) -> None:
        """A client that connects at its first operation.

        The endpoint is asked again for every new connection; ``nodes`` may lead, and are tried in
        their order.
        """
        self._endpoint = endpoint
        self._machine = machine.ClientMachine(secrets.token_hex(6), nodes, route)
        self._connection: ClientConnection | None = None

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        clock = asyncio.get_running_loop().time
        if self._connection is None or not self._connection.is_open:
            self._machine.step(machine.Lost(), int(clock() * _US))
        event: machine.Event = machine.Invoked(operation, round(timeout_s * _US))
        try:
            while True:
                for effect in self._machine.step(event, int(clock() * _US)):
                    match effect:
                        case machine.Complete():
                            return effect.completion
                        case machine.Disconnect():
                            self._disconnect()
                        case awaiting:
                            event = await self._came_of(awaiting)
        except BaseException:
            # Given up, or no address is known: nobody waits for what becomes of the operation.
            await self.close()
            raise

    async def close(self) -> None:
        """Drop the connection at once; an operation under way ends without another attempt."""
        self._machine.step(machine.Closed(), int(asyncio.get_running_loop().time() * _US))
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def _came_of(self, awaiting: machine.Awaiting) -> machine.Event:
        limit_s = awaiting.limit_us / _US
        try:
            match awaiting:
                case machine.Send():
                    assert self._connection is not None
                    return machine.Answered(await self._connection.ask(awaiting.request, limit_s))
                case machine.Connect():
                    address = self._endpoint(awaiting.node)
                    self._connection, _ = await connect(address.host, address.port, limit_s)
                    return machine.Greeted()
                case machine.Pause():
                    await asyncio.sleep(limit_s)
                    return machine.TimePassed()
        except (NotGreetedError, NotAnsweredError):
            return machine.TimePassed()
        except NotSentError:
            return machine.NotSent()
        except LostError:
            return machine.Lost()
