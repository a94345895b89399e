"""Kafka frames as this node sends them: who it is and where voters listen, over ``nodes.wire``.

Requests go out in the version that the link has chosen (``nodes.transport.peer_versions``), in the
highest that we speak where the peer is known to be of our own release. Must never hold the state of
a connection.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.peer_versions import PeerVersions
from splitbrain.nodes.wire.api_versions import ApiVersionsAnswer, ApiVersionsRequest, own_versions
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, RequestHeader
from splitbrain.nodes.wire.control_plane import TABLES, ReceivedCall, decode_call, encode_reply
from splitbrain.nodes.wire.errors import ForeignPartitionError, UnsupportedAnswerError
from splitbrain.nodes.wire.headers import decode_request_prefix
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


class Inbound:
    """A request that the replica shall see, and what is needed to answer it."""

    def __init__(self, header: RequestHeader, request: Request) -> None:
        self.header = header
        self.request = request


class KafkaCodec:
    """Whole frames, size included, out; payloads, without it, in."""

    def __init__(
        self,
        node_id: NodeId,
        voters: tuple[Voter, ...],
        versions: Callable[[], ApiVersionsAnswer] = own_versions,
    ) -> None:
        """A codec for this node.

        Args:
            node_id: its number.
            voters: where everybody listens.
            versions: what is served here by now.
        """
        self._versions = versions
        self._client_id = f"splitbrain-{node_id}"
        self._endpoints: Mapping[NodeId, Endpoint] = {
            voter.node_id: Endpoint(voter.host, voter.port) for voter in voters
        }
        self._own = self._endpoints.get(node_id)

    def peer_versions(self) -> PeerVersions:
        """For a new connection: what its peer serves is to be asked."""
        return PeerVersions(self._client_id)

    def encode_request(
        self, correlation: int, request: Request, version: int | None = None
    ) -> bytes:
        """Frame of a request; ``version`` None: in the highest that we speak.

        Raises:
            ValueError: the version is not one of ours or cannot say what the request says.
        """
        return encode_request(
            request,
            correlation & _CORRELATION_MASK,
            self._client_id,
            version=version,
            leader=self._own,
        )

    def decode_answer(
        self, correlation: int, request: Request, payload: bytes, version: int | None = None
    ) -> Answer:
        """The answer to this request, which went out in ``version``.

        Raises:
            WireError: it is malformed, or answers something else.
        """
        api_key = api_key_of(request)
        if version is None:
            version = SUPPORTED_VERSIONS[api_key].highest
        received = decode_answer(payload, api_key, version)
        if received.correlation_id != correlation & _CORRELATION_MASK:
            raise UnsupportedAnswerError(
                f"answer {received.correlation_id} does not fit request {correlation}"
            )
        if isinstance(received.message, ApiVersionsAnswer):
            raise UnsupportedAnswerError("ApiVersions was not asked")
        return received.message

    def decode_request(self, payload: bytes) -> Inbound | ReceivedCall | bytes:
        """A request for the replica, a call for who stands above it, or the frame that answers.

        Raises:
            WireError: it is malformed or not served; the connection must be closed.
        """
        if self._is_call(payload):
            return decode_call(payload)
        try:
            received = decode_request(payload)
        except ForeignPartitionError as error:
            return encode_refusal(error.header, error.code)
        if isinstance(received.message, ApiVersionsRequest):
            return encode_api_versions(received.header, self._versions())
        return Inbound(received.header, received.message)

    def encode_answer(self, inbound: Inbound, answer: Answer) -> bytes:
        """Frame of the answer, in the request's version."""
        return encode_answer(answer, inbound.header, endpoints=self._endpoints)

    def encode_reply(self, call: ReceivedCall, reply: msgspec.Struct) -> bytes:
        """Frame of the answer to a call, in the call's version."""
        return encode_reply(reply, call.header)

    def _is_call(self, payload: bytes) -> bool:
        """Whether it is of an API and a version that are told to be served above the quorum."""
        header = decode_request_prefix(payload)
        key = header.api_key
        if key in SUPPORTED_VERSIONS or key not in TABLES:
            return False
        return any(
            api == key and lowest <= header.api_version <= highest
            for api, lowest, highest in self._versions().apis
        )
