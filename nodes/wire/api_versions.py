"""ApiVersions: what a peer asks first, to learn which requests it may send.

Its response always has header 0, and a request of a version that we do not know is answered in
version 0 with ``UNSUPPORTED_VERSION`` and the versions of ApiVersions itself, so that any two
releases can begin to talk. Versions up to 2 are not flexible and are written here by hand.

Source: KIP-511, KIP-584 (features); Kafka's ApiVersionsRequest and ApiVersionsResponse.
"""

import struct
from typing import Final

import msgspec

from nodes.quorum.messages import ErrorCode
from nodes.wire.apis import SUPPORTED_FEATURES, SUPPORTED_VERSIONS, ApiKey, VersionRange
from nodes.wire.codec import INT16, INT32, INT64, STRING, ArrayOf, Field, Fields, StructureOf
from nodes.wire.errors import WireError

#: First version whose messages (not response headers) are flexible.
FLEXIBLE_SINCE: Final = 3
#: First version that may tell a feature whose lowest level is 0.
_ZERO_LEVEL_SINCE: Final = 4
_THROTTLE_SINCE: Final = 1

_LEGACY_HEAD: Final = struct.Struct(">hi")
_LEGACY_RANGE: Final = struct.Struct(">hhh")
_THROTTLE: Final = struct.Struct(">i")


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


_REQUEST: Final = StructureOf(
    Field("client_software_name", STRING), Field("client_software_version", STRING)
)
_RANGE: Final = StructureOf(
    Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16)
)
_FEATURE: Final = StructureOf(
    Field("name", STRING), Field("min_version", INT16), Field("max_version", INT16)
)
_RESPONSE: Final = StructureOf(
    Field("error_code", INT16),
    Field("api_keys", ArrayOf(_RANGE)),
    Field("throttle_time_ms", INT32, default=0),
    Field("supported_features", ArrayOf(_FEATURE), default=[], tag=0),
    Field("finalized_features_epoch", INT64, default=-1, tag=1),
)


def own_versions() -> ApiVersionsAnswer:
    """What this node serves, from the table."""
    return ApiVersionsAnswer(
        error=ErrorCode.NONE,
        apis=tuple(
            (int(key), versions.lowest, versions.highest)
            for key, versions in sorted(SUPPORTED_VERSIONS.items())
        ),
        features=tuple(
            (name, levels.lowest, levels.highest) for name, levels in SUPPORTED_FEATURES.items()
        ),
    )


def unsupported_version() -> ApiVersionsAnswer:
    """The answer to an ApiVersions request of an unknown version; to be sent in version 0."""
    versions = SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]
    return ApiVersionsAnswer(
        error=ErrorCode.UNSUPPORTED_VERSION,
        apis=((int(ApiKey.API_VERSIONS), versions.lowest, versions.highest),),
        features=(),
    )


def common_version(answer: ApiVersionsAnswer, api_key: ApiKey) -> int | None:
    """Highest version of an API that the answering node and this one both speak; None if none."""
    own = SUPPORTED_VERSIONS[api_key]
    for key, lowest, highest in answer.apis:
        if key == api_key:
            shared = VersionRange(max(own.lowest, lowest), min(own.highest, highest))
            return shared.highest if shared.lowest <= shared.highest else None
    return None


def encode_request_body(request: ApiVersionsRequest, version: int) -> bytes:
    """The request without its header."""
    parts: list[bytes] = []
    if version >= FLEXIBLE_SINCE:
        fields = {
            "client_software_name": request.software_name,
            "client_software_version": request.software_version,
        }
        _REQUEST.write(fields, version, parts)
    return b"".join(parts)


def decode_request_body(
    frame: bytes, position: int, version: int
) -> tuple[ApiVersionsRequest, int]:
    """The request at ``position`` and the position after it.

    Raises:
        WireError: it is malformed.
    """
    if version < FLEXIBLE_SINCE:
        return ApiVersionsRequest(), position
    fields, position = _REQUEST.read(frame, position, version)
    request = ApiVersionsRequest(fields["client_software_name"], fields["client_software_version"])
    return request, position


def encode_answer_body(answer: ApiVersionsAnswer, version: int) -> bytes:
    """The response without its header."""
    if version < FLEXIBLE_SINCE:
        ranges = b"".join(_LEGACY_RANGE.pack(*entry) for entry in answer.apis)
        throttle = _THROTTLE.pack(0) if version >= _THROTTLE_SINCE else b""
        return _LEGACY_HEAD.pack(answer.error, len(answer.apis)) + ranges + throttle
    features = [
        {"name": name, "min_version": lowest, "max_version": highest}
        for name, lowest, highest in answer.features
        if lowest > 0 or version >= _ZERO_LEVEL_SINCE
    ]
    fields: Fields = {
        "error_code": answer.error,
        "api_keys": [
            {"api_key": key, "min_version": lowest, "max_version": highest}
            for key, lowest, highest in answer.apis
        ],
        "supported_features": features,
    }
    parts: list[bytes] = []
    _RESPONSE.write(fields, version, parts)
    return b"".join(parts)


def decode_answer_body(frame: bytes, position: int, version: int) -> tuple[ApiVersionsAnswer, int]:
    """The response at ``position`` and the position after it.

    Raises:
        WireError: it is malformed.
    """
    if version < FLEXIBLE_SINCE:
        try:
            return _decode_legacy_answer(frame, position, version)
        except struct.error as error:
            raise WireError("an ApiVersions response is cut short") from error
    fields, position = _RESPONSE.read(frame, position, version)
    answer = ApiVersionsAnswer(
        error=_error(fields["error_code"]),
        apis=tuple(
            (entry["api_key"], entry["min_version"], entry["max_version"])
            for entry in fields["api_keys"]
        ),
        features=tuple(
            (entry["name"], entry["min_version"], entry["max_version"])
            for entry in fields["supported_features"]
        ),
    )
    return answer, position


def _decode_legacy_answer(
    frame: bytes, position: int, version: int
) -> tuple[ApiVersionsAnswer, int]:
    code, count = _LEGACY_HEAD.unpack_from(frame, position)
    position += _LEGACY_HEAD.size
    if not 0 <= count * _LEGACY_RANGE.size <= len(frame) - position:
        raise WireError(f"an ApiVersions response announces {count} APIs")
    apis: list[tuple[int, int, int]] = []
    for _ in range(count):
        key, lowest, highest = _LEGACY_RANGE.unpack_from(frame, position)
        apis.append((key, lowest, highest))
        position += _LEGACY_RANGE.size
    if version >= _THROTTLE_SINCE:
        _THROTTLE.unpack_from(frame, position)
        position += _THROTTLE.size
    return ApiVersionsAnswer(_error(code), tuple(apis), ()), position


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
