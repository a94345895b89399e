"""A client's request within a broker's, and the answer within the answer: both ends of an envelope.

A broker hands the client's request on as it came, header included, and says whose it is. The
controller answers it as it would answer a client and seals the answer: header and body, without the
size. An error of the envelope is about broker and controller and never reaches the client; an
answer that says NOT_CONTROLLER is told by the envelope instead, so that the broker looks for the
active controller anew and asks again.

Source: KIP-590; Kafka 4.3.1's EnvelopeUtils, RequestChannel and ApiKeys.forwardable.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, ErrorCode
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import Head, decode_head
from splitbrain.nodes.wire.errors import ApiError, ForeignPartitionError, WireError
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.messages import decode_forwarded, encode_answer
from splitbrain.nodes.wire.principals import Principal, decode_principal, encode_principal
from splitbrain.nodes.wire.requests import Endpoint

#: APIs by number that a broker may forward. Those that no table of ours knows are ACLs (30, 31),
#: delegation tokens (38 to 40), client quotas (49) and SCRAM credentials (51).
FORWARDABLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        30,
        31,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        38,
        39,
        40,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        49,
        51,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
#: Numbers that Kafka 4.3.1 has versions for: 4 to 7 were of ZooKeeper's time.
_KNOWN: Final = frozenset({*range(4), *range(8, 93)})
#: Bytes of an address: of IPv4, of IPv6.
_ADDRESS_BYTES: Final = (4, 16)
_SIZE_BYTES: Final = 4
_NO_ENDPOINTS: Final[Mapping[NodeId, Endpoint]] = MappingProxyType({})


class ForwardedCall(msgspec.Struct, frozen=True):
    """The request in an envelope, and on whose behalf it is asked."""

    #: The client's own; the sealed answer repeats its correlation id and version.
    header: RequestHeader
    #: As ``decode_call`` gives it; a ``DescribeQuorumRequest`` is the quorum's own message.
    message: msgspec.Struct
    principal: Principal
    #: 4 or 16 bytes.
    client_address: bytes


class EnvelopeRefusedError(WireError):
    """An envelope that is answered with an error and no content: ``refused_envelope(code)``."""

    def __init__(self, code: ApiError, problem: str) -> None:
        self.code = code
        super().__init__(problem)


def envelope_of(
    payload: bytes, principal: Principal, client_address: bytes, head: Head | None = None
) -> EnvelopeRequest:
    """Return the envelope around a client's request, a frame without its size.

    ``head``: its header, where it was read before. Raises ValueError if it is not to be forwarded.
    """
    api_key = (head or _head(payload))[0].api_key
    if api_key not in FORWARDABLE:
        raise ValueError(f"API {api_key} is not to be forwarded")
    if len(client_address) not in _ADDRESS_BYTES:
        raise ValueError(f"an address has 4 or 16 bytes, not {len(client_address)}")
    return EnvelopeRequest(
        request_data=payload,
        request_principal=encode_principal(principal),
        client_host_address=client_address,
    )


def open_envelope(envelope: EnvelopeRequest) -> ForwardedCall:
    """Return the request within, looked at in Kafka's order: principal, address, header, API, body.

    Raises:
        EnvelopeRefusedError: PRINCIPAL_DESERIALIZATION_FAILURE; INVALID_REQUEST for an address that
            is none and for an API that is not to be forwarded; UNSUPPORTED_VERSION for a request
            that cannot be read here, whereupon the broker closes its client's connection.
        ForeignPartitionError: a DescribeQuorum about other partitions; its answer is an
            ``encode_refusal`` like any other's: see ``seal_frame``.
    """
    try:
        principal = decode_principal(envelope.request_principal or b"")
    except WireError as error:
        code = ApiError.PRINCIPAL_DESERIALIZATION_FAILURE
        raise EnvelopeRefusedError(code, f"an envelope's principal: {error}") from error
    address = envelope.client_host_address
    if len(address) not in _ADDRESS_BYTES:
        problem = f"an envelope's client address has {len(address)} bytes"
        raise EnvelopeRefusedError(ApiError.INVALID_REQUEST, problem)
    payload = envelope.request_data
    try:
        head = _head(payload)
        api_key = head[0].api_key
        if api_key not in FORWARDABLE:
            problem = f"API {api_key} is not eligible for forwarding"
            raise EnvelopeRefusedError(ApiError.INVALID_REQUEST, problem)
        received = decode_forwarded(payload, head)
    except (EnvelopeRefusedError, ForeignPartitionError):
        raise
    except WireError as error:
        code = ApiError.UNSUPPORTED_VERSION
        raise EnvelopeRefusedError(code, f"an envelope's request: {error}") from error
    return ForwardedCall(received.header, received.message, principal, address)


def seal_reply(
    message: msgspec.Struct,
    header: RequestHeader,
    *,
    endpoints: Mapping[NodeId, Endpoint] = _NO_ENDPOINTS,
) -> EnvelopeResponse:
    """Return the envelope around the answer to the request with this header; raises ValueError.

    ``endpoints``: where voters listen, for the answer to a DescribeQuorum.
    """
    if isinstance(message, DescribeQuorumAnswer):
        is_others = message.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        is_others = _says(message, ApiError.NOT_CONTROLLER)
    if is_others:
        return refused_envelope(ApiError.NOT_CONTROLLER)
    return seal_frame(encode_answer(message, header, endpoints=endpoints))


def seal_frame(frame: bytes) -> EnvelopeResponse:
    """Return the envelope around an answer that is a frame already, size included."""
    return EnvelopeResponse(response_data=frame[_SIZE_BYTES:], error_code=ApiError.NONE)


def refused_envelope(code: ApiError) -> EnvelopeResponse:
    """Return the answer to an envelope that holds an error and no content."""
    return EnvelopeResponse(error_code=code)


def _head(payload: bytes) -> Head:
    """Return the header of a request of Kafka's; raises WireError."""
    head = decode_head(payload)
    if head[0].api_key not in _KNOWN:
        raise WireError(f"there is no API {head[0].api_key}")
    return head


def _says(answer: msgspec.Struct, code: ApiError) -> bool:
    """Whether an answer has the error code anywhere: as a whole, or of one of its parts."""
    for name in answer.__struct_fields__:
        value: Any = getattr(answer, name)
        if name == "error_code" and value == code:
            return True
        parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        if any(isinstance(part, msgspec.Struct) and _says(part, code) for part in parts):
            return True
    return False
