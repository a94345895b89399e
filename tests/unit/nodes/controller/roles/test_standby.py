"""What a controller that is not active reads, and what it leaves to the one that is."""

import random

import msgspec
import pytest

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.roles.active import HANDLERS, Identity
from splitbrain.nodes.controller.roles.standby import read, wrong_controller
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import TABLES
from splitbrain.nodes.wire.families.configs import DescribeConfigsRequest, ResourceToDescribe
from splitbrain.nodes.wire.families.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.unit.nodes.controller.clusters import directory_of, image_with, partition, topic

A = "a0" * 16
IDENTITY = Identity(
    cluster_id="c", node_id=NodeId(2), settings=ControllerSettings(), random=random.Random(0)
)
IMAGE = image_with(topic("t", A, (1, 2)))
_READ = {ApiKey.DESCRIBE_CONFIGS, ApiKey.LIST_PARTITION_REASSIGNMENTS}


def test_configs_and_moves_are_read_from_what_is_committed() -> None:
    wanted = ResourceToDescribe(
        resource_type=2, resource_name="t", configuration_keys=("retention.ms",)
    )
    request = DescribeConfigsRequest(resources=(wanted,))
    answer = msgspec.to_builtins(read(IDENTITY, IMAGE, ApiKey.DESCRIBE_CONFIGS, request, 4))
    (result,) = answer["results"]
    assert [(each["name"], each["value"]) for each in result["configs"]] == [
        ("retention.ms", "604800000")
    ]
    moving = image_with(
        [
            topic("t", A)[0],
            partition(
                *(A, 0, (3, 1)),
                isr=(1,),
                adding_replicas=(3,),
                directories=(directory_of(3), directory_of(1)),
            ),
        ]
    )
    listed = ListPartitionReassignmentsRequest(topics=None)
    found = read(IDENTITY, moving, ApiKey.LIST_PARTITION_REASSIGNMENTS, listed, 0)
    assert isinstance(found, ListPartitionReassignmentsResponse)
    assert [each.name for each in found.topics] == ["t"]


@pytest.mark.parametrize("api_key", sorted(set(HANDLERS) - _READ))
def test_everything_else_is_the_active_controllers(api_key: ApiKey) -> None:
    # Not even looked at.
    assert (
        read(IDENTITY, IMAGE, api_key, msgspec.Struct(), TABLES[api_key].versions.highest) is None
    )


def test_whom_to_ask_is_said_as_far_as_it_is_known() -> None:
    assert wrong_controller(NodeId(3)) == "The active controller appears to be node 3."
    assert wrong_controller(None) == "No controller appears to be active."
