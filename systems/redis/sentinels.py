"""Asks Sentinels who the primary is, one after the other, and never goes back in time.

A Sentinel that is cut off goes on naming the old primary, so an answer with a lower configuration
epoch than one already seen is outdated and not followed. That makes a client as quick and as well
informed as one that listens to the switches of all Sentinels.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from splitbrain.contracts.names import NodeName
from splitbrain.systems.redis.connection import LostError, NotSentError, RespConnection, connect
from splitbrain.systems.redis.membership import MASTER_NAME, SENTINEL_PORT, Endpoint, Membership
from splitbrain.systems.redis.resp import ErrorReply, pairs

#: Longest wait for one Sentinel while others could be asked instead.
ANSWER_PATIENCE_S: Final = 0.2
#: A Sentinel that did not answer is left alone for so long.
SILENCE_S: Final = 1.0
#: Time between two looks at what the Sentinels say.
LOOK_INTERVAL_S: Final = 0.25


class Sentinels:
    """One client's connections to the Sentinels, and the newest that they said."""

    def __init__(self, endpoint: Endpoint, membership: Membership, first: NodeName) -> None:
        """Connects at the first question, to the Sentinel of ``first``."""
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

    def _take(self, said: dict[str, str]) -> bool:
        named = self._membership.node_at(said.get("ip", ""), said.get("port", ""))
        epoch = said.get("config-epoch", "")
        if named is None or not epoch.isdigit() or int(epoch) < self._epoch:
            return False
        self._epoch = int(epoch)
        self.primary = named
        return True
