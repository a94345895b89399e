"""Base of clients of SQL databases whose every operation is one transaction, on one connection.

Nothing of a transaction is left unless its COMMIT was sent, so that all that goes wrong before that
is ``fail``; a COMMIT without an answer is ``info``. A derived client says how to connect and which
answers to a COMMIT are certain. Must never send a COMMIT twice.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.servers import Refused, Unclear, connected_to_first


class SqlClient(ABC):
    """Client of one node, or of the first of several that takes it."""

    def __init__(self, nodes: Mapping[NodeName, Address]) -> None:
        self._nodes = deque(nodes.items())
        self._connection: Any = None
        self._commit_is_sent = False

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        self._commit_is_sent = False
        try:
            async with asyncio.timeout(timeout_s):
                await self._connect()
                value = await self._transacted(operation)
        except Refused as answer:
            return Completion("fail", error=str(answer), node=self._node)
        except Unclear as answer:
            problem = str(answer)
        except TimeoutError:
            problem = "timed-out"
        except (OSError, EOFError, *self._errors_of_connections()):
            problem = "no-connection" if self._connection is None else "connection-lost"
        except UNREADABLE:
            problem = "unexpected-answer"
        else:
            return Completion("ok", value, node=self._node)
        node = self._node
        # A late answer must never meet a later operation.
        await self.close()
        self._nodes.rotate(-1)
        return Completion("info" if self._commit_is_sent else "fail", error=problem, node=node)

    async def close(self) -> None:
        """Drop the connection without waiting for outstanding answers."""
        if self._connection is not None:
            self._drop(self._connection)
        self._connection = None

    @property
    def _node(self) -> NodeName:
        return self._nodes[0][0]

    async def _connect(self) -> None:
        if self._connection is not None and not self._is_closed(self._connection):
            return
        await self.close()
        self._connection = await connected_to_first(self._nodes, self._opened)

    @abstractmethod
    def _errors_of_connections(self) -> tuple[type[Exception], ...]:
        """Return what the library raises where a connection is of no more use."""
        ...

    @abstractmethod
    async def _opened(self, there: Address) -> Any:
        """Return an open connection to a node that serves; raises OSError or EOFError."""
        ...

    @abstractmethod
    def _is_closed(self, connection: Any) -> bool: ...

    @abstractmethod
    def _drop(self, connection: Any) -> None: ...

    @abstractmethod
    async def _transacted(self, operation: Operation) -> Any:
        """Perform an operation as a transaction; notes ``_commit_is_sent``.

        Raises:
            Refused: nothing was done, and the connection is fit for the next one.
            Unclear: with the error class; the connection is dropped.
        """
        ...
