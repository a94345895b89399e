"""What must be seen from outside when a fault has bitten or is healed, as data.

A fault that nobody has seen bite proves nothing, so each fault kind says what to look for. The
harness looks (probes, process states, the clients' own traffic); nothing here does.
"""

import msgspec

from contracts.fault import Link
from contracts.names import NodeName
from contracts.runtime import NodeStatus


class LinkIs(msgspec.Struct, frozen=True):
    """A probe along the link opens and is answered (``open``), or is not."""

    link: Link
    open: bool

    def sentence(self) -> str:
        """What is expected, in words."""
        state = "open" if self.open else "cut"
        return f"{self.link.source} to {self.link.destination} {state}"


class NodeIs(msgspec.Struct, frozen=True):
    """The node's process is in this state."""

    node: NodeName
    status: NodeStatus

    def sentence(self) -> str:
        """What is expected, in words."""
        return f"{self.node} {self.status}"


class NodeIsSilent(msgspec.Struct, frozen=True):
    """The node answers no client's operation that was sent after the fault."""

    node: NodeName

    def sentence(self) -> str:
        """What is expected, in words."""
        return f"{self.node} answers no client"


Expectation = LinkIs | NodeIs | NodeIsSilent
