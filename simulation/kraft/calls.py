"""Calls of a simulated node to the controllers: ``nodes.transport.control_lines`` in a world.

Must never resend by itself.
"""

from collections.abc import Callable, Mapping

import msgspec

from splitbrain.contracts.simulation import World
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.server.host.surroundings import Timers
from splitbrain.nodes.transport.control_codec import ControlCodec
from splitbrain.nodes.transport.control_lines import Called, ControlLines
from splitbrain.simulation.kraft.messages import PeerCall
from splitbrain.simulation.kraft.peer_link import Carried, Enter, SimulatedPeerLink


class SimulatedCalls:
    """``CallPeer`` of ``nodes.server.host.surroundings``, of one life."""

    def __init__(
        self,
        world: World,
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

        Args:
            world: where they are.
            me: whose calls these are.
            peers: where the voters live.
            enter: runs an action as the caller.
            timers: its clock.
            place: where the calls come from; None: the node's own.
            called: told of each call before it is sent.
            wait_us: how long a call waits before that; None: none does.
        """
        self._called = called
        self._wait_us = wait_us
        self._timers = timers
        carried = Carried(ControlCodec(me), PeerCall, is_framed=world.scenario.through_codec)
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
