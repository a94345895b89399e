"""A workload's client of Redis: pinned to one node's server, or following Sentinel.

A pinned client asks its node and no other, whatever the Sentinels say: an application whose
connection to a deposed primary still stands. A following client does what the guidelines for
Sentinel clients ask for: it asks the Sentinels, makes sure by ``ROLE`` that the node believes it,
and asks again after an error; unless told otherwise it also looks again while all is well, as
clients that listen to switches do. It goes on to another node only while it is certain that nothing
was executed. Must never send one operation twice once it may have been executed.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.systems.redis import outcomes
from splitbrain.systems.redis.commands import PRIMARY_ROLE, commands, is_known, only_reads, role_of
from splitbrain.systems.redis.resp import (
    ErrorReply,
    LostError,
    NotSentError,
    RespConnection,
    connect,
    pairs,
)
from splitbrain.systems.redis.settings import (
    MASTER_NAME,
    SENTINEL_PORT,
    SERVER_PORT,
    Endpoint,
    Membership,
    Settings,
)

#: Longest wait for one Sentinel while others could be asked instead.
ANSWER_PATIENCE_S: Final = 0.2
#: A Sentinel that did not answer is left alone for so long.
SILENCE_S: Final = 1.0
#: Time between two looks at what the Sentinels say.
LOOK_INTERVAL_S: Final = 0.25
#: Longest wait of a following client for one node's connection.
CONNECT_TIMEOUT_S: Final = 0.5
#: Pause before the Sentinels are asked again; a failover takes seconds.
PAUSE_S: Final = 0.05


class Sentinels:
    """One client's connections to the Sentinels, and the newest that they said.

    A Sentinel that is cut off goes on naming the old primary, so an answer with a lower
    configuration epoch than one already seen is outdated and not followed. That makes a client as
    quick and as well informed as one that listens to the switches of all Sentinels.
    """

    def __init__(self, endpoint: Endpoint, membership: Membership, first: NodeName) -> None:
        """Connect at the first question, to the Sentinel of ``first``."""
        nodes = [member.node for member in membership.members]
        place = nodes.index(first)
        self._order = nodes[place:] + nodes[:place]
        self._endpoint = endpoint
        self._membership = membership
        self._connections: dict[NodeName, RespConnection] = {}
        self._silent_until: dict[NodeName, float] = {}
        self._looked_at = float("-inf")
        self._epoch = -1
        #: The primary of the highest configuration epoch seen.
        self.primary: NodeName | None = None

    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return asyncio.get_running_loop().time() - self._looked_at >= LOOK_INTERVAL_S

    async def look(self, deadline: float) -> bool:
        """Ask one Sentinel after the other until one answers; False if none did in time."""
        loop = asyncio.get_running_loop()
        for node in self._askable():
            remaining_s = deadline - loop.time()
            if remaining_s <= 0:
                break
            # The next look begins with the next one: each has its own view.
            self._order.append(self._order.pop(self._order.index(node)))
            if await self._ask(node, min(remaining_s, ANSWER_PATIENCE_S)):
                self._looked_at = loop.time()
                return True
            self._silent_until[node] = loop.time() + SILENCE_S
        return False

    def close(self) -> None:
        """Drop all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _askable(self) -> Sequence[NodeName]:
        """Those not known to be silent; all where that leaves none."""
        now = asyncio.get_running_loop().time()
        talking = [node for node in self._order if self._silent_until.get(node, now) <= now]
        return talking or list(self._order)

    async def _ask(self, node: NodeName, timeout_s: float) -> bool:
        """Whether this Sentinel said something that is not outdated."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            connection = self._connections.get(node)
            if connection is None or not connection.is_open:
                connection = await connect(self._endpoint(node, SENTINEL_PORT), timeout_s)
                self._connections[node] = connection
            question = ("SENTINEL", "MASTER", MASTER_NAME)
            (reply,) = await connection.ask([question], deadline - loop.time())
        except (NotSentError, LostError):
            self._connections.pop(node, None)
            return False
        if isinstance(reply, ErrorReply):
            return False
        return self._take(pairs(reply))

    def _take(self, fields: dict[str, str]) -> bool:
        named = self._membership.node_at(fields.get("ip", ""), fields.get("port", ""))
        epoch = fields.get("config-epoch", "")
        if named is None or not epoch.isdigit() or int(epoch) < self._epoch:
            return False
        self._epoch = int(epoch)
        self.primary = named
        return True


class _RefusedError(NotSentError):
    """The node answered, and is not the one that is looked for."""


class RedisClient:
    """One worker slot's connections; implements ``contracts.operations.Client``."""

    def __init__(
        self, endpoint: Endpoint, membership: Membership, route: Route, settings: Settings
    ) -> None:
        """Connects at its first operation; a following client asks the route's Sentinel first."""
        self._endpoint = endpoint
        self._settings = settings
        self._sentinels = (
            None if route.kind == "pinned" else Sentinels(endpoint, membership, route.node)
        )
        self._target: NodeName | None = route.node if self._sentinels is None else None
        self._connection: RespConnection | None = None
        self._connected_to: NodeName | None = None

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        if not is_known(operation):
            return outcomes.certainly_not(outcomes.UNKNOWN_OPERATION, None)
        deadline = asyncio.get_running_loop().time() + timeout_s
        if self._sentinels is not None:
            return await self._follow(self._sentinels, operation, deadline)
        assert self._target is not None, "a pinned client has a node"
        return await self._attempt(operation, self._target, deadline)

    async def close(self) -> None:
        """Drop all connections at once."""
        self._drop()
        if self._sentinels is not None:
            self._sentinels.close()

    async def _follow(
        self, sentinels: Sentinels, operation: Operation, deadline: float
    ) -> Completion:
        """Ask whom the Sentinels name, until one answers or time is up."""
        loop = asyncio.get_running_loop()
        last: Completion | None = None
        while True:
            if self._target is None or (self._settings.follow_switches and sentinels.is_due()):
                # Where no Sentinel answers, the primary that is known is still worth asking.
                await sentinels.look(deadline)
                self._target = sentinels.primary
            if self._target is not None:
                last = await self._attempt(operation, self._target, deadline)
                if last.type != "fail" or not _may_ask_elsewhere(operation, last):
                    return last
            self._drop()
            self._target = None
            if loop.time() + PAUSE_S >= deadline:
                # Too late for an answer: sent now, all that could be known would be lost.
                return outcomes.certainly_not(
                    outcomes.NO_PRIMARY, None if last is None else last.node
                )
            await asyncio.sleep(PAUSE_S)  # back-off: nothing here can be waited on

    async def _attempt(self, operation: Operation, node: NodeName, deadline: float) -> Completion:
        loop = asyncio.get_running_loop()
        try:
            connection = await self._connect(node, deadline)
            replies = await connection.ask(commands(operation), deadline - loop.time())
        except _RefusedError:
            self._drop()
            return outcomes.certainly_not(outcomes.NOT_PRIMARY, node)
        except NotSentError:
            self._drop()
            return outcomes.certainly_not(outcomes.NOT_SENT, node)
        except LostError:
            self._drop()
            error = outcomes.TIMED_OUT if loop.time() >= deadline else outcomes.LOST
            return outcomes.unanswered(operation, error, node)
        completion = outcomes.answered(
            operation, replies, node, replica_reads=self._settings.replica_reads
        )
        if completion.type == "info":
            self._drop()
        return completion

    async def _connect(self, node: NodeName, deadline: float) -> RespConnection:
        """Return the open connection to this node, or a new one that has shown a sign of life.

        In front of a node there may be a proxy that accepts connections for a dead one. So nothing
        that matters is sent before the node has said its role.
        """
        connection = self._connection
        if connection is not None and self._connected_to == node and connection.is_open:
            return connection
        self._drop()
        loop = asyncio.get_running_loop()
        limit_s = deadline - loop.time()
        if self._sentinels is not None:
            limit_s = min(limit_s, CONNECT_TIMEOUT_S)
        until = loop.time() + limit_s
        connection = await connect(self._endpoint(node, SERVER_PORT), limit_s)
        try:
            (role,) = await connection.ask([("ROLE",)], until - loop.time())
        except LostError as error:
            raise NotSentError("no sign of life") from error
        except BaseException:
            connection.close()
            raise
        name = role_of(role)
        if not name or (self._sentinels is not None and name != PRIMARY_ROLE):
            connection.close()
            raise _RefusedError(f"{node} is {name or 'not ready'}") if name else NotSentError(node)
        self._connection = connection
        self._connected_to = node
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._connected_to = None


def _may_ask_elsewhere(operation: Operation, completion: Completion) -> bool:
    """Whether the failure is certain and another node, or the same one later, may do better."""
    return completion.error in outcomes.ELSEWHERE or (
        only_reads(operation) and completion.error == outcomes.LOST
    )
