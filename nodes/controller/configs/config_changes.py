"""Changes of one resource's configs as records, all of them or none.

An unchanged value makes no record, except for brokers, which read their files anew at it
(KAFKA-14136).

Source: a real controller's configuration control; KIP-339 (incremental changes).
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.decisions import bad_request
from splitbrain.nodes.controller.configs.broker_configs import BROKER_LISTS
from splitbrain.nodes.controller.configs.config_types import ConfigType, bad_config
from splitbrain.nodes.controller.configs.config_validation import (
    ResourceType,
    check_configs,
    check_resource_exists,
)
from splitbrain.nodes.controller.configs.topic_configs import TOPIC_CONFIGS
from splitbrain.nodes.metadata.image import ConfigResource, MetadataImage
from splitbrain.nodes.metadata.records import ConfigRecord

VALUE_LENGTH_MAX: Final = 32_767


class ConfigOperation(IntEnum):
    """Operation of a change, with the numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(msgspec.Struct, frozen=True):
    """One change of one config."""

    operation: ConfigOperation
    #: None removes a value that is set.
    value: str | None


def changed_configs(
    image: MetadataImage,
    resource: ConfigResource,
    changes: Mapping[str, ConfigChange],
    *,
    is_new: bool = False,
) -> tuple[ConfigRecord, ...]:
    """Records of these changes; ``is_new`` if the resource is yet to be made.

    Raises Refusal: a change is refused, and the others with it.
    """
    before = image.configs.get(resource, {})
    wanted = {
        name: _changed_value(resource, name, before.get(name), change)
        for name, change in changes.items()
    }
    return _records(image, resource, wanted, before, is_new=is_new)


def replaced_configs(
    image: MetadataImage, resource: ConfigResource, wanted: Mapping[str, str | None]
) -> tuple[ConfigRecord, ...]:
    """Records after which the resource has these configs and no others.

    Raises Refusal: a config is refused, and the others with it.
    """
    before = image.configs.get(resource, {})
    removed = {name: None for name in before if name not in wanted}
    return _records(image, resource, {**wanted, **removed}, before, is_new=False)


def _records(
    image: MetadataImage,
    resource: ConfigResource,
    wanted: Mapping[str, str | None],
    before: Mapping[str, str],
    *,
    is_new: bool,
) -> tuple[ConfigRecord, ...]:
    written = _written(resource, wanted, before)
    after = dict(before)
    for name, value in written.items():
        if value is None:
            after.pop(name, None)
        elif len(value) > VALUE_LENGTH_MAX:
            raise bad_config(
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {VALUE_LENGTH_MAX} bytes."
            )
        else:
            after[name] = value
    check_configs(resource, after, before)
    if not is_new:
        check_resource_exists(image, resource)
    return tuple(ConfigRecord(*resource, name, value) for name, value in written.items())


def _written(
    resource: ConfigResource, wanted: Mapping[str, str | None], before: Mapping[str, str]
) -> dict[str, str | None]:
    kind, _ = resource
    return {
        name: value
        for name, value in wanted.items()
        if value != before.get(name) or kind == ResourceType.BROKER
    }


def _changed_value(
    resource: ConfigResource, name: str, current: str | None, change: ConfigChange
) -> str | None:
    match change.operation:
        case ConfigOperation.SET:
            return change.value
        case ConfigOperation.DELETE:
            return None
        case _:
            return ",".join(_changed_list(resource, name, current, change))


def _changed_list(
    resource: ConfigResource, name: str, current: str | None, change: ConfigChange
) -> Iterable[str]:
    lists = _LISTS.get(resource[0], {})
    if name not in lists:
        raise bad_config(
            f"Can't {change.operation.name} to key {name} because its type is not LIST."
        )
    if change.value is None:
        raise bad_request(f"Null value not supported for : {name}")
    text = lists[name] if current is None else current
    items = [item for item in (text or "").split(",") if item]
    for item in _split(change.value):
        if change.operation is ConfigOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return items


def _split(text: str) -> list[str]:
    """Items of a list as Java splits it: without empty ones at the end, unless it is all empty."""
    items = text.split(",")
    while len(items) > 1 and not items[-1]:
        items.pop()
    return [] if text and items == [""] else items


#: Configs that can be appended to, with their defaults, by the resource's type. Kafka's controller
#: knows no others, so the lists of a client metrics subscription can only be set.
_LISTS: Final[Mapping[int, Mapping[str, str | None]]] = MappingProxyType(
    {
        ResourceType.TOPIC: {
            name: definition.default
            for name, definition in TOPIC_CONFIGS.items()
            if definition.type is ConfigType.LIST
        },
        ResourceType.BROKER: BROKER_LISTS,
    }
)
