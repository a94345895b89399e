"""What a node serves: ApiVersions.

Source: Kafka 4.3's message definitions; KIP-511, KIP-584 (features).
"""

from typing import Annotated

import msgspec

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
    """The level of one feature that the cluster runs with."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the node serves and could run with, and what the cluster runs with."""

    error_code: Int16
    api_keys: tuple[ServedApi, ...]
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], since(3), tag(0), IGNORABLE] = ()
    #: Offset of the metadata that ``finalized_features`` is from; -1 where it is not known.
    finalized_features_epoch: Annotated[Int64, since(3), tag(1), IGNORABLE] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], since(3), tag(2), IGNORABLE] = ()
    zk_migration_ready: Annotated[Boolean, since(3), tag(3), IGNORABLE] = False
