"""AssignReplicasToDirs, and what is known of directories."""

from typing import Any

import pytest

from splitbrain.nodes.controller.basis.registrations import (
    default_directory,
    is_online,
    is_reserved,
)
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.partitions import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import brokers
from tests.unit.nodes.controller.led_cluster import TOPIC_ID, Cluster, changed, directory


def decided(cluster: Cluster, *assigned: tuple[str, str, tuple[int, ...]], **fields: Any) -> Any:
    whole: dict[str, Any] = {
        "broker_id": 1,
        "broker_epoch": cluster.epoch(1),
        "directories": tuple(
            brokers.DirectoryToAssign(
                id=where,
                topics=(
                    brokers.TopicToAssign(
                        topic_id=topic_id,
                        partitions=tuple(
                            brokers.PartitionNumber(partition_index=each) for each in numbers
                        ),
                    ),
                ),
            )
            for where, topic_id, numbers in assigned
        ),
    }
    request = brokers.AssignReplicasToDirsRequest(**(whole | fields))
    return cluster.decide(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)


def codes(decision: Any) -> list[int]:
    return [
        each.error_code
        for entry in decision.answer.directories
        for topic in entry.topics
        for each in topic.partitions
    ]


def cluster_of(**fields: Any) -> Cluster:
    cluster = Cluster()
    cluster.register(1, log_dirs=(directory(1, 0), directory(1, 1)))
    cluster.beat(1)
    cluster.start(2)
    cluster.add_topic((1, 2), (2, 1), (2,), **fields)
    return cluster


def test_a_replica_lies_where_its_broker_says() -> None:
    cluster = cluster_of()
    decision = decided(cluster, (directory(1, 1), TOPIC_ID, (0, 1)), (directory(2), TOPIC_ID, ()))
    assert codes(decision) == [0, 0]
    assert [entry.id for entry in decision.answer.directories] == [directory(1, 1), directory(2)]
    assert decision.records == [
        changed(0, directories=(directory(1, 1), directory(2))),
        changed(1, directories=(directory(2), directory(1, 1))),
    ]
    cluster.append(decision.records)
    assert not decided(cluster, (directory(1, 1), TOPIC_ID, (0, 1))).records


def test_the_last_word_on_a_replica_counts() -> None:
    cluster = cluster_of()
    both = (directory(1, 1), TOPIC_ID, (0,)), (directory(1), TOPIC_ID, (0,))
    cluster.append(decided(cluster, *both).records)
    assert cluster.partition().directories[0] == directory(1)


def test_what_is_not_there_is_said() -> None:
    decision = decided(
        cluster_of(), (directory(1, 1), TOPIC_ID, (2, 3)), (directory(1), "cd" * 16, (0,))
    )
    assert codes(decision) == [
        ApiError.NOT_LEADER_OR_FOLLOWER,
        ApiError.UNKNOWN_TOPIC_OR_PARTITION,
        ApiError.UNKNOWN_TOPIC_ID,
    ]
    assert not decision.records


@pytest.mark.parametrize("fields", [{"broker_epoch": 0}, {"broker_id": 7}])
def test_a_stale_broker_is_refused_as_a_whole(fields: dict[str, int]) -> None:
    decision = decided(cluster_of(), (directory(1, 1), TOPIC_ID, (0,)), **fields)
    assert decision.answer.error_code == ApiError.STALE_BROKER_EPOCH
    assert decision.answer.directories == ()
    assert not decision.records


def test_a_replica_in_a_lost_directory_leaves_the_isr() -> None:
    cluster = cluster_of()
    for lost in (LOST_DIRECTORY, directory(9)):
        decision = decided(cluster, (lost, TOPIC_ID, (0,)))
        assert codes(decision) == [0]
        assert decision.records == [
            changed(0, directories=(lost, directory(2))),
            changed(0, isr=(2,), leader=2),
        ]


def test_a_lost_directory_is_seen_on_top_of_the_move_that_its_assignment_ends() -> None:
    cluster = Cluster(1, 2, 3)
    # The move from 2 to 1 can end with the next change, whatever that is.
    cluster.add_topic((1, 2, 3), isr=(1, 2), leader=2, adding_replicas=(1,), removing_replicas=(2,))
    cluster.append(decided(cluster, (LOST_DIRECTORY, TOPIC_ID, (0,))).records)
    after = cluster.partition()
    assert (after.replicas, after.isr, after.leader) == ((1, 3), (1,), -1)


def test_what_is_no_directory_is_online_unless_it_is_lost() -> None:
    cluster = cluster_of()
    one = cluster.image.brokers[1]
    assert is_online(one, directory(1, 1))
    assert is_online(one, UNASSIGNED_DIRECTORY)
    assert is_online(one, MIGRATING_DIRECTORY)
    assert not is_online(one, LOST_DIRECTORY)
    assert not is_online(one, directory(1, 2))


def test_the_directory_of_a_new_replica_is_the_only_one_or_none_yet() -> None:
    cluster = cluster_of()
    old = records.RegisterBrokerRecord(
        broker_id=3,
        incarnation_id="ef" * 16,
        broker_epoch=cluster.next_offset,
        end_points=(),
        features=(),
        rack=None,
    )
    cluster.append([old])
    assert is_online(old, directory(3))
    found = [default_directory(cluster.image, each) for each in (1, 2, 3, 4)]
    assert found == [UNASSIGNED_DIRECTORY, directory(2), MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, True),
        (99, True),
        (100, False),
        (1 << 63, True),
        ((1 << 63) - 1, False),
        (1 << 64, False),
    ],
)
def test_reserved_ids_are_the_first_hundred_as_signed_numbers(number: int, expected: bool) -> None:
    assert is_reserved(f"{number:032x}") is expected
