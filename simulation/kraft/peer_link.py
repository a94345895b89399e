"""A node's connection to one peer in a simulated world: drives the link that nodes have.

All decisions are those of ``nodes.transport.link_machine``. Different here, and settings of this
driver: a request may travel as the object that it is (the question for versions is always a frame);
and what is written into a connection that is still being opened travels with its opening, as
whether anybody listens shows no earlier in a world's network.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from splitbrain.nodes.quorum.identifiers import CorrelationId, NodeId
from splitbrain.nodes.quorum.messages import FetchAnswer
from splitbrain.nodes.server.host.surroundings import TimerHandle, Timers
from splitbrain.nodes.transport.link_machine import LinkCodec, LinkMachine, LinkOwner, LinkVersions
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.nodes.wire.batches import split_batches
from splitbrain.nodes.wire.errors import UnsupportedAnswerError
from splitbrain.simulation.kraft.messages import SIZE_BYTES, PeerAnswer, PeerRequest
from splitbrain.simulation.world.network import SimulatedConnection
from splitbrain.simulation.world.world import SimulatedWorld

Enter = Callable[[Callable[[], None]], None]


class _Versions:
    """Versions that a peer serves, asked and told in frames, whatever requests travel as."""

    def __init__(self, versions: LinkVersions[Any, bytes], carries: type[PeerRequest]) -> None:
        self._versions = versions
        self._carries = carries
        self.version_for = versions.version_for

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        return self._versions.is_known

    def question(self) -> PeerRequest:
        """Message to send first."""
        return self._carries(CorrelationId(0), ApiVersionsRequest(), self._versions.question())

    def take(self, message: PeerAnswer) -> None:
        """The peer's answer; raises WireError."""
        assert message.frame is not None
        self._versions.take(message.frame[SIZE_BYTES:])


class Carried:
    """The form in which a link's requests travel; implements ``link_machine.LinkCodec``."""

    def __init__(
        self,
        codec: LinkCodec[Any, Any, bytes],
        carries: type[PeerRequest] = PeerRequest,
        *,
        is_framed: bool,
    ) -> None:
        """``is_framed``: messages are frames; ``carries`` says for whom requests are."""
        self._codec = codec
        self._carries = carries
        self._is_framed = is_framed

    def peer_versions(self) -> _Versions:
        """For a new connection."""
        return _Versions(self._codec.peer_versions(), self._carries)

    def encode_request(
        self, correlation: CorrelationId, request: Any, version: int | None = None
    ) -> PeerRequest:
        """Return the request on its way."""
        frame = None
        if self._is_framed:
            frame = self._codec.encode_request(correlation, request, version)
        return self._carries(correlation, request, frame)

    def decode_answer(
        self,
        correlation: CorrelationId,
        request: Any,
        message: PeerAnswer,
        version: int | None = None,
    ) -> Any:
        """Return the answer to a request; raises WireError."""
        if message.frame is not None:
            payload = message.frame[SIZE_BYTES:]
            return self._codec.decode_answer(correlation, request, payload, version)
        if message.correlation != correlation:
            raise UnsupportedAnswerError(
                f"answer {message.correlation} does not fit request {correlation}"
            )
        answer = message.answer
        if isinstance(answer, FetchAnswer) and answer.records and not answer.batches:
            # As the codec reads a frame: the headers come from the records.
            return msgspec.structs.replace(answer, batches=split_batches(answer.records))
        return answer


class SimulatedPeerLink:
    """Requests to one peer; implements ``link_machine.LinkPort`` for the machine that decides."""

    def __init__(
        self,
        world: SimulatedWorld,
        ends: tuple[str, str],
        peer: NodeId,
        codec: LinkCodec[Any, Any, Any],
        owner: LinkOwner[Any],
        timers: Timers,
        enter: Enter,
    ) -> None:
        """A link without a connection.

        ``ends``: places of who asks and of the peer; ``enter`` runs an action as the owner.
        """
        self._world = world
        self._ends = ends
        self._enter = enter
        self._machine = machine = LinkMachine(peer, codec, self, owner)
        #: The machine itself hears its owner's calls.
        self.send, self.abandon, self.close = machine.send, machine.abandon, machine.close
        self.call_soon, self.call_later = timers.call_soon, timers.call_later
        self._connection: SimulatedConnection | None = None
        #: Its end; what another end says is nothing to the link.
        self._end: _End | None = None
        self._opening: TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for an answer."""
        return self._machine.is_idle

    # Calls of the machine.

    def connect(self, pause_us: int) -> None:
        """Open a connection after a pause."""
        if pause_us:
            self._opening = self.call_later(pause_us, self._open)
        else:
            self._open()

    def write(self, message: PeerRequest) -> None:
        """Send on the connection."""
        assert self._connection is not None
        self._connection.send(message)

    def drop(self) -> None:
        """Close the connection at once, or give up the pause before it."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._connection is not None:
            self._connection.close()
            self._connection = self._end = None

    def _open(self) -> None:
        self._opening = None
        self._machine.attempted()
        end = self._end = _End(self)
        me, place = self._ends
        self._connection = self._world.network.connect(
            me, place, end, opened=lambda: self.opened(end)
        )
        # Before the peer has accepted: it travels with the opening.
        self._machine.connected()

    # Calls of its connections, maybe of one that was dropped since.

    def answered(self, end: "_End", message: PeerAnswer) -> None:
        """Note that the peer answered."""
        self._enter(lambda: self._machine.received(message) if end is self._end else None)

    def lost(self, end: "_End", reason: str, *, refused: bool) -> None:
        """Note that the connection is gone."""
        self._enter(
            lambda: self._machine.lost(reason, refused=refused) if end is self._end else None
        )

    def opened(self, end: "_End") -> None:
        """Note that it is made, whether or not anybody behind it answers."""
        self._enter(lambda: self._machine.accepted() if end is self._end else None)


class _End:
    """One connection's end; implements ``contracts.simulation.ClientEnd``."""

    def __init__(self, link: SimulatedPeerLink) -> None:
        self._link = link

    def answered(self, message: PeerAnswer) -> None:
        """Note that the peer answered."""
        self._link.answered(self, message)

    def lost(self, reason: str, *, refused: bool) -> None:
        """Note that the connection is gone."""
        self._link.lost(self, reason, refused=refused)
