"""One client's connections to brokers, each of which is asked whether it is the one to be asked."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.access import Access
from splitbrain.systems.kafka.errors import NotKafkaError, RefusedError
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.servers import Refused

_T = TypeVar("_T")


class Brokers:
    """Connections that are opened as they are needed; the client's own node is asked first."""

    def __init__(self, node: NodeName, targets: Mapping[NodeName, Address], access: Access) -> None:
        self._node, self._targets, self._access = node, targets, access
        self._connections: dict[NodeName, KafkaConnection] = {}

    async def connection(self, node: NodeName) -> KafkaConnection:
        """Return the connection to a broker; raises OSError where there is none to be had."""
        if node not in self._connections:
            self._connections[node] = await KafkaConnection.open(self._targets[node], self._access)
        return self._connections[node]

    def drop(self, node: NodeName) -> None:
        """Close the connection to a broker, whose late answer must never meet a later request."""
        with suppress(KeyError):
            self._connections.pop(node).close()

    def close(self) -> None:
        """Close all without waiting for outstanding answers."""
        for node in [*self._connections]:
            self.drop(node)

    async def first(
        self,
        ask: Callable[[KafkaConnection], Awaitable[_T]],
        timeout_s: float,
        before: NodeName | None = None,
    ) -> tuple[NodeName, _T]:
        """Put a question to one broker after the other until one does not refuse it.

        It may reach several: only what changes nothing at a broker that refuses it, and nothing
        twice, may be asked so. ``before`` is asked first. Raises Refused where nobody answers.
        """
        problem = "no-leader"
        for node in self._in_order(before):
            try:
                async with asyncio.timeout(timeout_s / len(self._targets)):
                    return node, await ask(await self.connection(node))
            except RefusedError as answer:
                problem = answer.name
            except TimeoutError:
                problem = "timeout"
                self.drop(node)
            except NotKafkaError:
                problem = "unexpected-answer"
                self.drop(node)
            except (OSError, EOFError):
                problem = "no-connection"
                self.drop(node)
        raise Refused(problem)

    def _in_order(self, before: NodeName | None) -> Iterator[NodeName]:
        first = [node for node in (before, self._node) if node is not None]
        yield from dict.fromkeys((*first, *self._targets))
