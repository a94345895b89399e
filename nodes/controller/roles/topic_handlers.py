"""Handlers by API for topics, their partitions' moves, configs and features."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.controller.basis.decisions import Handler
from splitbrain.nodes.controller.configs.alter_configs import (
    alter_configs,
    alter_configs_incrementally,
)
from splitbrain.nodes.controller.configs.describe_configs import describe_configs
from splitbrain.nodes.controller.configs.features import update_features
from splitbrain.nodes.controller.partitions.alter_reassignments import alter_reassignments
from splitbrain.nodes.controller.partitions.list_reassignments import list_reassignments
from splitbrain.nodes.controller.topics.create_partitions import create_partitions
from splitbrain.nodes.controller.topics.create_topics import create_topics
from splitbrain.nodes.controller.topics.delete_topics import delete_topics
from splitbrain.nodes.wire.apis import ApiKey

TOPIC_HANDLERS: Final[Mapping[ApiKey, Handler]] = MappingProxyType(
    {
        ApiKey.CREATE_TOPICS: create_topics,
        ApiKey.DELETE_TOPICS: delete_topics,
        ApiKey.CREATE_PARTITIONS: create_partitions,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: alter_configs_incrementally,
        ApiKey.ALTER_CONFIGS: alter_configs,
        ApiKey.DESCRIBE_CONFIGS: describe_configs,
        ApiKey.UPDATE_FEATURES: update_features,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_reassignments,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: list_reassignments,
    }
)
