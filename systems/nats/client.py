"""A workload's client of NATS: registers are keys of a bucket, sets and queues subjects.

A client that is pinned knows its node alone; one that follows goes on to the next node when its
own fails it. It repeats a request only after an answer that says that nothing was done. Must never
call an operation ``fail`` once a change of it was sent and not refused.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NO_EPOCH, NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.nats.jetstream import (
    CONFLICT,
    NO_RESPONDERS,
    Handed,
    Stored,
    acknowledge,
    all_by_any,
    if_last_is,
    last_by_any,
    last_by_leader,
    make_consumer,
    next_of,
    publish,
)
from splitbrain.systems.nats.protocol import NatsConnection, connect
from splitbrain.systems.nats.streams import consumer, fence_of, stream_of, subject_of
from splitbrain.systems.servers import Refused, Unclear, connected_to_first

#: How a register is read.
FENCED, LEADER, DIRECT = "fenced", "leader", "direct"
#: Between two questions for a consumer that nobody serves yet.
_UNSERVED_S: Final = 0.02


class NatsClient:
    """Client of one worker slot."""

    def __init__(self, nodes: Mapping[NodeName, Address], workload: str | None, reads: str) -> None:
        """Connect at the first operation, to the first of ``nodes`` that takes a connection."""
        self._nodes = deque(nodes.items())
        self._workload = workload
        self._reads = reads
        self._connection: NatsConnection | None = None
        #: Queues whose consumer is there, as far as this connection knows.
        self._consumed: set[str] = set()
        self._may_have_changed = False

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation, at one node."""
        self._may_have_changed = False
        try:
            async with asyncio.timeout(timeout_s):
                return await self._perform(operation, await self._connected())
        except (Refused, Unclear) as answer:
            if isinstance(answer, Refused):
                self._may_have_changed = False
            error = str(answer)
        except TimeoutError:
            error = "timed-out"
        except (OSError, EOFError):
            error = "no-connection" if self._connection is None else "connection-lost"
        except (*UNREADABLE, KeyError, ValueError, IndexError):
            error = "unexpected-answer"
        node = self._node
        # A late answer must never meet a later operation.
        await self.close()
        self._nodes.rotate(-1)
        return Completion("info" if self._may_have_changed else "fail", error=error, node=node)

    async def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._consumed.clear()

    @property
    def _node(self) -> NodeName:
        return self._nodes[0][0]

    async def _connected(self) -> NatsConnection:
        if self._connection is not None and not self._connection.is_open:
            await self.close()
        if self._connection is None:
            self._connection = await connected_to_first(self._nodes, connect)
        return self._connection

    async def _perform(self, operation: Operation, connection: NatsConnection) -> Completion:
        key = operation.key or ""
        match operation.f:
            case "read" if self._workload == "set":
                return self._found(await self._elements(connection, key))
            case "read":
                return self._found(_value(await self._look(connection, key)))
            case "write" | "add" | "enqueue":
                # An element of a set has a subject of its own: so all are asked for at once.
                place = f"{key}.{operation.value}" if operation.f == "add" else key
                sequence = await self._publish(connection, place, operation.value)
                return self._done(operation.value, sequence)
            case "cas":
                return await self._compare_and_set(connection, key, *operation.value)
            case "dequeue":
                return self._found(await self._dequeue(connection, key))
            case other:
                raise Refused(f"no-{other}")

    async def _elements(self, connection: NatsConnection, key: str) -> list[int]:
        elements = f"{subject_of(self._workload, key)}.*"
        found = await all_by_any(connection, stream_of(self._workload), elements)
        return sorted(msgspec.json.decode(element, type=int) for element in found)

    async def _publish(
        self,
        connection: NatsConnection,
        key: str,
        value: Any,
        expected: Mapping[str, str] | None = None,
    ) -> int:
        self._may_have_changed = True
        body = msgspec.json.encode(value)
        return await publish(connection, subject_of(self._workload, key), body, expected)

    async def _compare_and_set(
        self, connection: NatsConnection, key: str, wanted: Any, new: Any
    ) -> Completion:
        while True:
            found = await self._look(connection, key)
            if found is None or _value(found) != wanted:
                return self._found([wanted, new, False])
            try:
                sequence = await self._publish(connection, key, new, if_last_is(found.sequence))
                return self._done([wanted, new, True], sequence)
            except Refused as answer:
                if str(answer) != CONFLICT:
                    raise
                self._may_have_changed = False

    async def _dequeue(self, connection: NatsConnection, key: str) -> Any:
        stream = stream_of(self._workload)
        if key not in self._consumed:
            await make_consumer(connection, stream, consumer(key))
            handed = await self._first_of(connection, stream, key)
            self._consumed.add(key)
        else:
            handed = await next_of(connection, stream, key)
        if handed is None:
            return None
        element = msgspec.json.decode(handed.body)
        self._may_have_changed = True
        await acknowledge(connection, handed)
        return element

    async def _first_of(self, connection: NatsConnection, stream: str, key: str) -> Handed | None:
        """Return the next element of a consumer that was just made.

        It is asked for again while the server does not know yet that somebody serves it.
        """
        while True:
            try:
                return await next_of(connection, stream, key)
            except Refused as answer:
                if str(answer) != NO_RESPONDERS:
                    raise
                await asyncio.sleep(_UNSERVED_S)

    async def _look(self, connection: NatsConnection, key: str) -> Stored | None:
        """Return a register's last message.

        A fenced look holds where a message is stored that the stream takes only if the register's
        last one is still the same: by then whoever was asked has led with a majority.
        """
        stream, subject = stream_of(self._workload), subject_of(self._workload, key)
        if self._reads == DIRECT:
            return await last_by_any(connection, stream, subject)
        while True:
            found = await last_by_leader(connection, stream, subject)
            if self._reads == LEADER:
                return found
            unchanged = if_last_is(0 if found is None else found.sequence, subject)
            try:
                await publish(connection, fence_of(key), b"", unchanged)
                return found
            except Refused as answer:
                if str(answer) != CONFLICT:
                    raise

    def _found(self, content: Any) -> Completion:
        return Completion("ok", content, node=self._node)

    def _done(self, content: Any, sequence: int) -> Completion:
        return Completion("ok", content, position=(NO_EPOCH, sequence), node=self._node)


def _value(found: Stored | None) -> Any:
    return None if found is None else msgspec.json.decode(found.body)
