"""Configs that a resource may have, by its type.

A config that the controller accepts counts for the whole cluster; a broker's own it takes as
they are, since the broker checked them before it passed them on.

Source: a real controller's configuration validator.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from splitbrain.nodes.controller.basis.decisions import Refusal, bad_request
from splitbrain.nodes.controller.basis.topic_names import check_topic_name
from splitbrain.nodes.controller.configs.client_metrics_configs import check_client_metrics
from splitbrain.nodes.controller.configs.group_configs import check_group_configs
from splitbrain.nodes.controller.configs.topic_configs import check_topic_configs
from splitbrain.nodes.metadata.image import ConfigResource, MetadataImage
from splitbrain.nodes.wire.errors import ApiError

_INTEGER: Final = re.compile(r"[+-]?\d+")
_INT32_BOUND: Final = 1 << 31


class ResourceType(IntEnum):
    """Kinds of resources that have configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_configs(
    resource: ConfigResource, texts: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """Refuse configs that the resource may not have; ``before`` are those that it has.

    Raises Refusal: INVALID_CONFIG, or what is wrong with the resource's name.
    """
    kind, name = resource
    match kind:
        case ResourceType.TOPIC:
            if not name:
                raise bad_request("Default topic resources are not allowed.")
            check_topic_name(name)
            check_topic_configs(texts, before)
        case ResourceType.BROKER:
            _check_broker_name(name)
        case ResourceType.CLIENT_METRICS:
            check_client_metrics(name, texts)
        case ResourceType.GROUP:
            if not name:
                raise bad_request("Default group resources are not allowed.")
            check_group_configs(texts)
        case _:
            raise bad_request(f"Unknown resource type {kind}")


def check_resource_exists(image: MetadataImage, resource: ConfigResource) -> None:
    """Refuse configs of a topic or a node that is not there; other resources need not be.

    Raises Refusal: UNKNOWN_TOPIC_OR_PARTITION or BROKER_ID_NOT_REGISTERED.
    """
    kind, name = resource
    if kind == ResourceType.TOPIC and image.topics.named(name) is None:
        raise Refusal(ApiError.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == ResourceType.BROKER and name:
        node_id = int(name)
        if node_id not in image.brokers and node_id not in image.controllers:
            raise Refusal(ApiError.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def _check_broker_name(name: str) -> None:
    # No name stands for all brokers.
    if not name:
        return
    broker_id = int(name) if _INTEGER.fullmatch(name) else None
    if broker_id is None or not -_INT32_BOUND <= broker_id < _INT32_BOUND:
        raise bad_request("Unable to parse broker name as a base 10 number.")
    if broker_id < 0:
        raise bad_request("Invalid negative broker ID.")
