"""Calls of a simulated node to the controllers, apart from the quorum's links: one at a time each.

The twin of ``nodes.transport.control_links``. Must never resend by itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from contracts.simulation import World
from nodes.quorum.identifiers import CorrelationId, NodeId
from nodes.server.surroundings import Timers
from nodes.transport.control_links import ControlCodec
from nodes.transport.link_machine import LinkOwner
from simulation.kraft.messages import PeerCall
from simulation.kraft.peer_link import Carried, Enter, SimulatedPeerLink

#: Told once what came of a call; None: no answer.
Called = Callable[[msgspec.Struct | None], None]
_TIMEOUT_MS: Final = 5_000


class _Line:
    """One link to one voter, and the call that is on it."""

    def __init__(self, make_link: Callable[[LinkOwner[Any]], SimulatedPeerLink]) -> None:
        self._link = make_link(self)
        self._called: Called | None = None
        self._count = 0

    @property
    def is_free(self) -> bool:
        """Whether no call is on it."""
        return self._called is None

    def call(self, message: msgspec.Struct, called: Called) -> None:
        """Ask; the line is free."""
        self._count += 1
        self._called = called
        self._link.send(CorrelationId(self._count), message, _TIMEOUT_MS)

    def close(self) -> None:
        """Drop the connection; nothing is told any more."""
        self._called = None
        self._link.close()

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: msgspec.Struct) -> None:
        """The voter answered."""
        del peer, correlation
        self._tell(answer)

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """It will not answer."""
        del peer, correlation, reason, refused
        self._tell(None)

    def _tell(self, answer: msgspec.Struct | None) -> None:
        called, self._called = self._called, None
        if called is not None:
            called(answer)


class SimulatedCalls:
    """``CallPeer`` of ``nodes.server.surroundings``, of one life."""

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
        self._place = place or f"n{me}"
        self._called = called
        self._wait_us = wait_us
        self._world = world
        self._peers = peers
        self._enter = enter
        self._timers = timers
        codec = ControlCodec(me) if world.scenario.through_codec else None
        self._carried = Carried(codec, PeerCall)
        self._lines: dict[NodeId, list[_Line]] = {peer: [] for peer in peers}
        self._is_closed = False

    def call(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        """Ask a voter; ``called`` is told in a later turn. No call waits for another."""
        wait_us = 0 if self._is_closed or self._wait_us is None else self._wait_us(message)
        if wait_us:
            self._timers.call_later(wait_us, lambda: self._send(peer, message, called))
        else:
            self._send(peer, message, called)

    def close(self) -> None:
        """Drop all connections; nothing is told any more."""
        self._is_closed = True
        for lines in self._lines.values():
            for line in lines:
                line.close()

    def _send(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        if self._is_closed:
            return
        if self._called is not None:
            self._called(peer, message)
        lines = self._lines[peer]
        line = next((line for line in lines if line.is_free), None)
        if line is None:
            line = self._line_to(peer)
            lines.append(line)
        line.call(message, called)

    def _line_to(self, peer: NodeId) -> _Line:
        ends = self._place, self._peers[peer]
        return _Line(
            lambda line: SimulatedPeerLink(
                self._world, ends, peer, self._carried, line, self._timers, self._enter
            )
        )
