"""Changes of one partition: who is elected, when an epoch begins, what else is said."""

from typing import Any

import pytest

from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.partitions.partition_change import (
    Assignment,
    Election,
    Target,
    completed,
    partition_change,
)
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.partitions import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from splitbrain.nodes.metadata.records import PartitionChangeRecord
from tests.unit.nodes.controller.led_cluster import TOPIC_ID, Cluster, directory

PREFERRED, UNCLEAN = Election.PREFERRED, Election.UNCLEAN


def cluster_of(*alive: int, **fields: Any) -> Cluster:
    """Brokers 1 to 4, of which these are alive; a partition on 1, 2 and 3."""
    cluster = Cluster(1, 2, 3, 4)
    cluster.add_topic((1, 2, 3), **fields)
    for broker_id in {1, 2, 3, 4} - set(alive):
        known = cluster.image.brokers[broker_id]
        cluster.append([records.FenceBrokerRecord(broker_id, known.broker_epoch)])
    return cluster


def changed(cluster: Cluster, **target: Any) -> PartitionChangeRecord | None:
    topic = cluster.image.topics.by_id[TOPIC_ID]
    at = PartitionAt(topic, 0, topic.partitions[0])
    return partition_change(cluster.image, at, Target(**target))


def expected(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


@pytest.mark.parametrize("election", Election)
def test_nothing_is_said_where_nothing_changes(election: Election) -> None:
    assert changed(cluster_of(1, 2, 3), election=election) is None


@pytest.mark.parametrize(
    ("alive", "isr", "leader"),
    [
        ((1, 2, 3), (1, 2, 3), 1),
        ((2, 3), (1, 2, 3), 2),
        ((2, 3), (3, 2), 2),
        ((2, 3), (1, 3), 3),
        ((2, 3), (1,), -1),
        ((), (1, 2, 3), -1),
    ],
)
def test_a_leader_is_the_first_replica_that_is_alive_and_in_sync(
    alive: tuple[int, ...], isr: tuple[int, ...], leader: int
) -> None:
    record = changed(cluster_of(*alive, isr=isr, leader=-1))
    assert record == (None if leader == -1 else expected(leader=leader))


def test_the_leader_stays_unless_the_preferred_one_is_asked_for() -> None:
    cluster = cluster_of(1, 2, 3, leader=2)
    assert changed(cluster) is None
    assert changed(cluster, election=UNCLEAN) is None
    assert changed(cluster, election=PREFERRED) == expected(leader=1)


def test_without_the_preferred_one_the_leader_stays_or_another_in_sync_leads() -> None:
    assert changed(cluster_of(2, 3, leader=3), election=PREFERRED) is None
    assert changed(cluster_of(2, leader=3), election=PREFERRED) == expected(leader=2)


def test_an_unclean_election_is_the_last_resort_and_drops_the_isr() -> None:
    cluster = cluster_of(2, 3, leader=-1, isr=(1,))
    assert changed(cluster) is None
    assert changed(cluster, election=PREFERRED) is None
    assert changed(cluster, election=UNCLEAN) == expected(
        leader=2, isr=(2,), leader_recovery_state=1
    )


def test_who_recovers_already_is_not_told_again() -> None:
    cluster = cluster_of(2, 3, leader=-1, isr=(1,), leader_recovery_state=1)
    assert changed(cluster, election=UNCLEAN) == expected(leader=2, isr=(2,))


def test_the_last_member_stays_in_the_isr_and_leads_no_more() -> None:
    cluster = cluster_of(2, 3, isr=(1,))
    assert changed(cluster, isr=()) == expected(leader=-1)


def test_a_smaller_isr_begins_no_epoch() -> None:
    assert changed(cluster_of(1, 2, 3), isr=(1, 2)) == expected(isr=(1, 2))


def test_a_replica_in_a_lost_directory_does_not_lead() -> None:
    lost = (LOST_DIRECTORY, directory(2, 7), UNASSIGNED_DIRECTORY)
    cluster = cluster_of(1, 2, 3, leader=-1, directories=lost)
    # The second is no directory of broker 2; the third is one that broker 3 has yet to name.
    assert changed(cluster) == expected(leader=3)


def test_a_directory_is_said_where_it_is_another() -> None:
    cluster = cluster_of(1, 2, 3)
    assert changed(cluster, directories={2: directory(2)}) is None
    other = (directory(1), directory(2, 5), directory(3))
    assert changed(cluster, directories={2: directory(2, 5)}) == expected(directories=other)


def test_a_replica_that_goes_begins_an_epoch_and_one_that_comes_does_not() -> None:
    cluster = cluster_of(1, 2, 3, 4)
    both = changed(cluster, replicas=(1, 2, 3, 4), adding=(4,))
    lie = tuple(directory(each) for each in (1, 2, 3, 4))
    assert both == expected(replicas=(1, 2, 3, 4), adding_replicas=(4,), directories=lie)
    fewer = changed(cluster, replicas=(1, 2), isr=(1, 2))
    assert fewer == expected(leader=1, isr=(1, 2), replicas=(1, 2), directories=lie[:2])


def test_a_move_ends_once_all_that_come_are_in_sync() -> None:
    cluster = cluster_of(1, 2, 3, 4, isr=(1, 2, 3), removing_replicas=(1,), adding_replicas=(2,))
    record = changed(cluster)
    assert record == expected(
        leader=2,
        isr=(2, 3),
        replicas=(2, 3),
        removing_replicas=(),
        adding_replicas=(),
        directories=(directory(2), directory(3)),
    )


def test_the_recovery_state_is_what_the_leader_says() -> None:
    cluster = cluster_of(1, 2, 3, isr=(1,), leader_recovery_state=1)
    assert changed(cluster, leader_recovery_state=0) == expected(leader_recovery_state=0)
    assert changed(cluster, leader_recovery_state=1) is None


def test_eligible_leaders_of_another_time_are_forgotten() -> None:
    cluster = cluster_of(1, 2, 3, isr=(1,), eligible_leader_replicas=(2,))
    assert changed(cluster) == expected(eligible_leader_replicas=())


@pytest.mark.parametrize(
    ("move", "result"),
    [
        (Assignment((1, 2), (1, 2), (), ()), None),
        (Assignment((1, 2, 3), (1, 2), (), (3,)), None),
        (Assignment((1, 2, 3), (3, 1), (), (3,)), Assignment((1, 2, 3), (3, 1))),
        (Assignment((3, 1), (1,), (1,), (3,)), None),
        (Assignment((3, 1), (1, 3), (1,), (3,)), Assignment((3,), (3,))),
        # All would go.
        (Assignment((1, 2), (1, 2), (1, 2), ()), None),
        # Fewer come than go: all that stay have to be there.
        (Assignment((2, 3, 4, 5, 0, 1), (0, 1, 5), (0, 1), (5,)), None),
        (Assignment((2, 3, 0), (2, 3, 0), (0,), ()), Assignment((2, 3), (2, 3))),
    ],
)
def test_when_a_move_is_done(move: Assignment, result: Assignment | None) -> None:
    assert completed(move) == result
