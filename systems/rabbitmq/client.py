"""A workload's client of RabbitMQ: publishes with confirms, and acknowledges element by element.

A pinned client knows its node alone; one that follows goes on to the next node that takes it. Must
never call an enqueue ``fail`` once it was sent, unless the broker gave it back, nor a dequeue
once it was acknowledged.
"""

import asyncio
import struct
from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.rabbitmq.amqp import AmqpChannel, ClosedByBroker, open_channel
from splitbrain.systems.servers import Refused, Unclear

#: User and password of a fresh broker.
USER: Final = "guest"
#: Longest wait for a channel at one node while others could be asked instead.
CHANNEL_PATIENCE_S: Final = 0.7


class Declarations:
    """Queues that the clients of one process have declared.

    Where they are shared, one client declares a queue and nobody uses it before: a broker that
    cannot reach all others takes back a declaration, and with it the queue that another client's
    made meanwhile, and what was confirmed in it. It does so a quarter of a minute later, when the
    client that declared waits no longer: a queue whose declaration has no answer stays unused.
    """

    def __init__(self, arguments: Mapping[str, str], *, are_shared: bool) -> None:
        """``arguments`` are those with which queues are declared."""
        self._arguments = arguments
        self._are_shared = are_shared
        self._made: set[str] = set()
        self._unanswered: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, channel: AmqpChannel, queue: str, own: set[str]) -> None:
        """Declare a queue unless this client, or another one that counts, has; raises as that."""
        if queue in own:
            return
        if not self._are_shared:
            await channel.declare(queue, self._arguments)
        else:
            async with self._locks.setdefault(queue, asyncio.Lock()):
                if queue in self._unanswered:
                    raise Refused("declaration-unanswered")
                if queue not in self._made:
                    await self._declare_first(channel, queue)
        own.add(queue)

    async def _declare_first(self, channel: AmqpChannel, queue: str) -> None:
        self._unanswered.add(queue)
        try:
            await channel.declare(queue, self._arguments)
        except ClosedByBroker:
            # A refusal is an answer.
            self._unanswered.discard(queue)
            raise
        self._unanswered.discard(queue)
        self._made.add(queue)

    async def renew(self, channel: AmqpChannel, queue: str) -> None:
        """Declare a queue whoever has: one that is gone is found empty then."""
        await channel.declare(queue, self._arguments)


class RabbitClient:
    """Client of one worker slot."""

    def __init__(self, nodes: Mapping[NodeName, Address], declarations: Declarations) -> None:
        """Connect at the first operation, to the first of ``nodes`` that takes it."""
        self._nodes = nodes
        self._declarations = declarations
        self._channel: AmqpChannel | None = None
        self._node: NodeName | None = None
        self._declared: set[str] = set()
        self._may_have_changed = False

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation, on one channel."""
        self._may_have_changed = False
        try:
            async with asyncio.timeout(timeout_s):
                value = await self._perform(operation, await self._open_channel())
        except (Refused, Unclear) as answer:
            error = str(answer)
        except ClosedByBroker as answer:
            error = f"closed-{answer.code}"
        except TimeoutError:
            error = "timed-out"
        except (OSError, EOFError):
            error = "no-connection" if self._channel is None else "connection-lost"
        except (*UNREADABLE, struct.error, IndexError):
            error = "unexpected-answer"
        else:
            return Completion("ok", value, node=self._node)
        node = self._node
        # No late answer comes, and elements that are not acknowledged go back.
        await self.close()
        return Completion("info" if self._may_have_changed else "fail", error=error, node=node)

    async def close(self) -> None:
        """Drop the connection."""
        if self._channel is not None:
            self._channel.close()
        self._channel = self._node = None
        self._declared.clear()

    async def _open_channel(self) -> AmqpChannel:
        if self._channel is None:
            self._node, self._channel = await self._first_channel()
        return self._channel

    async def _first_channel(self) -> tuple[NodeName, AmqpChannel]:
        *others, last = self._nodes.items()
        for node, there in others:
            try:
                async with asyncio.timeout(CHANNEL_PATIENCE_S):
                    return node, await open_channel(there, USER, USER)
            except (OSError, EOFError, ClosedByBroker):
                continue
        return last[0], await open_channel(last[1], USER, USER)

    async def _perform(self, operation: Operation, channel: AmqpChannel) -> object:
        queue = operation.key or ""
        if operation.final:
            await self._declarations.renew(channel, queue)
        else:
            await self._declarations.ensure(channel, queue, self._declared)
        match operation.f:
            case "enqueue":
                self._may_have_changed = True
                answer = await channel.publish(queue, msgspec.json.encode(operation.value))
                if answer == "unroutable":
                    self._may_have_changed = False
                    raise Refused(answer)
                if answer != "confirmed":
                    raise Unclear(answer)
                return operation.value
            case "dequeue":
                message = await channel.get(queue)
                if message is None:
                    return None
                element = msgspec.json.decode(message.body)
                self._may_have_changed = True
                await channel.acknowledge(message)
                return element
            case other:
                raise Refused(f"no-{other}")
