"""What a broker's machine sends besides the requests of its present life.

Two things that small brokers do not do, and real ones do. Requests arrive a second time, later:
sent again where an answer was lost, or still on their way from a process that is gone by then. And
producers need ids, of which a broker asks for blocks. Sent from a place of its own, which outlives
processes and is cut off by no fault; the answers are nobody's. Must never send a registration: a
late one displaces the present process, which in Kafka too stays out until it is restarted.
"""

from typing import Final

import msgspec

from splitbrain.contracts.simulation import World
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
)
from splitbrain.nodes.wire.families.partitions import AlterPartitionRequest
from splitbrain.simulation.kraft.calls import SimulatedCalls
from splitbrain.simulation.kraft.timers import LifeTimers, NodeClock

#: One in so many heartbeats comes again, one in so many proposals, and so many bring a question.
_HEARTBEATS: Final = 12
_PROPOSALS: Final = 2
_QUESTIONS: Final = 12
#: What comes again comes after so much, doubled up to so many times.
_LATE_US: Final = 1_000
_LATE_DOUBLINGS: Final = 10


class Strays:
    """Of one broker's machine; outlives its processes."""

    def __init__(self, world: World, me: NodeId, peers: dict[NodeId, str]) -> None:
        """Nothing was sent; ``peers``: where the voters live."""
        self._world = world
        self._purpose = f"strays n{me}"
        timers = LifeTimers(world, NodeClock(world, 0), lambda action: action())
        self._calls = SimulatedCalls(
            world, me, peers, lambda action: action(), timers, place=f"n{me} strays"
        )

    def sent(self, peer: NodeId, message: msgspec.Struct) -> None:
        """The present process sends a request to a voter."""
        match message:
            case BrokerHeartbeatRequest():
                if self._is_one_in(_HEARTBEATS):
                    self._send_later(peer, message)
                if self._is_one_in(_QUESTIONS):
                    ids = AllocateProducerIdsRequest(
                        broker_id=message.broker_id, broker_epoch=message.broker_epoch
                    )
                    self._send_later(peer, ids)
            case AlterPartitionRequest():
                if self._is_one_in(_PROPOSALS):
                    self._send_later(peer, message)
            case _:
                pass

    def _is_one_in(self, count: int) -> bool:
        return self._world.between(self._purpose, 1, count) == 1

    def _send_later(self, peer: NodeId, message: msgspec.Struct) -> None:
        least_us = _LATE_US << self._world.between(self._purpose, 0, _LATE_DOUBLINGS)
        delay_us = self._world.between(self._purpose, least_us, 2 * least_us)
        self._world.after(delay_us, lambda: self._calls.call(peer, message, _nobody))


def _nobody(_: msgspec.Struct | None) -> None:
    """Nobody waits for the answer."""
