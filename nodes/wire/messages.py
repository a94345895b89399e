"""The quorum's messages as Kafka frames, and back: the one adapter between core and network.

Encoding gives whole frames, size included, ready to be sent; decoding takes what ``FrameReader``
gives, without the size. Bytes that make no sense raise ``WireError`` and nothing else: the host
closes the connection. ApiVersions is answered here, from the table; the core does not know it.
Must never hold state: correlation is the core's and the host's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    DescribeQuorumAnswer,
    DescribeQuorumRequest,
    EndQuorumEpochAnswer,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    Request,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.wire.answers import answer_from_fields, answer_to_fields, refusal_to_fields
from splitbrain.nodes.wire.api_versions import (
    FLEXIBLE_SINCE,
    ApiVersionsAnswer,
    ApiVersionsRequest,
    decode_answer_body,
    decode_request_body,
    encode_answer_body,
    encode_request_body,
    own_versions,
    unsupported_version,
)
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.errors import ForeignPartitionError, UnsupportedApiError, WireError
from splitbrain.nodes.wire.framing import frame
from splitbrain.nodes.wire.headers import (
    decode_request_header,
    decode_request_prefix,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    read_correlation_id,
)
from splitbrain.nodes.wire.requests import (
    Endpoint,
    OtherPartition,
    request_from_fields,
    request_to_fields,
)
from splitbrain.nodes.wire.schemas import SCHEMAS

__all__ = [
    "Endpoint",
    "ReceivedAnswer",
    "ReceivedRequest",
    "api_key_of",
    "decode_answer",
    "decode_request",
    "encode_answer",
    "encode_api_versions",
    "encode_refusal",
    "encode_request",
    "read_correlation_id",
]

_NO_ENDPOINTS: Final[Mapping[NodeId, Endpoint]] = MappingProxyType({})
_REQUEST_KEYS: Final = MappingProxyType(
    {
        ApiVersionsRequest: ApiKey.API_VERSIONS,
        FetchRequest: ApiKey.FETCH,
        FetchSnapshotRequest: ApiKey.FETCH_SNAPSHOT,
        VoteRequest: ApiKey.VOTE,
        BeginQuorumEpochRequest: ApiKey.BEGIN_QUORUM_EPOCH,
        EndQuorumEpochRequest: ApiKey.END_QUORUM_EPOCH,
        DescribeQuorumRequest: ApiKey.DESCRIBE_QUORUM,
    }
)
_ANSWER_KEYS: Final = MappingProxyType(
    {
        FetchAnswer: ApiKey.FETCH,
        FetchSnapshotAnswer: ApiKey.FETCH_SNAPSHOT,
        VoteAnswer: ApiKey.VOTE,
        BeginQuorumEpochAnswer: ApiKey.BEGIN_QUORUM_EPOCH,
        EndQuorumEpochAnswer: ApiKey.END_QUORUM_EPOCH,
        DescribeQuorumAnswer: ApiKey.DESCRIBE_QUORUM,
    }
)


class ReceivedRequest(msgspec.Struct, frozen=True):
    """A request from a peer, and what its answer needs to know of it."""

    header: RequestHeader
    message: Request | ApiVersionsRequest


class ReceivedAnswer(msgspec.Struct, frozen=True):
    """An answer from a peer, and the number of the request that it answers."""

    correlation_id: int
    message: Answer | ApiVersionsAnswer


def api_key_of(request: Request | ApiVersionsRequest) -> ApiKey:
    """Key of the API that carries the request."""
    return _REQUEST_KEYS[type(request)]


def encode_request(
    request: Request | ApiVersionsRequest,
    correlation_id: int,
    client_id: str | None,
    *,
    version: int | None = None,
    leader: Endpoint | None = None,
) -> bytes:
    """The frame of a request, in ``version`` (None: the highest that we speak).

    ``leader``: own quorum listener; BeginQuorumEpoch and EndQuorumEpoch tell it to the receiver.

    Raises:
        ValueError: the version is not in the table or cannot say what the request says.
    """
    api_key = api_key_of(request)
    version = _known_version(api_key, version)
    flexible = api_key is not ApiKey.API_VERSIONS or version >= FLEXIBLE_SINCE
    header = RequestHeader(api_key, version, correlation_id, client_id)
    parts = [encode_request_header(header, flexible=flexible)]
    if isinstance(request, ApiVersionsRequest):
        parts.append(encode_request_body(request, version))
    else:
        fields = request_to_fields(request, version, leader)
        SCHEMAS[api_key].request.write(fields, version, parts)
    return frame(b"".join(parts))


def decode_request(payload: bytes) -> ReceivedRequest:
    """The request in a frame. Of an ApiVersions request of unknown version only the header is read.

    Raises:
        UnsupportedApiError: we do not serve its API or version.
        ForeignPartitionError: it is well-formed, but not about the metadata partition alone.
        WireError: it is malformed.
    """
    header = decode_request_prefix(payload)
    api_key = _served(header)
    version = header.api_version
    if version not in SUPPORTED_VERSIONS[api_key]:
        return ReceivedRequest(header, ApiVersionsRequest())
    flexible = api_key is not ApiKey.API_VERSIONS or version >= FLEXIBLE_SINCE
    header, position = decode_request_header(payload, flexible=flexible)
    if api_key is ApiKey.API_VERSIONS:
        message, position = decode_request_body(payload, position, version)
        _check_end(payload, position)
        return ReceivedRequest(header, message)
    fields, position = SCHEMAS[api_key].request.read(payload, position, version)
    _check_end(payload, position)
    try:
        return ReceivedRequest(header, request_from_fields(api_key, fields))
    except OtherPartition as error:
        raise ForeignPartitionError(header, error.code) from error


def encode_answer(
    answer: Answer,
    header: RequestHeader,
    *,
    endpoints: Mapping[NodeId, Endpoint] = _NO_ENDPOINTS,
) -> bytes:
    """The frame of the answer to the request with this header, in the request's version.

    ``endpoints``: where voters listen; the answer names the leader's, so that the asker finds it.

    Raises:
        ValueError: the answer is not one to a request of that API.
    """
    api_key = _ANSWER_KEYS[type(answer)]
    if api_key != header.api_key:
        raise ValueError(f"{type(answer).__name__} does not answer API {header.api_key}")
    version = _known_version(api_key, header.api_version)
    parts = [encode_response_header(header.correlation_id, flexible=True)]
    SCHEMAS[api_key].response.write(answer_to_fields(answer, endpoints), version, parts)
    return frame(b"".join(parts))


def encode_api_versions(header: RequestHeader, serves: ApiVersionsAnswer | None = None) -> bytes:
    """The frame that answers an ApiVersions request, of whatever version it was.

    ``serves``: what to tell; None for what a node of the quorum serves.
    """
    supported = header.api_version in SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]
    version = header.api_version if supported else 0
    answer = (serves or own_versions()) if supported else unsupported_version()
    response_header = encode_response_header(header.correlation_id, flexible=False)
    return frame(response_header + encode_answer_body(answer, version))


def encode_refusal(header: RequestHeader, error: ErrorCode) -> bytes:
    """The frame that answers a quorum request with an error and nothing else.

    Raises:
        ValueError: the header is not one of a quorum request that we serve.
    """
    api_key = ApiKey(header.api_key)
    version = _known_version(api_key, header.api_version)
    parts = [encode_response_header(header.correlation_id, flexible=True)]
    SCHEMAS[api_key].response.write(refusal_to_fields(api_key, error), version, parts)
    return frame(b"".join(parts))


def decode_answer(payload: bytes, api_key: ApiKey, version: int) -> ReceivedAnswer:
    """The answer in a frame; the asker knows what it asked, the frame does not say.

    Raises:
        UnsupportedAnswerError: the answer says something that the quorum has no message for.
        WireError: it is malformed, or its records are corrupt.
    """
    flexible = api_key is not ApiKey.API_VERSIONS
    correlation_id, position = decode_response_header(payload, flexible=flexible)
    if api_key is ApiKey.API_VERSIONS:
        message, position = decode_answer_body(payload, position, version)
        _check_end(payload, position)
        return ReceivedAnswer(correlation_id, message)
    fields, position = SCHEMAS[api_key].response.read(payload, position, version)
    _check_end(payload, position)
    return ReceivedAnswer(correlation_id, answer_from_fields(api_key, fields))


def _known_version(api_key: ApiKey, version: int | None) -> int:
    versions = SUPPORTED_VERSIONS.get(api_key)
    if versions is not None and version is None:
        return versions.highest
    if version is None or versions is None or version not in versions:
        raise ValueError(f"{api_key.name} version {version} is not spoken here")
    return version


def _served(header: RequestHeader) -> ApiKey:
    """The API of a request that will be answered.

    Raises:
        UnsupportedApiError: it will not.
    """
    try:
        api_key = ApiKey(header.api_key)
        known = header.api_version in SUPPORTED_VERSIONS[api_key]
    except (KeyError, ValueError):
        raise UnsupportedApiError(header.api_key, header.api_version) from None
    if not known and api_key is not ApiKey.API_VERSIONS:
        raise UnsupportedApiError(header.api_key, header.api_version)
    return api_key


def _check_end(payload: bytes, position: int) -> None:
    if position != len(payload):
        raise WireError(f"{len(payload) - position} bytes follow the message")
