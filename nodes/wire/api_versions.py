"""ApiVersions: what a peer asks first, to learn which requests it may send, and in which version.

Its response always has header 0, and a request of a version that we do not know is answered in
version 0 with ``UNSUPPORTED_VERSION`` and the versions of ApiVersions itself, so that any two
releases can begin to talk.

Source: KIP-511, KIP-584 (features); Kafka's ApiVersionsRequest and ApiVersionsResponse.
"""

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.apis import SUPPORTED_FEATURES, SUPPORTED_VERSIONS, ApiKey, VersionRange
from splitbrain.nodes.wire.declared import kind_of
from splitbrain.nodes.wire.errors import NoCommonVersionError
from splitbrain.nodes.wire.families import api_versions as family

#: First version whose messages (not response headers) are flexible.
FLEXIBLE_SINCE: Final = 3
#: First version that may tell a feature whose lowest level is 0.
_ZERO_LEVEL_SINCE: Final = 4
_NO_FEATURES: Final[Mapping[str, int]] = MappingProxyType({})


class ApiVersionsRequest(msgspec.Struct, frozen=True):
    """Asks what the receiver serves; who asks is for its logs only."""

    software_name: str = ""
    software_version: str = ""


class ApiVersionsAnswer(msgspec.Struct, frozen=True):
    """What a node serves."""

    error: ErrorCode
    #: API key, lowest and highest version.
    apis: tuple[tuple[int, int, int], ...]
    #: Feature, lowest and highest level that the node could run with.
    features: tuple[tuple[str, int, int], ...]
    #: Feature and the level that the cluster runs with; one of level 0 is left out.
    finalized: tuple[tuple[str, int], ...] = ()
    #: Offset of the metadata that ``finalized`` is from; -1 where it is not known.
    finalized_offset: int = -1


def served_versions(
    versions: Mapping[ApiKey, VersionRange],
    features: Mapping[str, VersionRange],
    finalized: Mapping[str, int] = _NO_FEATURES,
    finalized_offset: int = -1,
) -> ApiVersionsAnswer:
    """The answer of a node that serves these versions and runs with these levels."""
    return ApiVersionsAnswer(
        error=ErrorCode.NONE,
        apis=tuple(
            (int(key), lowest, highest) for key, (lowest, highest) in sorted(versions.items())
        ),
        features=tuple((name, levels.lowest, levels.highest) for name, levels in features.items()),
        finalized=tuple((name, level) for name, level in finalized.items() if level > 0),
        finalized_offset=finalized_offset,
    )


def own_versions() -> ApiVersionsAnswer:
    """What a node of the quorum serves now, from the table."""
    return served_versions(SUPPORTED_VERSIONS, SUPPORTED_FEATURES)


def unsupported_version() -> ApiVersionsAnswer:
    """The answer to an ApiVersions request of an unknown version; to be sent in version 0."""
    versions = SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]
    return ApiVersionsAnswer(
        error=ErrorCode.UNSUPPORTED_VERSION,
        apis=((int(ApiKey.API_VERSIONS), versions.lowest, versions.highest),),
        features=(),
    )


def choose_version(answer: ApiVersionsAnswer, api_key: ApiKey, own: VersionRange) -> int:
    """Highest version of an API that the answering node and we both speak.

    Raises:
        NoCommonVersionError: there is none, or the node does not serve the API.
    """
    for key, lowest, highest in answer.apis:
        if key == api_key:
            if max(own.lowest, lowest) > min(own.highest, highest):
                raise NoCommonVersionError(api_key, (own.lowest, own.highest), (lowest, highest))
            return min(own.highest, highest)
    raise NoCommonVersionError(api_key, (own.lowest, own.highest), None)


def encode_request_body(request: ApiVersionsRequest, version: int) -> bytes:
    """The request without its header."""
    parts: list[bytes] = []
    message = family.ApiVersionsRequest(
        client_software_name=request.software_name,
        client_software_version=request.software_version,
    )
    kind_of(family.ApiVersionsRequest, flexible=version >= FLEXIBLE_SINCE).write(
        message, version, parts
    )
    return b"".join(parts)


def decode_request_body(
    frame: bytes, position: int, version: int
) -> tuple[ApiVersionsRequest, int]:
    """The request at ``position`` and the position after it.

    Raises:
        WireError: it is malformed.
    """
    kind = kind_of(family.ApiVersionsRequest, flexible=version >= FLEXIBLE_SINCE)
    message, position = kind.read(frame, position, version)
    request = ApiVersionsRequest(message.client_software_name, message.client_software_version)
    return request, position


def encode_answer_body(answer: ApiVersionsAnswer, version: int) -> bytes:
    """The response without its header."""
    message = family.ApiVersionsResponse(
        error_code=answer.error,
        api_keys=tuple(
            family.ServedApi(api_key=key, min_version=lowest, max_version=highest)
            for key, lowest, highest in answer.apis
        ),
        supported_features=tuple(
            family.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, lowest, highest in answer.features
            if lowest > 0 or version >= _ZERO_LEVEL_SINCE
        ),
        finalized_features_epoch=answer.finalized_offset,
        finalized_features=tuple(
            family.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in answer.finalized
        ),
    )
    parts: list[bytes] = []
    kind_of(family.ApiVersionsResponse, flexible=version >= FLEXIBLE_SINCE).write(
        message, version, parts
    )
    return b"".join(parts)


def decode_answer_body(frame: bytes, position: int, version: int) -> tuple[ApiVersionsAnswer, int]:
    """The response at ``position`` and the position after it.

    A node that does not know the version of the request says so in version 0.

    Raises:
        WireError: it is malformed.
    """
    if frame[position : position + _CODE.size] == _UNSUPPORTED:
        version = 0
    kind = kind_of(family.ApiVersionsResponse, flexible=version >= FLEXIBLE_SINCE)
    message, position = kind.read(frame, position, version)
    answer = ApiVersionsAnswer(
        error=_error(message.error_code),
        apis=tuple(
            (entry.api_key, entry.min_version, entry.max_version) for entry in message.api_keys
        ),
        features=tuple(
            (entry.name, entry.min_version, entry.max_version)
            for entry in message.supported_features
        ),
        finalized=tuple(
            (entry.name, entry.max_version_level) for entry in message.finalized_features
        ),
        finalized_offset=message.finalized_features_epoch,
    )
    return answer, position


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


_CODE: Final = struct.Struct(">h")
_UNSUPPORTED: Final = _CODE.pack(ErrorCode.UNSUPPORTED_VERSION)
