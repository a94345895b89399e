"""A workload's client in a simulated world: drives ``client_machine`` on its clock and network.

A node's greeting is a message of the world, asked for by a knock: only a node that runs sends it.
Must never decide anything: it carries out what the machine says, and tells what came of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.simulation.kraft.messages import Greeting, Knock
from splitbrain.simulation.world.network import SimulatedConnection
from splitbrain.simulation.world.world import Pending, SimulatedWorld
from splitbrain.systems.kraft import client_machine as machine

Done = Callable[[Completion], None]


class SimulatedKraftClient:
    """One worker slot's connection; implements ``contracts.simulation.SimulatedClient``.

    Its connections' end too (``contracts.simulation.ClientEnd``): one that was closed is silent.
    """

    def __init__(
        self, world: SimulatedWorld, place: str, name: str, nodes: Sequence[NodeName], route: Route
    ) -> None:
        """A client that connects at its first operation.

        ``name`` is unique among all clients and goes into the log with each command; ``nodes`` are
        those that may lead, in the order in which they are tried.
        """
        self._world = world
        self._place = place
        self._machine = machine.ClientMachine(name, nodes, route)
        self._connection: SimulatedConnection | None = None
        self._timer: Pending | None = None
        self._done: Done | None = None

    def invoke(self, operation: Operation, timeout_us: int, done: Done) -> None:
        """Perform one operation; see ``contracts.simulation.SimulatedClient``."""
        self._done = done
        self._step(machine.Invoked(operation, timeout_us))

    def close(self) -> None:
        """Drop the connection; an open operation is not reported any more."""
        self._stop_timer()
        self._step(machine.Closed())

    def answered(self, message: Any) -> None:
        """Note that the node sent something."""
        self._step(
            machine.Greeted() if isinstance(message, Greeting) else machine.Answered(message)
        )

    def lost(self, reason: str, *, refused: bool) -> None:
        """Note that the connection is gone; whether anything was sent, the machine knows."""
        self._step(machine.Lost())

    def _step(self, event: machine.Event) -> None:
        for effect in self._machine.step(event, self._world.now):
            match effect:
                case machine.Connect(node, limit_us):
                    self._connection = self._world.network.connect(self._place, node, self)
                    self._connection.send(Knock())
                    self._limit(limit_us)
                case machine.Send(request, limit_us):
                    self._limit(limit_us)
                    assert self._connection is not None
                    self._connection.send(request)
                case machine.Pause(limit_us):
                    self._limit(limit_us)
                case machine.Disconnect():
                    assert self._connection is not None
                    self._connection.close()
                case machine.Complete(completion):
                    self._stop_timer()
                    assert self._done is not None
                    self._done(completion)

    def _limit(self, limit_us: int) -> None:
        self._stop_timer()
        self._timer = self._world.after(limit_us, lambda: self._step(machine.TimePassed()))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
