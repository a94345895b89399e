"""Kafka frames as a broker's clients send them: what it answers itself, and what it hands on.

A request to be forwarded comes out as the envelope for the controller.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.nodes.broker.forwarding import FORWARDED, forward
from splitbrain.nodes.broker.serving import ANSWERED
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall, decode_call, decode_head, encode_reply
from splitbrain.nodes.wire.errors import ForeignPartitionError, UnsupportedApiError
from splitbrain.nodes.wire.messages import decode_request, encode_api_versions, encode_refusal

#: Named as the client's in envelopes: only local clients reach a broker that holds no records, and
#: a controller does no more than log it.
_CLIENT_ADDRESS: Final = b"\x7f\0\0\1"


class BrokerCodec:
    """Whole frames, size included, out; payloads, without it, in."""

    def __init__(self, versions: Callable[[], ApiVersionsResponse]) -> None:
        """``versions``: what is offered by now."""
        self._versions = versions

    def decode_request(self, payload: bytes) -> ReceivedCall | bytes:
        """Return a call for the broker, or the frame that answers.

        The message of what is handed on is a ``nodes.broker.forwarding.Forwarding``. Raises
        WireError: it is malformed or not served; the connection must be closed.
        """
        head = decode_head(payload)
        header, _ = head
        try:
            if header.api_key in FORWARDED:
                forwarding = forward(payload, _CLIENT_ADDRESS, head=head)
                return ReceivedCall(forwarding.header, forwarding)
            if header.api_key in ANSWERED:
                return decode_call(payload, head, exact=False)
            if header.api_key == ApiKey.API_VERSIONS:
                return encode_api_versions(decode_request(payload, head).header, self._versions())
        except ForeignPartitionError as error:
            return encode_refusal(error.header, error.code)
        raise UnsupportedApiError(header.api_key, header.api_version)

    def encode_answer(self, header: RequestHeader, answer: msgspec.Struct) -> bytes:
        """Frame of the answer to the request with this header, in its version."""
        return encode_reply(answer, header)
