"""Handlers by API for requests of brokers, partitions and controllers.

DescribeCluster is not here: any controller answers it, from what is committed
(``nodes.controller.brokers.controllers.describe_cluster``).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.controller.basis.decisions import Decision, Handler, Refusal, View
from splitbrain.nodes.controller.brokers.controllers import answered_controller, register_controller
from splitbrain.nodes.controller.brokers.directories import answered_assignment, assign_replicas
from splitbrain.nodes.controller.brokers.fencing import answered_unregistration, unregister_broker
from splitbrain.nodes.controller.brokers.heartbeats import answered_heartbeat, heartbeat
from splitbrain.nodes.controller.brokers.producer_ids import (
    allocate_producer_ids,
    answered_producer_ids,
)
from splitbrain.nodes.controller.brokers.registration import answered_registration, register_broker
from splitbrain.nodes.controller.partitions.isr_changes import alter_partitions, answered_alteration
from splitbrain.nodes.controller.partitions.leader_elections import elect_leaders, refused_elections
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError

#: Makes the answer to a request of one API, in its version, that is refused as a whole.
Refuse = Callable[[Any, int, ApiError, str | None], msgspec.Struct]

#: Answer for controllers, which know by themselves who is active.
_WRONG_CONTROLLER: Final = "This is not the correct controller for this cluster."
#: For a host too, that has to say NOT_CONTROLLER.
BROKER_REFUSALS: Final[Mapping[ApiKey, Refuse]] = MappingProxyType(
    {
        ApiKey.BROKER_REGISTRATION: lambda _, __, code, ___: answered_registration(code),
        ApiKey.BROKER_HEARTBEAT: lambda _, __, code, ___: answered_heartbeat(code),
        ApiKey.UNREGISTER_BROKER: lambda _, __, code, text: answered_unregistration(code, text),
        ApiKey.ALLOCATE_PRODUCER_IDS: lambda _, __, code, ___: answered_producer_ids(code),
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda _, __, code, ___: answered_assignment(code),
        ApiKey.ALTER_PARTITION: lambda _, __, code, ___: answered_alteration(code),
        ApiKey.ELECT_LEADERS: refused_elections,
        ApiKey.CONTROLLER_REGISTRATION: lambda _, __, code, text: answered_controller(
            code, _WRONG_CONTROLLER if code is ApiError.NOT_CONTROLLER else text
        ),
    }
)

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
    }
)


def _answering(api_key: ApiKey, decide: Handler) -> Handler:
    """Return the handler, with refusals as answers: nothing is raised."""

    def handle(view: View, request: Any, version: int) -> Decision:
        try:
            return decide(view, request, version)
        except Refusal as refusal:
            refuse = BROKER_REFUSALS[api_key]
            return Decision(refuse(request, version, refusal.code, refusal.message))

    return handle


#: Handlers by API; none of them raises a refusal.
BROKER_HANDLERS: Final[Mapping[ApiKey, Handler]] = MappingProxyType(
    {api_key: _answering(api_key, decide) for api_key, decide in _DECIDERS.items()}
)
