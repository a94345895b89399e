"""Simulated connections: first in first out, with delays, stalls, resets and half-open ends.

A cut link stalls what is sent on it until it heals, as TCP does; a client that has given up closes
its end, and what it had sent may still arrive. A message for an earlier life of a server resets
the connection. Order holds within a connection only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from nodes.quorum.messages import Answer, Request

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World


class Connection:
    """One connection from a client node to a server node."""

    def __init__(self, number: int, client: Host, server: Host) -> None:
        self.number = ConnectionId(number)
        self.client = client
        self.server = server
        self.client_life = client.incarnation
        #: Life of the server that accepted it, None before that.
        self.server_life: int | None = None
        self.client_open = True
        self.server_open = True
        #: When the last message of each direction arrives.
        self.arrivals = {client.node_id: 0, server.node_id: 0}

    @property
    def client_listens(self) -> bool:
        return self.client_open and self.client.incarnation == self.client_life

    @property
    def server_listens(self) -> bool:
        return self.server_open and self.server.incarnation == self.server_life


class Network:
    """Every connection, and which links are cut."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._connection_count = 0
        #: (from, to) of the links that are cut.
        self._cuts: list[tuple[NodeId, NodeId]] = []
        self._stalled: list[tuple[Connection, NodeId, Callable[[], None]]] = []
        self._open: dict[ConnectionId, Connection] = {}
        #: No resets and no slow messages any more.
        self._is_calm = False

    def connect(self, client: Host, server: Host) -> Connection:
        self._connection_count += 1
        connection = Connection(self._connection_count, client, server)
        self._open[connection.number] = connection
        return connection

    def cut(self, source: NodeId, target: NodeId) -> None:
        if (source, target) not in self._cuts:
            self._cuts.append((source, target))

    def heal(self) -> None:
        """Ends every cut; what was stalled goes on."""
        self._cuts.clear()
        stalled, self._stalled = self._stalled, []
        for connection, target, action in stalled:
            when = max(self._world.now + self._delay(), connection.arrivals[target])
            connection.arrivals[target] = when
            self._world.after(when - self._world.now, action)

    def calm_down(self) -> None:
        """Ends every cut, and resets and slow messages for good."""
        self._is_calm = True
        self.heal()

    def is_cut(self, source: NodeId, target: NodeId) -> bool:
        return (source, target) in self._cuts

    def send_request(
        self, connection: Connection, correlation: CorrelationId, request: Request
    ) -> None:
        """Carries a request to the server, or resets the connection."""

        def arrive() -> None:
            server = connection.server
            refused = connection.server_life is None and not server.is_up
            if connection.server_life is None:
                connection.server_life = server.incarnation
            if not server.is_up or not connection.server_listens:
                self.reset(connection, refused=refused)
                return
            server.receive_request(connection, correlation, request)

        self._carry(connection, connection.client.node_id, connection.server.node_id, arrive)

    def send_answer(self, number: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Carries an answer to the client, if the connection is still there."""
        connection = self._open.get(number)
        if connection is None or not connection.server_listens:
            return

        def arrive() -> None:
            if connection.client_listens and connection.client.is_up:
                connection.client.receive_answer(connection, correlation, answer)

        self._carry(connection, connection.server.node_id, connection.client.node_id, arrive)

    def close_client(self, connection: Connection) -> None:
        """The client's end closes; the server hears of it after all that was sent before."""
        connection.client_open = False

        def arrive() -> None:
            self._drop(connection)

        self._carry(
            connection, connection.client.node_id, connection.server.node_id, arrive, reset=False
        )

    def reset(self, connection: Connection, *, refused: bool = False) -> None:
        """Both ends hear of it, each on its own time. Refused: nobody listens there."""
        client = connection.client
        if connection.client_listens and client.is_up:
            self._world.after(
                self._delay(), lambda: client.lose_connection(connection, refused=refused)
            )
        self._world.after(self._delay(), lambda: self._drop(connection))

    def crash(self, host: Host) -> None:
        """The node is gone: most of its connections are reset, some clients just wait."""
        for connection in list(self._open.values()):
            if connection.server is host and self._world.chance("network", 0.7):
                self.reset(connection)
            elif connection.client is host:
                self._world.after(self._delay(), lambda gone=connection: self._drop(gone))

    def _drop(self, connection: Connection) -> None:
        self._open.pop(connection.number, None)
        if connection.server_open and connection.server_life is not None:
            listens = connection.server_listens
            connection.server_open = False
            if listens and connection.server.is_up:
                connection.server.hear_of_close(connection.number)

    def _carry(
        self,
        connection: Connection,
        source: NodeId,
        target: NodeId,
        arrive: Callable[[], None],
        *,
        reset: bool = True,
    ) -> None:
        world = self._world
        if reset and not self._is_calm and world.chance("network", world.swarm.reset_chance):
            self.reset(connection)
            return
        when = max(world.now + self._delay(), connection.arrivals[target])
        connection.arrivals[target] = when

        def travel() -> None:
            if self.is_cut(source, target):
                self._stalled.append((connection, target, travel))
            else:
                arrive()

        world.after(when - world.now, travel)

    def _delay(self) -> int:
        swarm = self._world.swarm
        if not self._is_calm and self._world.chance("network", swarm.slow_message_chance):
            return self._world.between("network", 20_000, 300_000)
        return self._world.between("network", swarm.delay_us_min, swarm.delay_us_max)
