"""How long a broker's requests wait on its own machine before they are sent.

A small broker proposes an ISR as soon as it sees who may join it. A real one proposes once the
follower has caught up, and its proposal then waits behind the last one, and for a controller that
is known: what it proposes may be long out of date when it arrives. Must never hold a request that a
broker's session depends on.
"""

from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.simulation import World
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.families.partitions import AlterPartitionRequest
from splitbrain.simulation.kraft.happenings import PROPOSES_ISR

#: One in so many proposals waits.
_PROPOSALS: Final = 2
#: What waits, waits so long, doubled up to so many times.
_WAIT_US: Final = 64_000
_WAIT_DOUBLINGS: Final = 4


class HeldCalls:
    """Of one machine, whichever process is on it; controllers propose nothing."""

    def __init__(self, world: World, me: NodeId) -> None:
        """Nothing waits."""
        self._world = world
        self._name = NodeName(f"n{me}")
        self._purpose = f"held n{me}"

    def wait_us(self, message: msgspec.Struct) -> int:
        """How long a request waits with which the node sets out; 0 for not at all."""
        if not isinstance(message, AlterPartitionRequest):
            return 0
        self._world.happened(self._name, PROPOSES_ISR)
        if self._world.between(self._purpose, 1, _PROPOSALS) > 1:
            return 0
        least_us = _WAIT_US << self._world.between(self._purpose, 0, _WAIT_DOUBLINGS)
        return self._world.between(self._purpose, least_us, 2 * least_us)
