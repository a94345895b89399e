"""A node's traffic with its peers in a simulated world: its own links, and what it answers.

Must never change a message on its way.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.calls import (
    TABLES,
    ReceivedCall,
    api_key_of_call,
    decode_call,
    encode_reply,
)
from splitbrain.simulation.kraft.messages import SIZE_BYTES, PeerAnswer, PeerCall, PeerRequest
from splitbrain.simulation.kraft.peer_link import Carried, Enter, SimulatedPeerLink
from splitbrain.simulation.world.world import SimulatedWorld

if TYPE_CHECKING:
    from splitbrain.simulation.kraft.host import Host


class SimulatedPeers:
    """``PeerLinks`` and ``PeerAnswers`` of one life."""

    def __init__(
        self,
        world: SimulatedWorld,
        me: str,
        peers: dict[NodeId, str],
        enter: Enter,
        watch: "Host | None" = None,
    ) -> None:
        """``peers``: where the other voters live; ``watch`` sees calls that the node answers."""
        self._watch = watch
        self._world = world
        self._me = me
        self._peers = peers
        self._is_framed = world.scenario.through_codec
        self._enter = enter
        self._links: dict[NodeId, SimulatedPeerLink] = {}
        #: Facts needed to answer in frames, by connection.
        self._inbound: dict[ConnectionId, ReceivedCall] = {}
        #: The same of calls.
        self._calls: dict[ConnectionId, tuple[ReceivedCall, object]] = {}

    def attach(self, node: Node, codec: KafkaCodec) -> None:
        """Say who is told what came of requests."""
        self._codec = codec
        carried, timers = Carried(codec, is_framed=self._is_framed), node.surroundings.timers
        self._links = {
            peer: SimulatedPeerLink(
                self._world,
                (self._me, place),
                peer,
                carried,
                node,
                timers,
                self._enter,
            )
            for peer, place in self._peers.items()
        }

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
        if isinstance(message.request, ApiVersionsRequest):
            assert message.frame is not None
            frame = self._codec.decode_request(message.frame[SIZE_BYTES:])
            assert isinstance(frame, bytes)
            answer = PeerAnswer(message.correlation, None, frame)
            self._world.network.answer(self._me, int(connection), answer)
            return
        if not isinstance(message, PeerCall):
            node.requested(connection, message.correlation, self.read(connection, message))
            return
        call = read_call(message)
        token = None if self._watch is None else self._watch.called(call)
        self._calls[connection] = call, token
        node.called(connection, message.correlation, call.header, call.message)

    def read(self, connection: ConnectionId, message: PeerRequest) -> Request:
        """Request of a peer to the quorum."""
        if message.frame is None:
            return message.request
        inbound = self._codec.decode_request(message.frame[SIZE_BYTES:])
        assert isinstance(inbound, ReceivedCall)
        assert isinstance(inbound.message, Request)
        self._inbound[connection] = inbound
        return inbound.message

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a peer's request; dropped if the connection is gone."""
        frame = None
        if self._is_framed:
            inbound = self._inbound.pop(connection, None)
            if inbound is None:
                return
            frame = self._codec.encode_answer(inbound.header, answer)
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
            self._watch.answered(call, reply, token)
        frame = encode_reply(reply, call.header) if self._is_framed else None
        self._world.network.answer(self._me, int(connection), PeerAnswer(correlation, reply, frame))

    def forget(self, connection: ConnectionId) -> None:
        """Note that a peer's connection is gone."""
        self._inbound.pop(connection, None)
        self._calls.pop(connection, None)


_CORRELATION_MASK: Final = 0x7FFFFFFF


def read_call(message: PeerCall) -> ReceivedCall:
    """Frame a node's request in the highest version that we speak: all are of one release."""
    if message.frame is not None:
        return decode_call(message.frame[SIZE_BYTES:])
    api_key = api_key_of_call(message.request)
    version = TABLES[api_key].versions.highest
    header = RequestHeader(api_key, version, message.correlation & _CORRELATION_MASK, None)
    return ReceivedCall(header, message.request)
