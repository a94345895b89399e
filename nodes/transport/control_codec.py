"""The control plane's frames as a node sends them to controllers, and what one of those serves.

Must never hold the state of a connection.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.transport.peer_versions import PeerVersions
from splitbrain.nodes.wire.api_versions import ApiVersionsAnswer
from splitbrain.nodes.wire.control_plane import TABLES, api_key_of_call, decode_reply, encode_call
from splitbrain.nodes.wire.errors import UnsupportedAnswerError

_CORRELATION_MASK: Final = 0x7FFFFFFF


class ControlVersions:
    """Versions of the control plane that the peer of one connection serves."""

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
