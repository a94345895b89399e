"""DescribeCluster as a broker answers it: brokers, and one of them in the controller's place.

Controllers are told by controllers (``nodes.controller.brokers.controllers.describe_cluster``).

Source: KIP-700, KIP-919, KIP-1073; Kafka 4.3.1's AuthHelper and KafkaApis.
"""

from typing import Final

from splitbrain.nodes.broker.asking import ALL_CLUSTER_OPERATIONS, NOT_ASKED, Asking
from splitbrain.nodes.broker.listed_nodes import NOBODY, brokers_on, some_alive_broker
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedNode,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def answer_cluster(
    asking: Asking, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    """Return the brokers that have the listener; fenced ones only if wanted."""
    if request.endpoint_type != _BROKERS:
        return _foreign(request, version)
    nodes = tuple(
        DescribedNode(
            broker_id=broker.broker_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker, endpoint in brokers_on(
            asking.image, asking.listener, fenced_too=request.include_fenced_brokers
        )
    )
    controller_id = some_alive_broker(asking.image, asking.random)
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        endpoint_type=_BROKERS,
        cluster_id=asking.cluster_id,
        # A broker without the listener may be drawn; it is not named then.
        controller_id=controller_id
        if any(node.broker_id == controller_id for node in nodes)
        else NOBODY,
        brokers=nodes,
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )


def _foreign(request: DescribeClusterRequest, version: int) -> DescribeClusterResponse:
    if version == 0:
        # It cannot ask for another type, and has no code that says so.
        code = ApiError.INVALID_REQUEST
    elif request.endpoint_type == _CONTROLLERS:
        code = ApiError.MISMATCHED_ENDPOINT_TYPE
    else:
        code = ApiError.UNSUPPORTED_ENDPOINT_TYPE
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=f"this is a broker's endpoint, not one of type {request.endpoint_type}",
        cluster_id="",
        brokers=(),
    )
