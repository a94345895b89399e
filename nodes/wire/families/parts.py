"""Structs that stand in messages of several families."""

from typing import Generic, TypeVar

import msgspec

from splitbrain.nodes.wire.declared import Int16, Int32, NullableString, String, Uint16, Uuid

P = TypeVar("P", bound=msgspec.Struct)


class NamedTopic(msgspec.Struct, Generic[P], frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, by its name."""

    name: String
    partitions: tuple[P, ...]


class IdentifiedTopic(msgspec.Struct, Generic[P], frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, by its id."""

    topic_id: Uuid
    partitions: tuple[P, ...]


class PartitionNumber(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A partition, and nothing else of it."""

    partition_index: Int32


class Listener(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Address of one of a node's listeners."""

    name: String
    host: String
    port: Uint16


class AdvertisedListener(msgspec.Struct, frozen=True, gc=False):
    """Where a broker or a controller can be reached; in requests and in records."""

    name: String
    host: String
    port: Uint16
    #: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    security_protocol: Int16


class SupportedFeature(msgspec.Struct, frozen=True, gc=False):
    """Levels of one feature that a broker or a controller can run with; in requests and records."""

    name: String
    min_supported_version: Int16
    max_supported_version: Int16


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One config as it shall be."""

    name: String
    value: NullableString


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Response that tells whether a request was carried out, or begins so."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
