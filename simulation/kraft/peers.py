"""A node's connections to its peers in a simulated world, under the rules of the real ones.

One request at a time on a connection; after a timeout, an abandoned request or a loss the
connection is closed and the next request opens a new one. Must never resend by itself. Source:
``nodes.transport.peer_link``, whose twin this is.

A node that takes stale answers never meets one behind such a link. So that the mistake can be made
at all, the link of a world with such a planted bug makes its half of it: it keeps the connection of
a request that nobody waits for any more, and hands on whatever comes.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from contracts.simulation import Connection, World
from nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from nodes.quorum.messages import Answer, FetchAnswer, Request
from nodes.server.node import Node
from nodes.server.surroundings import TimerHandle, Timers
from nodes.transport.back_off import back_off_us
from nodes.transport.kafka_codec import Inbound, KafkaCodec
from nodes.wire.batches import split_batches
from nodes.wire.control_plane import ReceivedCall, encode_reply
from nodes.wire.errors import WireError
from simulation.kraft.call_frames import read_call
from simulation.kraft.messages import PeerAnswer, PeerCall, PeerRequest

#: Bytes of the size before a frame.
_SIZE_BYTES: Final = 4
#: Planted bugs that take an answer to an earlier request for one to the present one.
_STALE_ANSWER_BUGS: Final = ("stale-answer-accepted", "correlation-restarts")

Enter = Callable[[Callable[[], None]], None]


class Told(Protocol):
    """Who is told what came of requests: the node, or what it calls others by."""

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Any) -> None:
        """The peer answered."""
        ...

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """It will not."""
        ...


class CallWatch(Protocol):
    """Sees the calls that a node answers."""

    def called(self, call: ReceivedCall) -> object:
        """A call reached the node; what is returned comes back with its answer."""
        ...

    def told(self, call: ReceivedCall, answer: msgspec.Struct, token: object) -> None:
        """The node answered it."""
        ...


class LinkCodec(Protocol):
    """Frames of what goes over a link."""

    def encode_request(self, correlation: int, request: Any) -> bytes:
        """Frame of a request, size included."""
        ...

    def decode_answer(self, correlation: int, request: Any, payload: bytes) -> Any:
        """The answer in a frame without its size; raises WireError."""
        ...


class _Outstanding(msgspec.Struct):
    correlation: CorrelationId
    request: Any
    timer: TimerHandle


class SimulatedPeerLink:
    """Requests to one peer."""

    def __init__(
        self,
        world: World,
        me: str,
        place: str,
        peer: NodeId,
        codec: LinkCodec | None,
        enter: Enter,
        *,
        carries: type[PeerRequest] = PeerRequest,
    ) -> None:
        """A link without a connection; ``carries`` says for whom the requests are."""
        self._world = world
        self._carries = carries
        # Frames cannot be read without the request that they answer.
        is_quorum_s = carries is PeerRequest
        self._hands_on_stale = (
            is_quorum_s
            and codec is None
            and any(bug in _STALE_ANSWER_BUGS for bug in world.scenario.bugs)
        )
        self._me = me
        self._place = place
        self._peer = peer
        self._codec = codec
        self._enter = enter
        self._node: Told | None = None
        self._timers: Timers | None = None
        self._outstanding: _Outstanding | None = None
        self._connection: Connection | None = None
        #: Its end; what another end says is nothing to the link.
        self._end: _End | None = None
        self._opening: TimerHandle | None = None
        self._failed_attempts_count = 0

    def attach(self, node: Told, timers: Timers) -> None:
        """Say who is told what came of a request, and by which clock it is given up."""
        self._node, self._timers = node, timers

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for an answer."""
        return self._outstanding is None

    def send(self, correlation: CorrelationId, request: Any, timeout_ms: int) -> None:
        """Send a request, connecting first where needed; the timeout covers both."""
        if self._outstanding is not None:
            raise RuntimeError(f"two requests at a time to node {self._peer}")
        assert self._timers is not None
        timer = self._timers.call_later(
            timeout_ms * 1_000, lambda: self._give_up(f"no answer within {timeout_ms} ms")
        )
        self._outstanding = _Outstanding(correlation, request, timer)
        if self._connection is not None:
            self._write()
            return
        pause_us = back_off_us(self._failed_attempts_count, timeout_ms)
        if pause_us:
            self._opening = self._timers.call_later(pause_us, self._open)
        else:
            self._open()

    def abandon(self, correlation: CorrelationId) -> None:
        """Close the connection of a request that nobody waits for any more."""
        if self._outstanding is not None and self._outstanding.correlation == correlation:
            self._let_go()

    def close(self) -> None:
        """Drop the connection; nothing is reported any more."""
        self._drop()

    def hear(self, end: "_End", message: PeerAnswer) -> None:
        """Something came on a connection, maybe on one that was dropped since."""
        self._enter(lambda: self._receive(message) if end is self._end else None)

    def hear_of_loss(self, end: "_End", reason: str, *, refused: bool) -> None:
        """A connection is gone, maybe one that was dropped since."""
        self._enter(lambda: self._fail(reason, refused=refused) if end is self._end else None)

    def hear_of_opening(self, end: "_End") -> None:
        """A connection is made, whether or not anybody behind it answers."""

        def note() -> None:
            if end is self._end:
                self._failed_attempts_count = 0

        self._enter(note)

    def _open(self) -> None:
        self._opening = None
        self._failed_attempts_count += 1
        end = self._end = _End(self)
        self._connection = self._world.network.connect(
            self._me, self._place, end, opened=lambda: self.hear_of_opening(end)
        )
        self._write()

    def _write(self) -> None:
        outstanding, connection = self._outstanding, self._connection
        if outstanding is None or connection is None:
            return
        frame = None
        if self._codec is not None:
            frame = self._codec.encode_request(outstanding.correlation, outstanding.request)
        connection.send(self._carries(outstanding.correlation, outstanding.request, frame))

    def _receive(self, message: PeerAnswer) -> None:
        outstanding = self._outstanding
        if self._node is not None and self._is_stale(message):
            self._node.answered(self._peer, message.correlation, message.answer)
            return
        if outstanding is None or self._node is None:
            self._drop()
            return
        answer = message.answer
        try:
            if self._codec is not None and message.frame is not None:
                answer = self._codec.decode_answer(
                    outstanding.correlation, outstanding.request, message.frame[_SIZE_BYTES:]
                )
            elif isinstance(answer, FetchAnswer) and answer.records and not answer.batches:
                # What the codec does with a frame: the headers come from the records.
                answer = msgspec.structs.replace(answer, batches=split_batches(answer.records))
        except WireError as error:
            self._fail(f"unreadable answer: {error}")
            return
        outstanding.timer.cancel()
        self._outstanding = None
        self._node.answered(self._peer, message.correlation, answer)

    def _is_stale(self, message: PeerAnswer) -> bool:
        """Whether it answers something else than is asked now, and is handed on all the same."""
        outstanding = self._outstanding
        return self._hands_on_stale and (
            outstanding is None or outstanding.correlation != message.correlation
        )

    def _let_go(self) -> _Outstanding | None:
        """Nobody waits for the request any more."""
        if not self._hands_on_stale or self._connection is None:
            return self._drop()
        outstanding, self._outstanding = self._outstanding, None
        if outstanding is not None:
            outstanding.timer.cancel()
        return outstanding

    def _give_up(self, reason: str) -> None:
        outstanding = self._let_go()
        if outstanding is not None and self._node is not None:
            self._node.failed(self._peer, outstanding.correlation, reason, refused=False)

    def _fail(self, reason: str, *, refused: bool = False) -> None:
        outstanding = self._drop()
        if outstanding is not None and self._node is not None:
            self._node.failed(self._peer, outstanding.correlation, reason, refused=refused)

    def _drop(self) -> _Outstanding | None:
        outstanding, self._outstanding = self._outstanding, None
        if outstanding is not None:
            outstanding.timer.cancel()
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._connection is not None:
            self._connection.close()
            self._connection = self._end = None
        return outstanding


