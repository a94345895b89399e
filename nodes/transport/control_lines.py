"""A node's own calls to controllers, apart from the quorum's: lines that carry one call each.

Links of their own, since the quorum's links carry one request at a time and must never wait for
what is not the quorum's; and as many as there are calls under way, since a heartbeat must not wait
for a client's request.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import msgspec

from splitbrain.nodes.quorum.identifiers import CorrelationId, NodeId
from splitbrain.nodes.transport.link_machine import LinkOwner

#: Told once what came of a call; None: no answer.
Called = Callable[[msgspec.Struct | None], None]
_TIMEOUT_MS: Final = 5_000


class CallLink(Protocol):
    """A link of the control plane, as ``link_machine`` has it."""

    def send(self, correlation: CorrelationId, request: msgspec.Struct, timeout_ms: int, /) -> None:
        """Send a request, connecting first where needed."""
        ...

    def close(self) -> None:
        """Drop the connection; nothing is told any more."""
        ...


#: Makes a link to a peer for whoever is told what comes of its requests.
MakeLink = Callable[[NodeId, LinkOwner[msgspec.Struct]], CallLink]


class _Line:
    """One link to one peer, and the call that is on it."""

    def __init__(
        self, peer: NodeId, number: int, make_link: MakeLink, freed: Callable[["_Line"], None]
    ) -> None:
        self.peer = peer
        #: Among the lines to the peer, in the order in which they were made.
        self.number = number
        self._freed = freed
        self._link = make_link(peer, self)
        self._called: Called | None = None
        self._count = 0

    def call(self, message: msgspec.Struct, called: Called) -> None:
        """Ask; there is no other call on the line."""
        self._count += 1
        self._called = called
        self._link.send(CorrelationId(self._count), message, _TIMEOUT_MS)

    def close(self) -> None:
        """Drop the connection; nothing is told any more."""
        self._called = None
        self._link.close()

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: msgspec.Struct) -> None:
        """Note that the peer answered."""
        self._tell(answer)

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """The peer will not answer; why, the quorum's own links say in the log."""
        self._tell(None)

    def _tell(self, answer: msgspec.Struct | None) -> None:
        called, self._called = self._called, None
        self._freed(self)
        if called is not None:
            called(answer)


class ControlLines:
    """Calls of one node to some peers."""

    def __init__(self, peers: Iterable[NodeId], make_link: MakeLink) -> None:
        """Prepare, without a link; ``make_link`` makes one where all others are taken."""
        self._make_link = make_link
        self._lines: dict[NodeId, list[_Line]] = {peer: [] for peer in peers}
        #: Numbers of those that no call is on, as a heap: the first one made, which is used most
        #: and whose connection is likeliest open, comes first.
        self._free: dict[NodeId, list[int]] = {peer: [] for peer in self._lines}
        self.is_closed = False

    def call(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        """Ask a peer; ``called`` is told in a later turn. No call waits for another."""
        if self.is_closed:
            return
        lines, free = self._lines[peer], self._free[peer]
        if free:
            line = lines[heapq.heappop(free)]
        else:
            line = _Line(peer, len(lines), self._make_link, self._freed)
            lines.append(line)
        line.call(message, called)

    def close(self) -> None:
        """Drop all connections; nothing is told any more."""
        self.is_closed = True
        for lines in self._lines.values():
            for line in lines:
                line.close()

    def _freed(self, line: _Line) -> None:
        heapq.heappush(self._free[line.peer], line.number)
