"""ControllerRegistration and DescribeCluster."""

from typing import Any

import pytest

from splitbrain.nodes.controller.brokers.controllers import describe_cluster
from splitbrain.nodes.metadata.records import (
    AdvertisedListener,
    RegisterControllerRecord,
    SupportedFeature,
)
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import encode_reply
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import DescribeClusterRequest
from splitbrain.nodes.wire.families.controllers import ControllerRegistrationRequest
from tests.unit.nodes.controller.led_cluster import (
    CLUSTER_ID,
    Cluster,
    feature,
    incarnation,
    listener,
)


def register(cluster: Cluster, controller_id: int, **fields: Any) -> Any:
    whole: dict[str, Any] = {
        "controller_id": controller_id,
        "incarnation_id": incarnation(controller_id),
        "zk_migration_ready": True,
        "listeners": (listener(name="CONTROLLER", port=9000 + controller_id),),
        "features": (feature("kraft.version", 0, 1),),
    }
    request = ControllerRegistrationRequest(**(whole | fields))
    return cluster.ask(ApiKey.CONTROLLER_REGISTRATION, request)


def described(cluster: Cluster, version: int = 2, leader_id: int | None = 3, **fields: Any) -> Any:
    whole: dict[str, Any] = {"include_cluster_authorized_operations": False, "endpoint_type": 2}
    answer = describe_cluster(
        DescribeClusterRequest(**(whole | fields)),
        version,
        image=cluster.image,
        cluster_id=CLUSTER_ID,
        listener="CONTROLLER",
        leader_id=leader_id,
    )
    # The version that asks can be answered in.
    assert encode_reply(answer, RequestHeader(ApiKey.DESCRIBE_CLUSTER, version, 1, None))
    return answer


def test_a_controller_says_where_it_is_as_often_as_it_likes() -> None:
    cluster = Cluster()
    for _ in range(2):
        answer = register(cluster, 3)
        assert (answer.error_code, answer.error_message) == (ApiError.NONE, "")
        assert cluster.log[-1] == RegisterControllerRecord(
            3,
            incarnation(3),
            False,
            (AdvertisedListener("CONTROLLER", "127.0.0.1", 9003, 0),),
            (SupportedFeature("kraft.version", 0, 1),),
        )


def test_a_listener_that_cannot_be_is_refused() -> None:
    cluster = Cluster()
    answer = register(cluster, 3, listeners=(listener(port=0),))
    assert answer.error_code == ApiError.UNKNOWN_SERVER_ERROR
    assert not cluster.image.controllers


def test_controllers_are_told_that_are_reached_on_the_listener() -> None:
    cluster = Cluster()
    register(cluster, 4)
    register(cluster, 3)
    register(cluster, 5, listeners=(listener(name="OTHER"),))
    answer = described(cluster)
    assert (answer.error_code, answer.endpoint_type, answer.cluster_id) == (0, 2, CLUSTER_ID)
    assert [(each.broker_id, each.port) for each in answer.brokers] == [(3, 9003), (4, 9004)]
    assert answer.controller_id == 3
    assert answer.cluster_authorized_operations == -(1 << 31)


@pytest.mark.parametrize("leader_id", [None, 5, 6])
def test_a_leader_that_is_not_reached_on_the_listener_is_not_named(leader_id: int | None) -> None:
    cluster = Cluster()
    register(cluster, 3)
    register(cluster, 5, listeners=(listener(name="OTHER"),))
    assert described(cluster, leader_id=leader_id).controller_id == -1


def test_everybody_may_do_everything() -> None:
    answer = described(Cluster(), include_cluster_authorized_operations=True)
    # As a real controller without an authorizer says it.
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("version", "endpoint_type", "code"),
    [
        (0, 1, ApiError.INVALID_REQUEST),
        (1, 1, ApiError.MISMATCHED_ENDPOINT_TYPE),
        (2, 1, ApiError.MISMATCHED_ENDPOINT_TYPE),
        (1, 3, ApiError.UNSUPPORTED_ENDPOINT_TYPE),
        (2, 0, ApiError.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_brokers_are_not_told_here(version: int, endpoint_type: int, code: ApiError) -> None:
    problems = {
        1: "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of "
        "type BROKER",
        3: "Unsupported endpoint type 3",
        0: "Unsupported endpoint type 0",
    }
    answer = described(Cluster(), version, endpoint_type=endpoint_type)
    assert answer.error_code == code
    assert answer.error_message == problems[endpoint_type]
    assert answer.brokers == ()
