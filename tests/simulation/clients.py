"""Clients of the simulated world: one operation at a time each, a timeout each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.quorum.identifiers import NodeId
from tests.simulation.registers import Command, encode

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World


class Operation:
    """One operation; the node tells it at most once what became of it."""

    def __init__(self, client: Client, number: int, key: int, command: Command | None) -> None:
        self.client = client
        self.number = number
        self.key = key
        self.command = command
        self.began = client.world.now
        #: Set once the client knows, or has given up.
        self.is_over = False
        #: What a read must reflect: see ``Oracle``.
        self.floor = client.world.oracle.floor(key)

    @property
    def is_read(self) -> bool:
        return self.command is None

    @property
    def payload(self) -> bytes:
        return encode(self.command)

    def acknowledged(self, offset: int) -> None:
        """The node says that the write is committed."""
        self.client.world.oracle.acknowledged(self, offset)
        self.client.hear(self, succeeded=True)

    def answered(self, result: tuple[int, int]) -> None:
        """The node answers the read with (value, offset that set it)."""
        self.client.world.oracle.read(self, result)
        self.client.hear(self, succeeded=True)

    def failed(self, leader_id: NodeId | None = None) -> None:
        self.client.hear(self, succeeded=False, leader_id=leader_id)

    def unknown(self) -> None:
        self.client.hear(self, succeeded=False)


class Client:
    """Thinks, asks the leader it believes in or a random node, waits, and so on."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self._stream = f"client {number}"
        self._leader: NodeId | None = None
        self._operation_count = 0
        self._number = number

    def begin(self) -> None:
        self.world.after(self.world.between(self._stream, 0, 100_000), self._invoke)

    def hear(
        self, operation: Operation, *, succeeded: bool, leader_id: NodeId | None = None
    ) -> None:
        """An answer leaves the node; it takes its time to get here."""
        delay = self.world.between(self._stream, 100, 1_000)

        def arrive() -> None:
            if operation.is_over:
                return
            operation.is_over = True
            if not succeeded:
                self._leader = leader_id
            self._next()

        self.world.after(delay, arrive)

    def _next(self) -> None:
        self.world.after(
            self.world.between(self._stream, 100, self.world.swarm.think_us_max), self._invoke
        )

    def _invoke(self) -> None:
        world = self.world
        if world.clients_rest:
            return
        operation = self._draw()
        host = self._choose()
        delay = world.between(self._stream, 100, 1_000)
        world.after(delay, lambda: host.submit(operation))

        def give_up() -> None:
            if not operation.is_over:
                operation.is_over = True
                self._leader = None
                self._next()

        world.after(world.swarm.client_timeout_us, give_up)

    def _draw(self) -> Operation:
        world = self.world
        self._operation_count += 1
        number = self._operation_count * 100 + self._number
        key = world.between(self._stream, 0, world.swarm.key_count - 1)
        if world.chance(self._stream, world.swarm.read_share):
            return Operation(self, number, key, None)
        return Operation(self, number, key, Command(number, key, number))

    def _choose(self) -> Host:
        world = self.world
        hosts = list(world.hosts.values())
        if self._leader is None or world.chance(self._stream, world.swarm.wandering_share):
            host = world.pick(self._stream, hosts)
            if self._leader is None:
                self._leader = host.node_id
            return host
        return world.hosts[self._leader]
