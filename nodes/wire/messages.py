"""A node's messages as Kafka frames, and back: the one adapter between core and network.

The quorum's own are the core's on this side; those of all other APIs are Kafka's on both. Encoding
gives whole frames, size included; decoding takes what ``FrameReader`` gives, without it. Bytes that
make no sense raise ``WireError`` and nothing else: the host closes the connection.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.messages import Answer, ErrorCode, Request
from splitbrain.nodes.wire.answers import answer_from_kafka, answer_to_kafka
from splitbrain.nodes.wire.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    own_versions,
    unsupported_version,
)
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import (
    TABLES,
    Head,
    ReceivedCall,
    ReceivedReply,
    api_key_of_call,
    decode_call,
    decode_head,
    decode_reply,
    encode_call,
    encode_reply,
)
from splitbrain.nodes.wire.errors import ForeignPartitionError, UnsupportedApiError
from splitbrain.nodes.wire.requests import (
    Endpoint,
    OtherPartition,
    request_from_kafka,
    request_to_kafka,
)

_NO_ENDPOINTS: Final[Mapping[NodeId, Endpoint]] = MappingProxyType({})
_CORE_KEYS: Final[Mapping[type[msgspec.Struct], ApiKey]] = MappingProxyType(
    {
        core.FetchRequest: ApiKey.FETCH,
        core.FetchSnapshotRequest: ApiKey.FETCH_SNAPSHOT,
        core.VoteRequest: ApiKey.VOTE,
        core.BeginQuorumEpochRequest: ApiKey.BEGIN_QUORUM_EPOCH,
        core.EndQuorumEpochRequest: ApiKey.END_QUORUM_EPOCH,
        core.DescribeQuorumRequest: ApiKey.DESCRIBE_QUORUM,
    }
)
#: The error code at the head of an answer of ApiVersions.
_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)
_UNSUPPORTED_PLACE: Final = slice(4, 6)


def api_key_of(request: msgspec.Struct) -> ApiKey:
    """Key of the API that carries the request."""
    return _CORE_KEYS.get(type(request)) or api_key_of_call(request)


def encode_request(
    request: msgspec.Struct,
    correlation_id: int,
    client_id: str | None,
    *,
    version: int | None = None,
    leader: Endpoint | None = None,
) -> bytes:
    """Return the frame of a request, in ``version`` (None: the highest that we speak).

    ``leader``: own quorum listener; BeginQuorumEpoch and EndQuorumEpoch tell it to the receiver.
    Raises ValueError for what the version cannot say.
    """
    if version is None:
        version = TABLES[api_key_of(request)].versions.highest
    message = request_to_kafka(request, leader) if isinstance(request, Request) else request
    return encode_call(message, version, correlation_id, client_id)


def decode_request(payload: bytes, head: Head | None = None) -> ReceivedCall:
    """The core's request, or that of ApiVersions, in a frame whose header may have been read.

    Of an ApiVersions request of unknown version only the header is read.

    Raises:
        UnsupportedApiError: we do not serve its API or version.
        ForeignPartitionError: it is well-formed, but not about the metadata partition alone.
        WireError: it is malformed.
    """
    head = decode_head(payload) if head is None else head
    header, _ = head
    if header.api_key not in SUPPORTED_VERSIONS:
        raise UnsupportedApiError(header.api_key, header.api_version)
    if header.api_key == ApiKey.API_VERSIONS:
        if header.api_version not in SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]:
            return ReceivedCall(header, ApiVersionsRequest())
        return decode_call(payload, head)
    try:
        return ReceivedCall(header, request_from_kafka(decode_call(payload, head).message))
    except OtherPartition as error:
        raise ForeignPartitionError(header, error.code) from error


def decode_forwarded(payload: bytes, head: Head) -> ReceivedCall:
    """Return a request that a broker forwards: the quorum's own is the core's, any other Kafka's.

    Raises:
        ForeignPartitionError: it is the quorum's, but not about the metadata partition alone.
        WireError: it is malformed, or no table has it.
    """
    read = decode_request if head[0].api_key == ApiKey.DESCRIBE_QUORUM else decode_call
    return read(payload, head)


def encode_answer(
    answer: msgspec.Struct,
    header: RequestHeader,
    *,
    endpoints: Mapping[NodeId, Endpoint] = _NO_ENDPOINTS,
) -> bytes:
    """Return the frame of the answer to the request with this header, in the request's version.

    ``endpoints``: where voters listen; the answer names the leader's, so that the asker finds it.
    """
    message = answer_to_kafka(answer, endpoints) if isinstance(answer, Answer) else answer
    return encode_reply(message, header)


def encode_api_versions(header: RequestHeader, serves: ApiVersionsResponse | None = None) -> bytes:
    """Return the frame that answers an ApiVersions request, of whatever version it was.

    ``serves``: what to tell; None for what a node of the quorum serves.
    """
    if header.api_version not in SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]:
        in_first = msgspec.structs.replace(header, api_version=0)
        return encode_reply(unsupported_version(), in_first)
    return encode_reply((serves or own_versions()).for_version(header.api_version), header)


def encode_refusal(header: RequestHeader, error: ErrorCode) -> bytes:
    """Return the frame that answers a quorum request with an error and nothing else.

    Kafka answers so what it does not look into.
    """
    api_key = ApiKey(header.api_key)
    topics = "responses" if api_key is ApiKey.FETCH else "topics"
    return encode_reply(TABLES[api_key].response(error_code=error, **{topics: ()}), header)


def decode_answer(payload: bytes, api_key: ApiKey, version: int) -> ReceivedReply:
    """Return the answer in a frame; the asker knows what it asked, the frame does not say.

    A node that does not know the version of an ApiVersions request says so in version 0.

    Raises:
        UnsupportedAnswerError: the answer says something that the quorum has no message for.
        WireError: it is malformed, or its records are corrupt.
    """
    if api_key is ApiKey.API_VERSIONS:
        is_refused = payload[_UNSUPPORTED_PLACE] == _UNSUPPORTED
        return decode_reply(payload, api_key, 0 if is_refused else version)
    received = decode_reply(payload, api_key, version)
    if api_key not in SUPPORTED_VERSIONS:
        return received
    return ReceivedReply(received.correlation_id, answer_from_kafka(received.message))
