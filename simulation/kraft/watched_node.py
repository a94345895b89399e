"""The real node, with somebody who looks on: what it takes and does goes into the trace.

Must never change what the node does; a fault that strikes here ends its life.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.server.host.node import Node, NodeParts
from splitbrain.nodes.server.host.surroundings import Surroundings

if TYPE_CHECKING:
    from splitbrain.simulation.kraft.host import Host

_ENCODER: Final = msgspec.msgpack.Encoder()


class WatchedNode(Node):
    """The real node, with somebody who looks on."""

    def __init__(self, parts: NodeParts, surroundings: Surroundings, host: "Host") -> None:
        super().__init__(parts, surroundings)
        self._host = host

    def take(self, event: Event) -> Sequence[Effect]:
        """Absorb the event into the trace, and take it."""
        host = self._host
        host.world.absorb(_ENCODER.encode((host.node_id, type(event).__name__, event)))
        host.watcher.taking(host, event)
        host.happen(event)
        effects = super().take(event)
        self.replica.validate()
        return effects

    def perform(self, effect: Effect) -> None:
        """Perform it between the looks of the watcher; a fault may end the life here."""
        host = self._host
        host.watcher.before(host, effect)
        super().perform(effect)
        host.watcher.after(host, effect)
        host.happen(effect)
