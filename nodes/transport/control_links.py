"""A controller's own requests to the active one, apart from the quorum's: a link for each voter.

A link of its own, since the quorum's links carry one request at a time and must never wait for what
is not the quorum's. Must never resend by itself.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from nodes.quorum.identifiers import CorrelationId, NodeId
from nodes.quorum.persistent import Voter
from nodes.transport.peer_link import PeerLink
from nodes.transport.peer_versions import PeerVersions
from nodes.wire.control_plane import TABLES, api_key_of_call, decode_reply, encode_call
from nodes.wire.errors import UnsupportedAnswerError

#: Told once what came of a call; None: no answer.
Called = Callable[[msgspec.Struct | None], None]
_TIMEOUT_MS: Final = 5_000
_CORRELATION_MASK: Final = 0x7FFFFFFF


class ControlVersions:
    """What the peer of one connection serves of the control plane."""

    def __init__(self, client_id: str) -> None:
        self._versions = PeerVersions(client_id)
        self.question = self._versions.question
        self.take = self._versions.take

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        return self._versions.is_known

    def version_for(self, request: msgspec.Struct, /) -> int:
        """Highest version that both speak; raises NoCommonVersionError."""
        api_key = api_key_of_call(request)
        return self._versions.choose(api_key, TABLES[api_key].versions)


class ControlCodec:
    """The control plane's frames, for one link."""

    def __init__(self, node_id: NodeId) -> None:
        self._client_id = f"splitbrain-{node_id}"

    def peer_versions(self) -> ControlVersions:
        """For a new connection."""
        return ControlVersions(self._client_id)

    def encode_request(
        self, correlation: int, request: msgspec.Struct, version: int | None = None
    ) -> bytes:
        """Frame of a request; raises ValueError where the version cannot say it."""
        version = self._version(request, version)
        return encode_call(request, version, correlation & _CORRELATION_MASK, self._client_id)

    def decode_answer(
        self, correlation: int, request: msgspec.Struct, payload: bytes, version: int | None = None
    ) -> msgspec.Struct:
        """The answer to a request; raises WireError."""
        version = self._version(request, version)
        received = decode_reply(payload, api_key_of_call(request), version)
        if received.correlation_id != correlation & _CORRELATION_MASK:
            raise UnsupportedAnswerError(
                f"answer {received.correlation_id} does not fit request {correlation}"
            )
        return received.message

    def _version(self, request: msgspec.Struct, version: int | None) -> int:
        return TABLES[api_key_of_call(request)].versions.highest if version is None else version


class ControlLinks:
    """Calls of one controller to the others, one at a time to each."""

    def __init__(self, node_id: NodeId, voters: tuple[Voter, ...]) -> None:
        """Prepare, without a connection."""
        codec = ControlCodec(node_id)
        self._links: dict[NodeId, PeerLink[msgspec.Struct, msgspec.Struct]] = {
            voter.node_id: PeerLink(voter, codec, self)
            for voter in voters
            if voter.node_id != node_id
        }
        self._waiting: dict[NodeId, Called] = {}
        self._count = 0

    def call(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        """Ask a peer; ``called`` is told in a later turn. Nothing may be under way to it."""
        self._count += 1
        self._waiting[peer] = called
        self._links[peer].send(CorrelationId(self._count), message, _TIMEOUT_MS)

    def close(self) -> None:
        """Drop all connections; nothing is told any more."""
        self._waiting.clear()
        for link in self._links.values():
            link.close()

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: msgspec.Struct) -> None:
        """A peer answered."""
        self._tell(peer, answer)

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """A peer will not answer; why, the quorum's own links say in the log."""
        self._tell(peer, None)

    def _tell(self, peer: NodeId, answer: msgspec.Struct | None) -> None:
        called = self._waiting.pop(peer, None)
        if called is not None:
            called(answer)
