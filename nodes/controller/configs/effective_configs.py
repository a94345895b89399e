"""Configs in effect for a topic, and the source of each value.

The order: the topic's own; the default of all brokers, under the names that brokers give it;
the one this controller was started with; Kafka's default.

Source: a real controller's configuration schema; KIP-226 (synonyms).
"""

from collections.abc import Iterator, Mapping
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
    Synonym,
)
from splitbrain.nodes.metadata.image import ConfigResource, MetadataImage

#: The resource whose configs count for all brokers.
ALL_BROKERS: Final[ConfigResource] = (ResourceType.BROKER, "")


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
    return image.configs.get(ALL_BROKERS, {})


def fallbacks(
    image: MetadataImage, settings: ControllerSettings, name: str
) -> Iterator[tuple[Synonym, str, ConfigSource]]:
    """Values set for a topic's config under the names that brokers give it, the nearest first."""
    own = settings.min_insync_replicas
    is_set = own != ControllerSettings().min_insync_replicas
    static = {MIN_INSYNC_REPLICAS: str(own)} if is_set else {}
    for source, texts in (
        (ConfigSource.ALL_BROKERS, cluster_configs(image)),
        (ConfigSource.STATIC, static),
    ):
        for synonym in SYNONYMS.get(name, ()):
            if synonym.name in texts:
                yield synonym, texts[synonym.name], source


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
    for synonym, text, source in fallbacks(image, settings, name):
        return EffectiveConfig(synonym.converted(text), source)
    return _DEFAULTS[name]