class _End:
    """One connection's end; implements ``contracts.simulation.ClientEnd``."""

    def __init__(self, link: SimulatedPeerLink) -> None:
        self._link = link

    def answered(self, message: PeerAnswer) -> None:
        """The peer answered."""
        self._link.hear(self, message)

    def lost(self, reason: str, *, refused: bool) -> None:
        """The connection is gone."""
        self._link.hear_of_loss(self, reason, refused=refused)


class SimulatedPeers:
    """``PeerLinks`` and ``PeerAnswers`` of one life."""

    def __init__(
        self,
        world: World,
        me: str,
        peers: dict[NodeId, str],
        codec: KafkaCodec | None,
        enter: Enter,
        watch: CallWatch | None = None,
    ) -> None:
        """``peers``: where the other voters live; ``codec``: set where messages are frames."""
        self._watch = watch
        self._world = world
        self._me = me
        self._codec = codec
        self._links = {
            peer: SimulatedPeerLink(world, me, place, peer, codec, enter)
            for peer, place in peers.items()
        }
        #: What is needed to answer in frames, by connection.
        self._inbound: dict[ConnectionId, Inbound] = {}
        #: The same of calls.
        self._calls: dict[ConnectionId, tuple[ReceivedCall, object]] = {}

    def attach(self, node: Node) -> None:
        """Say who is told what came of requests."""
        for link in self._links.values():
            link.attach(node, node.surroundings.timers)

    def send(
        self, peer: NodeId, correlation: CorrelationId, request: Request, timeout_ms: int
    ) -> None:
        """Send a request, connecting first where needed."""
        self._links[peer].send(correlation, request, timeout_ms)

    def abandon(self, peer: NodeId, correlation: CorrelationId) -> None:
        """Close the connection of a request that nobody waits for any more."""
        self._links[peer].abandon(correlation)

    @property
    def is_idle(self) -> bool:
        """Whether no request to a peer waits for its answer."""
        return all(link.is_idle for link in self._links.values())

    def close(self) -> None:
        """Drop the connections to the peers."""
        for link in self._links.values():
            link.close()

    def take(self, connection: ConnectionId, message: PeerRequest, node: Node) -> None:
        """Hand what came on a connection to the node."""
        if not isinstance(message, PeerCall):
            node.requested(connection, message.correlation, self.read(connection, message))
            return
        call = read_call(message)
        token = None if self._watch is None else self._watch.called(call)
        self._calls[connection] = call, token
        node.called(connection, message.correlation, call.header, call.message)

    def read(self, connection: ConnectionId, message: PeerRequest) -> Request:
        """What a peer asks of the quorum."""
        if self._codec is None or message.frame is None:
            return message.request
        inbound = self._codec.decode_request(message.frame[_SIZE_BYTES:])
        assert isinstance(inbound, Inbound)
        self._inbound[connection] = inbound
        return inbound.request

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a peer's request; dropped if the connection is gone."""
        frame = None
        if self._codec is not None:
            inbound = self._inbound.pop(connection, None)
            if inbound is None:
                return
            frame = self._codec.encode_answer(inbound, answer)
        self._world.network.answer(
            self._me, int(connection), PeerAnswer(correlation, answer, frame)
        )

    def reply(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        reply: msgspec.Struct | bytes | None,
    ) -> None:
        """Answer a call; dropped if the connection is gone.

        Only clients of Kafka's are answered with a frame, or by closing, and none lives here.
        """
        assert isinstance(reply, msgspec.Struct)
        call, token = self._calls.pop(connection, (None, None))
        if call is None:
            return
        if self._watch is not None:
            self._watch.told(call, reply, token)
        frame = None if self._codec is None else encode_reply(reply, call.header)
        self._world.network.answer(self._me, int(connection), PeerAnswer(correlation, reply, frame))

    def forget(self, connection: ConnectionId) -> None:
        """A peer's connection is gone."""
        self._inbound.pop(connection, None)
        self._calls.pop(connection, None)
