"""Calls of a simulated node to the controllers: ``nodes.transport.control_lines`` in a world.

A small broker calls less, and sooner, than a real one, so a broker's machine adds what a real one
does: proposals wait on it (``HeldCalls``), and requests come again (``StrayRequests``). The
calls of a life are never sent again by themselves.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.server.host.surroundings import Timers
from splitbrain.nodes.transport.control_lines import Called, ControlLines
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
)
from splitbrain.nodes.wire.families.partitions import AlterPartitionRequest
from splitbrain.simulation.kraft.happenings import PROPOSES_ISR
from splitbrain.simulation.kraft.messages import PeerCall
from splitbrain.simulation.kraft.peer_link import Carried, Enter, SimulatedPeerLink
from splitbrain.simulation.kraft.timers import LifeTimers, NodeClock
from splitbrain.simulation.world.world import SimulatedWorld

#: One in so many proposals waits, and one in so many comes again.
_PROPOSALS: Final = 2
#: Delay of a call, doubled up to so many times.
_WAIT_US: Final = 64_000
_WAIT_DOUBLINGS: Final = 4
#: One in so many heartbeats comes again, and so many bring a question.
_HEARTBEATS: Final = 12
_QUESTIONS: Final = 12
#: Delay of a repeated call, doubled up to so many times.
_LATE_US: Final = 1_000
_LATE_DOUBLINGS: Final = 10


class SimulatedCalls:
    """``CallPeer`` of ``nodes.server.host.surroundings``, of one life."""

    def __init__(
        self,
        world: SimulatedWorld,
        me: NodeId,
        peers: Mapping[NodeId, str],
        enter: Enter,
        timers: Timers,
        *,
        place: str | None = None,
        called: Callable[[NodeId, msgspec.Struct], None] | None = None,
        wait_us: Callable[[msgspec.Struct], int] | None = None,
    ) -> None:
        """Links without a connection.

        ``place``: where the calls come from; None: the node's own. ``called`` is told of each call
        before it is sent, and a call waits ``wait_us`` before that.
        """
        self._called = called
        self._wait_us = wait_us
        self._timers = timers
        carried = Carried(KafkaCodec(me), PeerCall, is_framed=world.scenario.through_codec)
        here = place or f"n{me}"
        self._lines = ControlLines(
            peers,
            lambda peer, line: SimulatedPeerLink(
                world, (here, peers[peer]), peer, carried, line, timers, enter
            ),
        )
        self.close = self._lines.close

    def call(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        """Ask a voter; ``called`` is told in a later turn. No call waits for another."""
        if self._lines.is_closed:
            return
        wait_us = 0 if self._wait_us is None else self._wait_us(message)
        if wait_us:
            self._timers.call_later(wait_us, lambda: self._send(peer, message, called))
        else:
            self._send(peer, message, called)

    def _send(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        if self._lines.is_closed:
            return
        if self._called is not None:
            self._called(peer, message)
        self._lines.call(peer, message, called)


class HeldCalls:
    """How long a broker's requests wait on its own machine, whichever process is on it.

    A small broker proposes an ISR as soon as it sees who may join it. A real one proposes once the
    follower has caught up, and its proposal then waits behind the last one, and for a controller
    that is known: what it proposes may be long out of date when it arrives. Must never hold a
    request that a broker's session depends on.
    """

    def __init__(self, world: SimulatedWorld, me: NodeId) -> None:
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


class StrayRequests:
    """Requests that one broker's machine sends besides those of its present life.

    Two things that small brokers do not do, and real ones do. Requests arrive a second time, later:
    sent again where an answer was lost, or still on their way from a process that is gone by then.
    And producers need ids, of which a broker asks for blocks. Sent from a place of its own, which
    outlives processes and is cut off by no fault; the answers are nobody's. Must never send a
    registration: a late one displaces the present process, which in Kafka too stays out until it is
    restarted.
    """

    def __init__(self, world: SimulatedWorld, me: NodeId, peers: dict[NodeId, str]) -> None:
        """Nothing was sent; ``peers``: where the voters live."""
        self._world = world
        self._purpose = f"strays n{me}"
        timers = LifeTimers(world, NodeClock(world, 0), lambda action: action())
        self._calls = SimulatedCalls(
            world, me, peers, lambda action: action(), timers, place=f"n{me} strays"
        )

    def sent(self, peer: NodeId, message: msgspec.Struct) -> None:
        """Note that the present process sends a request to a voter."""
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
