"""Who sees everything that a simulated machine's node does; the oracle is one.

Must never change what the node does.
"""

from typing import TYPE_CHECKING, Protocol

import msgspec

from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.control_plane import ReceivedCall

if TYPE_CHECKING:
    from splitbrain.simulation.kraft.host import Host


class Watcher(Protocol):
    """Sees everything that a host's node does; the oracle is one."""

    def started(self, host: "Host") -> None:
        """A life begins, recovered; the node has done nothing yet."""
        ...

    def ended(self, host: "Host") -> None:
        """A life is over, or could not begin; the disk is as the end left it."""
        ...

    def taking(self, host: "Host", event: Event) -> None:
        """The node is about to take an event."""
        ...

    def before(self, host: "Host", effect: Effect) -> None:
        """An effect is about to be performed."""
        ...

    def after(self, host: "Host", effect: Effect) -> None:
        """An effect was performed."""
        ...

    def asked(self, host: "Host", request: ClientRequest) -> object:
        """A client's request reached the node; what is returned comes back with its answer."""
        ...

    def replied(
        self, host: "Host", request: ClientRequest, answer: ClientAnswer, token: object
    ) -> None:
        """The node answered it."""
        ...

    def called(self, host: "Host", call: ReceivedCall) -> object:
        """Another node's call reached the node; what is returned comes back with its answer."""
        ...

    def told(self, host: "Host", call: ReceivedCall, answer: msgspec.Struct, token: object) -> None:
        """The node answered it."""
        ...

    def calls(self, host: "Host", message: msgspec.Struct) -> None:
        """The node is about to call a controller."""
        ...
