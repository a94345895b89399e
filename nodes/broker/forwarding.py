"""Requests that a broker forwards to the active controller in envelopes, and their answers.

The client's request goes as it came, and the answer within the envelope goes to the client as it
comes. The host sends the envelope to the controller that the observer replica knows, and again to
the next one while ``read_answer`` says ``AskAgain`` or the connection fails, for
``FORWARDING_TIMEOUT_MS``; then ``timed_out`` is the answer. Sent again, a request may have been
carried out before: as in Kafka, a client can be told that the topic it created exists already.

A real broker looks into changes of configs first, for what concerns its own loggers; ours has none,
and the controller refuses those.

Source: KIP-590; Kafka 4.3.1's ForwardingManager, KafkaApis, and its requests' ``getErrorResponse``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import Head, decode_head, encode_reply
from splitbrain.nodes.wire.envelopes import envelope_of
from splitbrain.nodes.wire.errors import ApiError, WireError
from splitbrain.nodes.wire.families.brokers import UnregisterBrokerResponse
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.families.voters import AddRaftVoterResponse, RemoveRaftVoterResponse
from splitbrain.nodes.wire.framing import frame
from splitbrain.nodes.wire.messages import decode_answer, decode_forwarded, encode_refusal
from splitbrain.nodes.wire.principals import ANONYMOUS, Principal

#: APIs that a client may ask a broker for and a controller decides.
FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
#: Responses that a controller makes otherwise, or not at all.
_OWN_RESPONSES: Final[Mapping[ApiKey, Callable[..., msgspec.Struct]]] = MappingProxyType(
    {
        ApiKey.UNREGISTER_BROKER: UnregisterBrokerResponse,
        ApiKey.ADD_RAFT_VOTER: AddRaftVoterResponse,
        ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterResponse,
    }
)
#: How long a real broker tries.
FORWARDING_TIMEOUT_MS: Final = 60_000


class Forwarding(msgspec.Struct, frozen=True):
    """A client's request on its way to the controller."""

    header: RequestHeader
    request: msgspec.Struct
    envelope: EnvelopeRequest


class Relay(msgspec.Struct, frozen=True, tag=True):
    """Send this frame to the client."""

    frame: bytes


class AskAgain(msgspec.Struct, frozen=True, tag=True):
    """That was not the active controller: find it anew and send the same envelope."""


class CloseClient(msgspec.Struct, frozen=True, tag=True):
    """Close the client's connection: it has to learn anew which versions there are."""


def forward(
    payload: bytes,
    client_address: bytes,
    principal: Principal = ANONYMOUS,
    *,
    head: Head | None = None,
) -> Forwarding:
    """Return the envelope for a client's request: its frame without the size.

    ``head``: the frame's header, where it was read before.

    Raises:
        ValueError: the API is not forwarded, or the address has neither 4 nor 16 bytes.
        WireError: the request is malformed, as if it were answered here.
    """
    head = head or decode_head(payload)
    envelope = envelope_of(payload, principal, client_address, head)
    received = decode_forwarded(payload, head)
    if received.header.api_key not in FORWARDED:
        raise ValueError(f"API {received.header.api_key} is no client's to ask a broker for")
    return Forwarding(received.header, received.message, envelope)


def read_answer(
    forwarding: Forwarding, response: EnvelopeResponse
) -> Relay | AskAgain | CloseClient:
    """Decide what to do about the controller's answer.

    An error of the envelope means nothing to the client, who gets UNKNOWN_SERVER_ERROR; so does one
    whose answer cannot be read.
    """
    match response.error_code:
        case ApiError.NONE:
            content = response.response_data or b""
            if _is_answer(forwarding.header, content):
                return Relay(frame(content))
        case ApiError.NOT_CONTROLLER:
            return AskAgain()
        case ApiError.UNSUPPORTED_VERSION:
            return CloseClient()
        case _:
            pass
    return _failed(forwarding, ApiError.UNKNOWN_SERVER_ERROR)


def timed_out(forwarding: Forwarding) -> Relay:
    """Return the client's answer where no controller has answered in time."""
    return _failed(forwarding, ApiError.REQUEST_TIMED_OUT)


def _failed(forwarding: Forwarding, code: ApiError) -> Relay:
    """Return an answer that no controller gave: everything in the request failed."""
    header = forwarding.header
    api_key = ApiKey(header.api_key)
    if api_key is ApiKey.DESCRIBE_QUORUM:
        return Relay(encode_refusal(header, ErrorCode(code)))
    make = _OWN_RESPONSES.get(api_key)
    if make is None:
        answer = refuse(api_key, forwarding.request, header.api_version, code, None)
    else:
        answer = make(throttle_time_ms=0, error_code=code, error_message=None)
    return Relay(encode_reply(answer, header))


def _is_answer(header: RequestHeader, content: bytes) -> bool:
    try:
        received = decode_answer(content, ApiKey(header.api_key), header.api_version)
    except WireError:
        return False
    return received.correlation_id == header.correlation_id
