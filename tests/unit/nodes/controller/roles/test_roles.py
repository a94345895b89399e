"""Writes of a new leader, reads of a standby, and refusals of whole requests."""

import random
from typing import Any

import msgspec
import pytest

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.roles.active import ActiveController, Identity
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.controller.roles.standby import read, wrong_controller
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import image_after
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.transactions import MetadataBatch, TransactionBuffer
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import TABLES, encode_reply
from splitbrain.nodes.wire.controller_apis import CONTROLLER_VERSIONS, PINNED_LEVELS
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.configs import DescribeConfigsRequest, ResourceToDescribe
from splitbrain.nodes.wire.families.controllers import ControllerRegistrationRequest
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionsToElect,
    PartitionToReassign,
    ReassignedPartition,
    ReassignedTopic,
    TopicToReassign,
)
from tests.unit.nodes.controller.clusters import directory_of, image_with, partition, topic

BOOTSTRAP = (
    records.BeginTransactionRecord("Bootstrap records"),
    records.FeatureLevelRecord("metadata.version", 30),
    records.FeatureLevelRecord("group.version", 1),
    records.FeatureLevelRecord("share.version", 1),
    records.FeatureLevelRecord("streams.version", 1),
    records.FeatureLevelRecord("transaction.version", 2),
    records.EndTransactionRecord(),
)
ABORT = records.AbortTransactionRecord("Controller failover")


def batch(base_offset: int, *some: records.MetadataRecord) -> MetadataBatch:
    return MetadataBatch(
        Offset(base_offset), Offset(base_offset + len(some) - 1), Epoch(1), 1000, some
    )


IDENTITY = Identity(
    cluster_id="c", node_id=NodeId(2), settings=ControllerSettings(), random=random.Random(0)
)


def activation(image: MetadataImage, transaction_opened_at: Offset | None) -> tuple[Any, ...]:
    active = ActiveController(IDENTITY, image, Epoch(1), Microseconds(0))
    return tuple(active.activation(transaction_opened_at))


@pytest.mark.parametrize(
    ("image", "opened_at", "written"),
    [
        (MetadataImage(), None, BOOTSTRAP),
        (MetadataImage(), Offset(3), (ABORT, *BOOTSTRAP)),
        (image_with([]), None, ()),
        (image_with([]), Offset(7), (ABORT,)),
    ],
    ids=["an empty log", "a bootstrap that was cut off", "a whole log", "an open transaction"],
)
def test_a_new_leader_writes_the_pinned_levels_once_and_aborts_what_is_open(
    image: MetadataImage, opened_at: Offset | None, written: tuple[Any, ...]
) -> None:
    assert activation(image, opened_at) == written


def test_the_image_holds_the_levels_after_a_bootstrap_in_two_attempts() -> None:
    buffer = TransactionBuffer()
    assert not buffer.add(batch(0, *BOOTSTRAP[:3]))
    image = MetadataImage()
    for settled in buffer.add(batch(3, *activation(image, buffer.opened_at))):
        image = image_after(image, settled)
    in_use = {
        name: level for name, level in PINNED_LEVELS.items() if level and name != "kraft.version"
    }
    assert image.features == in_use
    assert activation(image, buffer.opened_at) == ()


ELECTION = ElectLeadersRequest(topic_partitions=(PartitionsToElect(topic="t", partitions=(0, 1)),))


def test_every_handler_is_of_an_api_that_controllers_serve() -> None:
    assert HANDLERS.keys() <= CONTROLLER_VERSIONS.keys()


@pytest.mark.parametrize(
    "api_key",
    [
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ELECT_LEADERS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.UPDATE_FEATURES,
    ],
)
def test_a_refusal_can_be_said_in_every_version(api_key: ApiKey) -> None:
    table = TABLES[api_key]
    for version in range(table.versions.lowest, table.versions.highest + 1):
        answer = refuse(api_key, ELECTION, version, ApiError.NOT_CONTROLLER, "another leads")
        assert type(answer) is table.response
        assert encode_reply(answer, RequestHeader(api_key, version, 1, None))


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
    outcome = ReassignedPartition(partition_index=3, error_code=_CODE, error_message="why")
    assert answer == AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=_CODE,
        error_message="why",
        responses=(ReassignedTopic(name="t", partitions=(outcome,)),),
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


A = "a0" * 16
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
