"""ApiVersions: what a peer asks first, to learn which requests it may send, and in which version.

A request of a version that we do not know is answered in version 0, with ``UNSUPPORTED_VERSION``
and the versions of ApiVersions itself, so that any two releases can begin to talk.

Source: Kafka 4.3's message definitions; KIP-511, KIP-584 (features).
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.apis import SUPPORTED_FEATURES, SUPPORTED_VERSIONS, ApiKey, VersionRange
from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Boolean,
    Int16,
    Int32,
    Int64,
    String,
    since,
    tag,
)
from splitbrain.nodes.wire.errors import NoCommonVersionError

#: First version that may tell a feature whose lowest level is 0.
_ZERO_LEVEL_SINCE: Final = 4
_NO_FEATURES: Final[Mapping[str, int]] = MappingProxyType({})


class ApiVersionsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks what the receiver serves; who asks is for its logs only."""

    client_software_name: Annotated[String, since(3), IGNORABLE] = ""
    client_software_version: Annotated[String, since(3), IGNORABLE] = ""


class ServedApi(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Versions of one API, both ends included."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Levels of one feature that the node can run with."""

    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The level of one feature that the cluster runs with; one of level 0 is left out."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """APIs and features of the node, and the levels that the cluster runs with."""

    error_code: Int16
    api_keys: tuple[ServedApi, ...]
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], since(3), tag(0), IGNORABLE] = ()
    #: Offset of the metadata that ``finalized_features`` is from; -1 where it is not known.
    finalized_features_epoch: Annotated[Int64, since(3), tag(1), IGNORABLE] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], since(3), tag(2), IGNORABLE] = ()
    zk_migration_ready: Annotated[Boolean, since(3), tag(3), IGNORABLE] = False

    def versions(self) -> dict[int, VersionRange]:
        """Served versions by API key."""
        return {
            api.api_key: VersionRange(api.min_version, api.max_version) for api in self.api_keys
        }

    def for_version(self, version: int) -> "ApiVersionsResponse":
        """Return the response without the features that a version may not tell."""
        if version >= _ZERO_LEVEL_SINCE:
            return self
        features = tuple(feature for feature in self.supported_features if feature.min_version > 0)
        return msgspec.structs.replace(self, supported_features=features)


def served_versions(
    versions: Mapping[ApiKey, VersionRange],
    features: Mapping[str, VersionRange],
    finalized: Mapping[str, int] = _NO_FEATURES,
    finalized_offset: int = -1,
    *,
    error: ErrorCode = ErrorCode.NONE,
) -> ApiVersionsResponse:
    """Return the answer of a node that serves these versions and runs with these levels."""
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ServedApi(api_key=int(key), min_version=lowest, max_version=highest)
            for key, (lowest, highest) in sorted(versions.items())
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in features.items()
        ),
        finalized_features_epoch=finalized_offset,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
            if level > 0
        ),
    )


@cache
def own_versions() -> ApiVersionsResponse:
    """Return the APIs that a node of the quorum serves now, from the table."""
    return served_versions(SUPPORTED_VERSIONS, SUPPORTED_FEATURES)


def unsupported_version() -> ApiVersionsResponse:
    """The answer to an ApiVersions request of an unknown version; to be sent in version 0."""
    own = {ApiKey.API_VERSIONS: SUPPORTED_VERSIONS[ApiKey.API_VERSIONS]}
    return served_versions(own, {}, error=ErrorCode.UNSUPPORTED_VERSION)


def choose_version(answer: ApiVersionsResponse, api_key: ApiKey, own: VersionRange) -> int:
    """Highest version of an API that both nodes speak; raises NoCommonVersionError."""
    for api in answer.api_keys:
        if api.api_key == api_key:
            if max(own.lowest, api.min_version) > min(own.highest, api.max_version):
                theirs = (api.min_version, api.max_version)
                raise NoCommonVersionError(api_key, (own.lowest, own.highest), theirs)
            return min(own.highest, api.max_version)
    raise NoCommonVersionError(api_key, (own.lowest, own.highest), None)
