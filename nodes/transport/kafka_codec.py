"""Kafka frames as this node sends them: who it is and where voters listen, over ``nodes.wire``.

Requests go out in the version that the link has chosen (``nodes.transport.peer_versions``), in the
highest that we speak where the peer is known to be of our own release.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.peer_versions import PeerVersions
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest, ApiVersionsResponse, own_versions
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, RequestHeader
from splitbrain.nodes.wire.calls import TABLES, ReceivedCall, decode_call, decode_head
from splitbrain.nodes.wire.errors import ForeignPartitionError, UnsupportedAnswerError
from splitbrain.nodes.wire.messages import (
    api_key_of,
    decode_answer,
    decode_request,
    encode_answer,
    encode_api_versions,
    encode_refusal,
    encode_request,
)
from splitbrain.nodes.wire.requests import Endpoint

#: Correlation ids are 31 bits wide on the wire; one request at a time keeps them apart.
_CORRELATION_MASK: Final = 0x7FFFFFFF


class KafkaCodec:
    """Whole frames, size included, out; payloads, without it, in."""

    def __init__(
        self,
        node_id: NodeId,
        voters: tuple[Voter, ...] = (),
        versions: Callable[[], ApiVersionsResponse] = own_versions,
    ) -> None:
        """A codec for this node; ``versions`` tells what is served here by now."""
        self._versions = versions
        #: APIs that the peer last said it serves; for the links to one peer.
        self.served: ApiVersionsResponse | None = None
        self._client_id = f"splitbrain-{node_id}"
        self._endpoints: Mapping[NodeId, Endpoint] = {
            voter.node_id: Endpoint(voter.host, voter.port) for voter in voters
        }
        self._own = self._endpoints.get(node_id)

    def peer_versions(self) -> PeerVersions:
        """For a new connection: what its peer serves is to be asked."""
        return PeerVersions(self._client_id, self._learn)

    def encode_request(
        self, correlation: int, request: msgspec.Struct, version: int | None = None
    ) -> bytes:
        """Frame of a request; ``version`` None: in the highest that we speak.

        Raises ValueError: the version is not one of ours or cannot say what the request says.
        """
        return encode_request(
            request,
            correlation & _CORRELATION_MASK,
            self._client_id,
            version=version,
            leader=self._own,
        )

    def decode_answer(
        self, correlation: int, request: msgspec.Struct, payload: bytes, version: int | None = None
    ) -> Any:
        """Return the answer to this request, which went out in ``version``.

        Raises WireError: it is malformed, or answers something else.
        """
        api_key = api_key_of(request)
        if version is None:
            version = TABLES[api_key].versions.highest
        received = decode_answer(payload, api_key, version)
        if received.correlation_id != correlation & _CORRELATION_MASK:
            raise UnsupportedAnswerError(
                f"answer {received.correlation_id} does not fit request {correlation}"
            )
        return received.message

    def decode_request(self, payload: bytes) -> ReceivedCall | bytes:
        """Return a request for the replica or for the layer above it, or the frame that answers.

        Raises WireError: it is malformed or not served; the connection must be closed.
        """
        head = decode_head(payload)
        if self._is_served_above(head[0]):
            return decode_call(payload, head)
        try:
            received = decode_request(payload, head)
        except ForeignPartitionError as error:
            return encode_refusal(error.header, error.code)
        if isinstance(received.message, ApiVersionsRequest):
            return encode_api_versions(received.header, self._versions())
        return received

    def encode_answer(self, header: RequestHeader, answer: msgspec.Struct) -> bytes:
        """Frame of the answer to the request with this header, in its version."""
        return encode_answer(answer, header, endpoints=self._endpoints)

    def _learn(self, served: ApiVersionsResponse) -> None:
        self.served = served

    def _is_served_above(self, header: RequestHeader) -> bool:
        """Whether the API and the version are told to be served above the quorum."""
        key = header.api_key
        if key in SUPPORTED_VERSIONS:
            return False
        return any(
            api.api_key == key and api.min_version <= header.api_version <= api.max_version
            for api in self._versions().api_keys
        )
