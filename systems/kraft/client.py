"""A workload's client of the quorum: pinned to one node, or following the leader.

A pinned client asks its node and no other; a node that does not lead refuses, which is a certain
failure. A leader-following client goes on to the next node only while it is certain that nothing
was appended. Must never send one operation twice once it may have been appended.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence

from contracts.names import NodeName
from contracts.operations import Completion, Operation
from contracts.runtime import Address
from contracts.system import Route
from nodes.transport.client_connection import ClientConnection, LostError, NotSentError, connect
from nodes.transport.client_protocol import ClientAnswer, ClientRequest
from systems.kraft.aim import (
    AVOIDANCE_S,
    CONNECT_TIMEOUT_S,
    NODE_HEADSTART_S,
    ROUND_PAUSE_S,
    Aim,
)
from systems.kraft.outcomes import (
    LOST,
    NO_LEADER,
    NOT_SENT,
    REQUEST_KINDS,
    TIMED_OUT,
    answered,
    certainly_not,
    may_go_on,
    unanswered,
)
from systems.kraft.state_machines import node_name

#: Where a node's client listener is reached now.
Endpoint = Callable[[NodeName], Address]


class KraftClient:
    """One worker slot's connections; implements ``contracts.operations.Client``."""

    def __init__(self, endpoint: Endpoint, nodes: Sequence[NodeName], route: Route) -> None:
        """A client that connects at its first operation.

        Args:
            endpoint: where a node is reached; asked again for every new connection.
            nodes: those that may lead, in the order in which they are tried.
            route: pinned to a node, or led by it to the leader.
        """
        self._endpoint = endpoint
        self._pinned = route.kind == "pinned"
        self._aim = Aim(nodes, route.node, AVOIDANCE_S)
        self._connection: ClientConnection | None = None
        self._connected_to: NodeName | None = None
        self._name = secrets.token_hex(6)
        self._sent_count = 0
        #: Closed since the operation under way began: nothing more is sent for it.
        self._is_closed = False

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        if operation.f not in REQUEST_KINDS:
            return certainly_not("unknown-operation", None)
        self._is_closed = False
        deadline = asyncio.get_running_loop().time() + timeout_s
        if self._pinned:
            completion, _ = await self._attempt(operation, self._aim.target, deadline)
            return completion
        return await self._follow(operation, deadline)

    async def close(self) -> None:
        """Drop the connection at once; an operation under way ends without another attempt."""
        self._is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._connected_to = None

    async def _follow(self, operation: Operation, deadline: float) -> Completion:
        """Ask node after node, led by hints, until one answers or time is up."""
        loop = asyncio.get_running_loop()
        self._aim.begin()
        while True:
            completion, hint = await self._attempt(operation, self._aim.target, deadline)
            if self._is_closed or not may_go_on(operation, completion):
                return completion
            self._disconnect()
            pause_s = ROUND_PAUSE_S if self._aim.aim_elsewhere(hint, loop.time()) else 0.0
            if loop.time() + max(pause_s, ROUND_PAUSE_S) >= deadline:
                # Too late for an answer: sent now, all that could be known would be lost.
                return certainly_not(NO_LEADER, completion.node)
            if pause_s:
                await asyncio.sleep(pause_s)  # back-off: no node can be waited on here

    async def _attempt(
        self, operation: Operation, node: NodeName, deadline: float
    ) -> tuple[Completion, NodeName | None]:
        """Ask one node once; the second value is the leader that it names."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            connection = await self._connect(node, deadline)
            answer = await connection.ask(
                self._request(operation, deadline - loop.time()), deadline - loop.time()
            )
        except NotSentError:
            if loop.time() - began >= CONNECT_TIMEOUT_S:
                self._aim.avoid(node, loop.time())
            self._disconnect()
            return certainly_not(NOT_SENT, node), None
        except LostError:
            self._disconnect()
            error = TIMED_OUT if loop.time() >= deadline else LOST
            return unanswered(operation, error, node), None
        completion = answered(operation, answer, node)
        if completion.type == "info":
            self._disconnect()
        return completion, self._hint(answer)

    def _hint(self, answer: ClientAnswer) -> NodeName | None:
        if answer.leader_id is None:
            return None
        name = node_name(answer.leader_id)
        return name if self._aim.knows(name) else None

    def _request(self, operation: Operation, remaining_s: float) -> ClientRequest:
        self._sent_count += 1
        node_timeout_s = max(remaining_s - NODE_HEADSTART_S, remaining_s / 2)
        return ClientRequest(
            id=self._sent_count,
            kind=REQUEST_KINDS[operation.f],
            key=operation.key or "",
            value=operation.value,
            operation=f"{self._name}-{self._sent_count}",
            timeout_ms=max(1, int(node_timeout_s * 1_000)),
        )

    async def _connect(self, node: NodeName, deadline: float) -> ClientConnection:
        """The open connection to this node, or a new one."""
        connection = self._connection
        if connection is not None and self._connected_to == node and connection.is_open:
            return connection
        self._disconnect()
        if self._is_closed:
            raise NotSentError("the client was closed")
        remaining_s = deadline - asyncio.get_running_loop().time()
        if remaining_s <= 0:
            raise NotSentError("no time left")
        address = self._endpoint(node)
        limit_s = remaining_s if self._pinned else min(remaining_s, CONNECT_TIMEOUT_S)
        connection, _ = await connect(address.host, address.port, limit_s)
        if self._is_closed:
            connection.close()
            raise NotSentError("the client was closed")
        self._connection = connection
        self._connected_to = node
        return connection
