"""A node's own requests to controllers, apart from the quorum's: links that carry one call each.

Links of their own, since the quorum's links carry one request at a time and must never wait for
what is not the quorum's; and as many as there are calls under way, since a heartbeat must not wait
for a client's request. Must never resend by itself.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from nodes.quorum.identifiers import CorrelationId, NodeId
from nodes.quorum.persistent import Voter
from nodes.transport.peer_link import PeerLink
from nodes.transport.peer_versions import PeerVersions
from nodes.wire.api_versions import ApiVersionsAnswer
from nodes.wire.control_plane import TABLES, api_key_of_call, decode_reply, encode_call
from nodes.wire.errors import UnsupportedAnswerError

#: Told once what came of a call; None: no answer.
Called = Callable[[msgspec.Struct | None], None]
_TIMEOUT_MS: Final = 5_000
_CORRELATION_MASK: Final = 0x7FFFFFFF


class ControlVersions:
    """What the peer of one connection serves of the control plane."""

    def __init__(self, client_id: str, told: Callable[[ApiVersionsAnswer], None]) -> None:
        """``told`` gets what the peer serves, once it is known."""
        self._versions = PeerVersions(client_id)
        self._told = told
        self.question = self._versions.question

    def take(self, payload: bytes) -> None:
        """The peer's answer; raises WireError."""
        self._versions.take(payload)
        if self._versions.answer is not None:
            self._told(self._versions.answer)

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        return self._versions.is_known

    def version_for(self, request: msgspec.Struct, /) -> int:
        """Highest version that both speak; raises NoCommonVersionError."""
        api_key = api_key_of_call(request)
        return self._versions.choose(api_key, TABLES[api_key].versions)


class ControlCodec:
    """The control plane's frames, for the links to one peer."""

    def __init__(self, node_id: NodeId) -> None:
        self._client_id = f"splitbrain-{node_id}"
        #: What the peer said last.
        self.served: ApiVersionsAnswer | None = None

    def peer_versions(self) -> ControlVersions:
        """For a new connection."""
        return ControlVersions(self._client_id, self._learn)

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

    def _learn(self, served: ApiVersionsAnswer) -> None:
        self.served = served

    def _version(self, request: msgspec.Struct, version: int | None) -> int:
        return TABLES[api_key_of_call(request)].versions.highest if version is None else version


class _Line:
    """One link to one peer, and the call that is on it."""

    def __init__(self, voter: Voter, codec: ControlCodec, freed: Callable[["_Line"], None]) -> None:
        self.peer = voter.node_id
        self._freed = freed
        self._link: PeerLink[msgspec.Struct, msgspec.Struct] = PeerLink(voter, codec, self)
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
        """The peer answered."""
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


class ControlLinks:
    """Calls of one node to the voters."""

    def __init__(self, node_id: NodeId, voters: tuple[Voter, ...]) -> None:
        """Prepare, without a connection."""
        others = [voter for voter in voters if voter.node_id != node_id]
        self._voters = {voter.node_id: voter for voter in others}
        self._codecs = {voter.node_id: ControlCodec(node_id) for voter in others}
        self._lines: list[_Line] = []
        #: Lines that no call is on; the one used last, whose connection is likeliest open, at the
        #: end.
        self._free: dict[NodeId, list[_Line]] = {voter.node_id: [] for voter in others}
        self._is_closed = False

    def call(self, peer: NodeId, message: msgspec.Struct, called: Called) -> None:
        """Ask a peer; ``called`` is told in a later turn. No call waits for another."""
        if self._is_closed:
            return
        free = self._free[peer]
        if free:
            line = free.pop()
        else:
            line = _Line(self._voters[peer], self._codecs[peer], self._freed)
            self._lines.append(line)
        line.call(message, called)

    def versions_of(self, peer: NodeId) -> ApiVersionsAnswer | None:
        """What the peer last said that it serves; None before it was first called."""
        codec = self._codecs.get(peer)
        return None if codec is None else codec.served

    def close(self) -> None:
        """Drop all connections; nothing is told any more."""
        self._is_closed = True
        for line in self._lines:
            line.close()

    def _freed(self, line: _Line) -> None:
        self._free[line.peer].append(line)
