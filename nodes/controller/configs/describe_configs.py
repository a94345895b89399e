"""DescribeConfigs as a controller answers it, which clients ask only of a controller itself.

Topics, client metrics subscriptions and groups are told whole, with defaults; of brokers what is
set for all of them. A single node's own configuration is in its file, so it is refused here: each
node of Kafka tells only its own. Documentation is never told.

Source: Kafka 4.3.1's ``ConfigHelper``; KIP-226 (synonyms), KIP-569 (types).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View, bad_request
from splitbrain.nodes.controller.basis.topic_names import check_topic_name
from splitbrain.nodes.controller.configs.broker_configs import DYNAMIC_BROKER_CONFIGS
from splitbrain.nodes.controller.configs.client_metrics_configs import CLIENT_METRICS_CONFIGS
from splitbrain.nodes.controller.configs.config_types import (
    ConfigDefinition,
    ConfigType,
    config_text,
    parse_config,
)
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.controller.configs.effective_configs import (
    ConfigSource,
    cluster_configs,
    effective_config,
    fallbacks,
)
from splitbrain.nodes.controller.configs.group_configs import GROUP_CONFIGS, GROUP_SYNONYMS
from splitbrain.nodes.controller.configs.topic_configs import SYNONYMS, TOPIC_CONFIGS
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.configs import (
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    ResourceToDescribe,
)

#: Topics' configs whose first synonym has no default of its own: another one's is converted.
_WITHOUT_BROKER_DEFAULT: Final = frozenset(
    {"segment.ms", "segment.jitter.ms", "flush.ms", "retention.ms"}
)
_INTEGER: Final = re.compile(r"[+-]?\d+")
#: Kafka's answer to any request that it cannot make sense of.
_NO_SUCH_TYPE: Final = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
#: Types whose values nobody is told; what is not known might be a password.
_SENSITIVE: Final = frozenset({ConfigType.PASSWORD, ConfigType.UNKNOWN})


def describe_configs(view: View, request: DescribeConfigsRequest, _version: int) -> Decision:
    """Decide about DescribeConfigs; it never writes."""
    resources = request.resources
    if any(each.resource_type not in frozenset(ResourceType) for each in resources):
        refusal = bad_request(_NO_SUCH_TYPE)
        results = tuple(_refused(each, refusal) for each in resources)
    else:
        with_synonyms = request.include_synonyms
        results = tuple(_described(view, each, with_synonyms=with_synonyms) for each in resources)
    return Decision(DescribeConfigsResponse(throttle_time_ms=0, results=results))


def _described(view: View, wanted: ResourceToDescribe, *, with_synonyms: bool) -> DescribedResource:
    try:
        configs = [
            config
            for config in _configs(view, wanted)
            if not wanted.configuration_keys or config.name in wanted.configuration_keys
        ]
    except Refusal as refusal:
        return _refused(wanted, refusal)
    if not with_synonyms:
        configs = [msgspec.structs.replace(each, synonyms=()) for each in configs]
    return _answer(wanted, ApiError.NONE, "", configs)


def _configs(view: View, wanted: ResourceToDescribe) -> Iterator[DescribedConfig]:
    """All configs of a resource; raises Refusal: it is not there, or cannot be told."""
    name = wanted.resource_name
    own = view.image.configs.get((wanted.resource_type, name), {})
    match wanted.resource_type:
        case ResourceType.TOPIC:
            check_topic_name(name)
            if view.image.topics.named(name) is None:
                raise Refusal(ApiError.UNKNOWN_TOPIC_OR_PARTITION)
            return _topic_configs(view, own)
        case ResourceType.BROKER:
            if not name:
                return _cluster_configs(own)
            if _INTEGER.fullmatch(name) is None:
                raise bad_request(f"Broker id must be an integer, but it is: {name}")
            raise bad_request(f"Unexpected broker id, expected empty string, but received {name}")
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise bad_request("Client metrics subscription name must not be empty")
            return _metrics_configs(own)
        case ResourceType.GROUP:
            if not name:
                raise bad_request("Group name must not be empty")
            return _group_configs(view, own)
        case _:
            raise bad_request("Levels of loggers are not told here")


def _topic_configs(view: View, own: Mapping[str, str]) -> Iterator[DescribedConfig]:
    for name, definition in sorted(TOPIC_CONFIGS.items()):
        if definition.is_internal and name not in own:
            continue
        text, source = effective_config(view.image, view.settings, own, name)
        value = _normal(definition, text)
        synonyms = tuple(_topic_synonyms(view, definition, value if name in own else None))
        yield _config(definition, value, source, synonyms)


def _topic_synonyms(
    view: View, definition: ConfigDefinition, own: str | None
) -> Iterator[ConfigSynonym]:
    """Where the value could come from, the nearest first."""
    name = definition.name
    if own is not None:
        yield ConfigSynonym(name=name, value=own, source=ConfigSource.TOPIC)
    synonyms = SYNONYMS.get(name, ())
    for synonym, text, source in fallbacks(view.image, view.settings, name):
        yield ConfigSynonym(name=synonym.name, value=text, source=source)
    if synonyms and name not in _WITHOUT_BROKER_DEFAULT:
        yield ConfigSynonym(
            name=synonyms[0].name,
            value=_normal(definition, definition.default),
            source=ConfigSource.DEFAULT,
        )


def _metrics_configs(own: Mapping[str, str]) -> Iterator[DescribedConfig]:
    """Brokers have no defaults for them."""
    for name, definition in sorted(CLIENT_METRICS_CONFIGS.items()):
        value = _normal(definition, own.get(name, definition.default))
        source = ConfigSource.CLIENT_METRICS
        synonyms = (ConfigSynonym(name=name, value=value, source=source),) if name in own else ()
        yield _config(definition, value, source if synonyms else ConfigSource.DEFAULT, synonyms)


def _group_configs(view: View, own: Mapping[str, str]) -> Iterator[DescribedConfig]:
    for name, definition in sorted(GROUP_CONFIGS.items()):
        value = _normal(definition, own.get(name, definition.default))
        synonyms = tuple(_group_synonyms(view, definition, value if name in own else None))
        yield _config(definition, value, ConfigSource(synonyms[0].source), synonyms)


def _group_synonyms(
    view: View, definition: ConfigDefinition, own: str | None
) -> Iterator[ConfigSynonym]:
    """Where the value could come from, the nearest first."""
    name = definition.name
    if own is not None:
        yield ConfigSynonym(name=name, value=own, source=ConfigSource.GROUP)
    default = GROUP_SYNONYMS.get(name, name)
    shared = cluster_configs(view.image)
    if default in shared:
        yield ConfigSynonym(name=default, value=shared[default], source=ConfigSource.ALL_BROKERS)
    value = _normal(definition, definition.default)
    yield ConfigSynonym(name=default, value=value, source=ConfigSource.DEFAULT)


def _cluster_configs(own: Mapping[str, str]) -> Iterator[DescribedConfig]:
    for name, text in sorted(own.items()):
        kind = DYNAMIC_BROKER_CONFIGS.get(name, ConfigType.UNKNOWN)
        is_sensitive = kind in _SENSITIVE
        value = None if is_sensitive else text
        source = ConfigSource.ALL_BROKERS
        yield DescribedConfig(
            name=name,
            value=value,
            read_only=name not in DYNAMIC_BROKER_CONFIGS,
            config_source=source,
            is_sensitive=is_sensitive,
            synonyms=(ConfigSynonym(name=name, value=value, source=source),),
            config_type=kind,
            documentation=None,
        )


def _normal(definition: ConfigDefinition, text: str | None) -> str | None:
    """Return the value as it is written once it was read."""
    if text is None:
        return None
    try:
        return config_text(parse_config(definition, text))
    except Refusal:
        # Set for all brokers, under a name that no controller checks.
        return text


def _config(
    definition: ConfigDefinition,
    value: str | None,
    source: ConfigSource,
    synonyms: tuple[ConfigSynonym, ...],
) -> DescribedConfig:
    return DescribedConfig(
        name=definition.name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=definition.type,
        documentation=None,
    )


def _refused(wanted: ResourceToDescribe, refusal: Refusal) -> DescribedResource:
    return _answer(wanted, refusal.code, refusal.message or "")


def _answer(
    wanted: ResourceToDescribe,
    code: ApiError,
    message: str,
    configs: Iterable[DescribedConfig] = (),
) -> DescribedResource:
    return DescribedResource(
        error_code=code,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
        configs=tuple(configs),
    )
