"""Handlers by API; none of them raises a refusal.

DescribeCluster is not here: any controller answers it, from what is committed
(``nodes.controller.brokers.controllers.describe_cluster``).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from splitbrain.nodes.controller.basis.decisions import Decision, Handler, Refusal, View
from splitbrain.nodes.controller.brokers.controllers import register_controller
from splitbrain.nodes.controller.brokers.directories import assign_replicas
from splitbrain.nodes.controller.brokers.fencing import unregister_broker
from splitbrain.nodes.controller.brokers.heartbeats import heartbeat
from splitbrain.nodes.controller.brokers.producer_ids import allocate_producer_ids
from splitbrain.nodes.controller.brokers.registration import register_broker
from splitbrain.nodes.controller.configs.alter_configs import (
    alter_configs,
    alter_configs_incrementally,
)
from splitbrain.nodes.controller.configs.describe_configs import describe_configs
from splitbrain.nodes.controller.configs.features import update_features
from splitbrain.nodes.controller.partitions.alter_reassignments import alter_reassignments
from splitbrain.nodes.controller.partitions.isr_changes import alter_partitions
from splitbrain.nodes.controller.partitions.leader_elections import elect_leaders
from splitbrain.nodes.controller.partitions.list_reassignments import list_reassignments
from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.controller.topics.create_partitions import create_partitions
from splitbrain.nodes.controller.topics.create_topics import create_topics
from splitbrain.nodes.controller.topics.delete_topics import delete_topics
from splitbrain.nodes.wire.apis import ApiKey

_DECIDERS: Final[Mapping[ApiKey, Handler]] = MappingProxyType(
    {
        ApiKey.BROKER_REGISTRATION: register_broker,
        ApiKey.BROKER_HEARTBEAT: heartbeat,
        ApiKey.UNREGISTER_BROKER: unregister_broker,
        ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: assign_replicas,
        ApiKey.ALTER_PARTITION: alter_partitions,
        ApiKey.ELECT_LEADERS: elect_leaders,
        ApiKey.CONTROLLER_REGISTRATION: register_controller,
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


def _answering(api_key: ApiKey, decide: Handler) -> Handler:
    """Return the handler, with refusals as answers."""

    def handle(view: View, request: Any, version: int) -> Decision:
        try:
            return decide(view, request, version)
        except Refusal as refusal:
            return Decision(refuse(api_key, request, version, refusal.code, refusal.message))

    return handle


HANDLERS: Final[Mapping[ApiKey, Handler]] = MappingProxyType(
    {api_key: _answering(api_key, decide) for api_key, decide in _DECIDERS.items()}
)
