"""A node's own calls to controllers over TCP: ``control_lines`` on an event loop."""

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.control_lines import ControlLines
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.peer_link import PeerLink
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse


class ControlLinks:
    """Calls of one node to the voters."""

    def __init__(self, node_id: NodeId, voters: tuple[Voter, ...]) -> None:
        """Prepare, without a connection."""
        others = {voter.node_id: voter for voter in voters if voter.node_id != node_id}
        self._codecs = {peer: KafkaCodec(node_id) for peer in others}
        lines = ControlLines(
            others, lambda peer, line: PeerLink(others[peer], self._codecs[peer], line)
        )
        self.call, self.close = lines.call, lines.close

    def versions_of(self, peer: NodeId) -> ApiVersionsResponse | None:
        """APIs that the peer last said it serves; None before it was first called."""
        codec = self._codecs.get(peer)
        return None if codec is None else codec.served
