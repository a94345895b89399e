"""A client that completes every operation at once: what is left is what the harness itself costs.

It answers as a real register would, with node and position, so that events have their usual size.
In a module of its own, because worker processes import it by name.
"""

import msgspec

from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.contracts.system import Route


class NullClient:
    """Answers ``ok`` without asking anybody; implements ``contracts.operations.Client``."""

    def __init__(self, route: Route) -> None:
        self._node = route.node
        self._offset = 0

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Answer at once."""
        self._offset += 1
        value = [*operation.value, True] if operation.f == "cas" else operation.value
        return Completion("ok", value, None, (1, self._offset), self._node)

    async def close(self) -> None:
        """There is nothing to close."""


class NullClients(msgspec.Struct, frozen=True):
    """Opens null clients, in this process or another."""

    def __call__(self, route: Route) -> Client:
        """Return a fresh null client."""
        return NullClient(route)
