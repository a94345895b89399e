"""Controllers among themselves: where each is reached, and who they are to a client that asks.

Source: KIP-919.
"""

from typing import Final

from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.brokers.endpoints import record_endpoints
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import RegisterControllerRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedNode,
)
from splitbrain.nodes.wire.families.controllers import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

#: Types of endpoints.
BROKERS: Final = 1
CONTROLLERS: Final = 2
#: Bits of what may be done to a cluster where everybody may do everything: create, alter, describe,
#: act as a broker, describe and alter configs, write idempotently.
_ALL_OPERATIONS: Final = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
#: Nobody asked what may be done.
NOT_ASKED: Final = -(1 << 31)


def register_controller(
    _view: View, request: ControllerRegistrationRequest, _version: int
) -> Decision:
    """Where the controller is reached, as of now; nobody else's word is looked at.

    Raises Refusal: it names a listener that cannot be.
    """
    record = RegisterControllerRecord(
        request.controller_id,
        request.incarnation_id,
        False,
        record_endpoints(request.listeners),
        request.features,
    )
    answer = ControllerRegistrationResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, error_message=""
    )
    return Decision(answer, (record,))


def describe_cluster(
    request: DescribeClusterRequest,
    version: int,
    *,
    image: MetadataImage,
    cluster_id: str,
    listener: str,
    leader_id: int | None,
) -> DescribeClusterResponse:
    """Return the controllers that are reached on the listener that the request came on.

    Any controller answers, from an image of what is committed. Brokers are not told here: those
    are asked of brokers. A leader that has not registered is not named.
    """
    if request.endpoint_type != CONTROLLERS:
        problem = f"Unsupported endpoint type {request.endpoint_type}"
        if request.endpoint_type == BROKERS:
            problem = (
                "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint "
                "of type BROKER"
            )
        return wrong_endpoint(request, version, BROKERS, problem)
    nodes = [
        DescribedNode(broker_id=controller_id, host=end_point.host, port=end_point.port)
        for controller_id, controller in sorted(image.controllers.items())
        for end_point in controller.end_points
        if end_point.name == listener
    ]
    is_known = any(node.broker_id == leader_id for node in nodes)
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        endpoint_type=CONTROLLERS,
        cluster_id=cluster_id,
        controller_id=leader_id if is_known and leader_id is not None else -1,
        brokers=tuple(nodes),
        cluster_authorized_operations=cluster_operations(
            wanted=request.include_cluster_authorized_operations
        ),
    )


def cluster_operations(*, wanted: bool) -> int:
    """Return the bits of what may be done to the cluster, if they are wanted."""
    return _ALL_OPERATIONS if wanted else NOT_ASKED


def wrong_endpoint(
    request: DescribeClusterRequest, version: int, other_type: int, problem: str
) -> DescribeClusterResponse:
    """Return the answer at an endpoint of another type than is wanted."""
    if version == 0:
        # It cannot ask for another type, and has no code that says so.
        code = ApiError.INVALID_REQUEST
    elif request.endpoint_type == other_type:
        code = ApiError.MISMATCHED_ENDPOINT_TYPE
    else:
        code = ApiError.UNSUPPORTED_ENDPOINT_TYPE
    return DescribeClusterResponse(
        throttle_time_ms=0, error_code=code, error_message=problem, cluster_id="", brokers=()
    )
