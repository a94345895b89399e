"""Configs of topics and brokers: DescribeConfigs, IncrementalAlterConfigs, AlterConfigs.

Source: Kafka 4.3's message definitions; KIP-133, KIP-226 (synonyms), KIP-339 (incremental),
KIP-569 (types and documentation).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Boolean,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    since,
)
from splitbrain.nodes.wire.families.parts import ConfigValue


class ResourceToDescribe(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A resource whose configs are asked for."""

    #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    resource_type: Int8
    resource_name: String
    #: Null for all of them.
    configuration_keys: tuple[String, ...] | None


class DescribeConfigsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for configs."""

    resources: tuple[ResourceToDescribe, ...]
    include_synonyms: Boolean = False
    include_documentation: Annotated[Boolean, since(3)] = False


class ConfigSynonym(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a config's value could also come from."""

    name: String
    value: NullableString
    #: As ``DescribedConfig.config_source``.
    source: Int8


class DescribedConfig(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One config of a resource."""

    name: String
    value: NullableString
    read_only: Boolean
    #: 1 topic, 2 broker, 3 all brokers, 4 static, 5 default, 6 logger, 7 metrics, 8 group.
    config_source: Int8 = -1
    is_sensitive: Boolean
    synonyms: tuple[ConfigSynonym, ...]
    config_type: Annotated[Int8, since(3), IGNORABLE] = 0
    documentation: Annotated[NullableString, since(3), IGNORABLE] = ""


class DescribedResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The configs of one resource, or why they are not told."""

    error_code: Int16
    error_message: NullableString
    #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    resource_type: Int8
    resource_name: String
    configs: tuple[DescribedConfig, ...]


class DescribeConfigsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The configs that were asked for."""

    throttle_time_ms: Int32
    results: tuple[DescribedResource, ...]


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change of one config."""

    name: String
    #: 0 set, 1 delete, 2 append, 3 subtract.
    config_operation: Int8
    value: NullableString


class ResourceToChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Changes of one resource's configs; they happen together or not at all."""

    #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    resource_type: Int8
    resource_name: String
    configs: tuple[ConfigChange, ...]


class IncrementalAlterConfigsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Changes single configs and leaves the others as they are."""

    resources: tuple[ResourceToChange, ...]
    validate_only: Boolean


class AlteredResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one resource."""

    error_code: Int16
    error_message: NullableString
    #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for each resource."""

    throttle_time_ms: Int32
    responses: tuple[AlteredResource, ...]


class ResourceToSet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All configs that one resource shall have; others are removed."""

    #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    resource_type: Int8
    resource_name: String
    configs: tuple[ConfigValue, ...]


class AlterConfigsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Replaces all configs of resources."""

    resources: tuple[ResourceToSet, ...]
    validate_only: Boolean


class AlterConfigsResponse(IncrementalAlterConfigsResponse, frozen=True, kw_only=True, gc=False):
    """Results for each resource."""
