"""A node's traffic with its peers over TCP: its own links, and the listener for theirs.

Must never report to a node that is not attached: nothing is sent or heard before.
"""

from collections.abc import Callable

from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.peer_link import PeerLink
from splitbrain.nodes.transport.peer_listener import InboundCodec, PeerListener, Reply


class Peers:
    """``PeerLinks`` and ``PeerAnswers`` of ``nodes.server.host.surroundings`` on an event loop."""

    def __init__(
        self,
        identity: StorageIdentity,
        refused: Callable[[str], None],
        connections_count_max: int = CONNECTIONS_COUNT_MAX,
    ) -> None:
        """Prepare, without a connection; ``refused`` is told in words why a peer's was dropped."""
        self._identity = identity
        self._refused = refused
        self._connections_count_max = connections_count_max
        self._links: dict[NodeId, PeerLink[Request, Answer]] = {}
        self._listener: PeerListener | None = None

    def attach(self, node: Node, inbound: InboundCodec | None = None) -> None:
        """Say which node sends, is asked, and is told what came of it.

        ``heard`` reads what comes to the listener; None: what other nodes of the quorum send.
        """
        identity = self._identity
        codec = KafkaCodec(identity.node_id, identity.voters, node.service.versions)
        self._listener = PeerListener(
            inbound or codec, node, self._refused, self._connections_count_max
        )
        self._links = {
            voter.node_id: PeerLink(voter, codec, node)
            for voter in identity.voters
            if voter.node_id != identity.node_id
        }

    async def listen(self, host: str, port: int) -> None:
        """Open the port of an attached node; raises OSError."""
        assert self._listener is not None
        await self._listener.listen(host, port)

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

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        """Answer a peer's request; dropped if the connection is gone."""
        if self._listener is not None:
            self._listener.answer(connection, correlation, answer)

    def reply(self, connection: ConnectionId, correlation: CorrelationId, reply: Reply) -> None:
        """Answer a call of a broker or a client of Kafka's; dropped if the connection is gone."""
        if self._listener is not None:
            self._listener.reply(connection, correlation, reply)

    def close(self) -> None:
        """Drop the connections to the peers."""
        for link in self._links.values():
            link.close()

    async def stop_listening(self) -> None:
        """Close the port and drop the connections from the peers."""
        if self._listener is not None:
            await self._listener.close()
