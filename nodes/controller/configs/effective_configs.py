"""Configs in effect for a topic, and the source of each value.

The order: the topic's own; the default of all brokers, under the names that brokers give it;
the one this controller was started with; Kafka's default.

Source: a real controller's configuration schema; KIP-226 (synonyms).
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.configs.config_types import config_text, parse_config
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.controller.configs.topic_configs import (
    MIN_INSYNC_REPLICAS,
    SYNONYMS,
    TOPIC_CONFIGS,
)
from splitbrain.nodes.metadata.image import ConfigResource, MetadataImage

#: The resource whose configs count for all brokers.
ALL_BROKERS: Final[ConfigResource] = (ResourceType.BROKER, "")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ConfigSource(IntEnum):
    """Where a value comes from, with the numbers of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class EffectiveConfig(NamedTuple):
    """The value that counts."""

    #: None where nothing is set and there is no default.
    value: str | None
    source: ConfigSource


#: Every config that nobody set, as Kafka writes it.
_DEFAULTS: Final[Mapping[str, EffectiveConfig]] = MappingProxyType(
    {
        name: EffectiveConfig(
            None
            if definition.default is None
            else config_text(parse_config(definition, definition.default)),
            ConfigSource.DEFAULT,
        )
        for name, definition in TOPIC_CONFIGS.items()
    }
)


def cluster_configs(image: MetadataImage) -> Mapping[str, str]:
    """Return the configs of all brokers."""
    return image.configs.get(ALL_BROKERS, _NOTHING)


def static_configs(settings: ControllerSettings) -> Mapping[str, str]:
    """Return the configs this controller was started with, by the names that brokers give them."""
    if settings.min_insync_replicas == ControllerSettings().min_insync_replicas:
        return _NOTHING
    return {MIN_INSYNC_REPLICAS: str(settings.min_insync_replicas)}


def effective_configs(
    image: MetadataImage, settings: ControllerSettings, texts: Mapping[str, str]
) -> dict[str, EffectiveConfig]:
    """All configs of a topic with these of its own, sorted by name."""
    return {
        name: effective_config(image, settings, texts, name)
        for name, definition in sorted(TOPIC_CONFIGS.items())
        if not definition.is_internal or name in texts
    }


def effective_config(
    image: MetadataImage, settings: ControllerSettings, texts: Mapping[str, str], name: str
) -> EffectiveConfig:
    """One config of a topic with these of its own; ``name`` must be in the table."""
    if name in texts:
        return EffectiveConfig(texts[name], ConfigSource.TOPIC)
    for source, said in (
        (ConfigSource.ALL_BROKERS, cluster_configs(image)),
        (ConfigSource.STATIC, static_configs(settings)),
    ):
        for synonym in SYNONYMS.get(name, ()):
            if synonym.name in said:
                return EffectiveConfig(synonym.converted(said[synonym.name]), source)
    return _DEFAULTS[name]
