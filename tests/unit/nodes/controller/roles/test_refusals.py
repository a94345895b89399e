"""A whole request that is refused says so of every item that it names."""

from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.controllers import ControllerRegistrationRequest
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionToReassign,
    ReassignedPartition,
    ReassignedTopic,
    TopicToReassign,
)

_CODE = ApiError.NOT_CONTROLLER


def test_every_partition_that_should_move_is_told() -> None:
    request = AlterPartitionReassignmentsRequest(
        topics=(
            TopicToReassign(
                name="t", partitions=(PartitionToReassign(partition_index=3, replicas=(1,)),)
            ),
        )
    )
    answer = refuse(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 1, _CODE, "why")
    told = ReassignedPartition(partition_index=3, error_code=_CODE, error_message="why")
    assert answer == AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=_CODE,
        error_message="why",
        responses=(ReassignedTopic(name="t", partitions=(told,)),),
    )


def test_a_controller_is_not_told_who_is_active() -> None:
    request = ControllerRegistrationRequest(
        controller_id=1,
        incarnation_id="0" * 32,
        zk_migration_ready=False,
        listeners=(),
        features=(),
    )
    answer = refuse(ApiKey.CONTROLLER_REGISTRATION, request, 0, _CODE, "node 2")
    assert getattr(answer, "error_message", None) == (
        "This is not the correct controller for this cluster."
    )
    other = refuse(ApiKey.CONTROLLER_REGISTRATION, request, 0, ApiError.INVALID_REQUEST, "why")
    assert getattr(other, "error_message", None) == "why"
