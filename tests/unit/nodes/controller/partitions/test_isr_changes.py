"""AlterPartition: which proposals count, in which order they are checked, what is answered."""

from typing import Any

import pytest

from splitbrain.nodes.metadata import records
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import partitions
from tests.unit.nodes.controller.led_cluster import TOPIC_ID, Cluster, changed, directory


def cluster_of(*assignments: tuple[int, ...], **fields: Any) -> Cluster:
    cluster = Cluster(1, 2, 3, 4)
    cluster.add_topic(*(assignments or ((1, 2, 3),)), **fields)
    return cluster


def proposal(cluster: Cluster, isr: tuple[int, ...] = (1, 2, 3), **fields: Any) -> Any:
    """A proposal of the present state with the brokers' present epochs."""
    known = cluster.image.topics.partition(TOPIC_ID, 0)
    assert known is not None
    whole: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": known.leader_epoch,
        "partition_epoch": known.partition_epoch,
        "new_isr_with_epochs": tuple(
            partitions.InSyncBroker(broker_id=each, broker_epoch=cluster.epoch(each))
            for each in isr
        ),
    }
    return partitions.PartitionToAlter(**(whole | fields))


def request(
    cluster: Cluster, *proposals: Any, broker_id: int = 1, topic_id: str = TOPIC_ID, **fields: Any
) -> partitions.AlterPartitionRequest:
    whole: dict[str, Any] = {
        "broker_id": broker_id,
        "broker_epoch": cluster.epoch(broker_id),
        "topics": (partitions.TopicToAlter(topic_id=topic_id, partitions=proposals),),
    }
    return partitions.AlterPartitionRequest(**(whole | fields))


def decided(cluster: Cluster, request: partitions.AlterPartitionRequest, version: int = 3) -> Any:
    return cluster.decide(ApiKey.ALTER_PARTITION, request, version)


def outcome(cluster: Cluster, *proposals: Any, **fields: Any) -> Any:
    decision = decided(cluster, request(cluster, *proposals, **fields))
    assert decision.answer.error_code == ApiError.NONE
    (topic,) = decision.answer.topics
    (outcome,) = topic.partitions
    return outcome, decision.records


def refused(cluster: Cluster, *proposals: Any, **fields: Any) -> ApiError:
    entry, written = outcome(cluster, *proposals, **fields)
    assert not written
    assert (entry.leader_id, entry.leader_epoch, entry.isr, entry.partition_epoch) == (0, 0, (), 0)
    return ApiError(entry.error_code)


def test_a_smaller_isr_is_written_and_answered() -> None:
    cluster = cluster_of()
    entry, written = outcome(cluster, proposal(cluster, (1, 3)))
    assert written == [changed(0, isr=(1, 3))]
    assert entry == partitions.AlteredPartition(
        partition_index=0, error_code=0, leader_id=1, leader_epoch=0, isr=(1, 3), partition_epoch=1
    )


def test_what_is_so_already_is_answered_and_not_written() -> None:
    cluster = cluster_of()
    entry, written = outcome(cluster, proposal(cluster))
    assert not written
    assert (entry.error_code, entry.isr, entry.partition_epoch) == (0, (1, 2, 3), 0)


def test_versions_without_broker_epochs_name_brokers_alone() -> None:
    cluster = cluster_of(isr=(1,))
    cluster.now += 1
    old = proposal(cluster, new_isr=(1, 2), new_isr_with_epochs=())
    decision = decided(cluster, request(cluster, old), version=2)
    assert decision.records[0].isr == (1, 2)


@pytest.mark.parametrize("epoch", [-1, 0, 99])
def test_a_stale_broker_is_refused_as_a_whole(epoch: int) -> None:
    cluster = cluster_of()
    decision = decided(cluster, request(cluster, proposal(cluster, (1,)), broker_epoch=epoch))
    assert decision.answer.error_code == ApiError.STALE_BROKER_EPOCH
    assert decision.answer.topics == ()
    assert not decision.records


def test_an_empty_request_is_answered_before_anybody_is_looked_at() -> None:
    cluster = cluster_of()
    decision = decided(cluster, request(cluster, topics=(), broker_epoch=99))
    assert decision.answer.error_code == ApiError.NONE
    assert not decision.records


def test_what_is_not_there_is_said() -> None:
    cluster = cluster_of()
    wanted = proposal(cluster, (1,))
    assert refused(cluster, wanted, topic_id="cd" * 16) == ApiError.UNKNOWN_TOPIC_ID
    other = proposal(cluster, (1,), partition_index=1)
    assert refused(cluster, other) == ApiError.UNKNOWN_TOPIC_OR_PARTITION


def test_epochs_are_checked_both_ways() -> None:
    cluster = cluster_of(leader_epoch=5, partition_epoch=5)
    for fields, code in (
        ({"leader_epoch": 6}, ApiError.NOT_CONTROLLER),
        ({"partition_epoch": 6}, ApiError.NOT_CONTROLLER),
        ({"leader_epoch": 4}, ApiError.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 4}, ApiError.INVALID_UPDATE_VERSION),
        ({"leader_epoch": 4, "partition_epoch": 6}, ApiError.NOT_CONTROLLER),
        ({"leader_epoch": 4, "partition_epoch": 4}, ApiError.FENCED_LEADER_EPOCH),
    ):
        assert refused(cluster, proposal(cluster, (1, 2), **fields)) == code
    stale = proposal(cluster, (2,), partition_epoch=4)
    assert refused(cluster, stale, broker_id=2) == ApiError.INVALID_REQUEST


def test_an_isr_that_cannot_be_is_refused() -> None:
    cluster = cluster_of()
    for isr in ((1, 1), (1, 4), (2, 3), ()):
        assert refused(cluster, proposal(cluster, isr)) == ApiError.INVALID_REQUEST


def test_recovery_ends_once_and_never_begins_by_a_proposal() -> None:
    cluster = cluster_of(isr=(1,))
    back = proposal(cluster, (1,), leader_recovery_state=1)
    assert refused(cluster, back) == ApiError.INVALID_REQUEST
    cluster = cluster_of(isr=(1,), leader_recovery_state=1)
    more = proposal(cluster, (1, 2), leader_recovery_state=1)
    assert refused(cluster, more) == ApiError.INVALID_REQUEST
    entry, written = outcome(cluster, proposal(cluster, (1, 2)))
    assert (entry.error_code, entry.leader_recovery_state) == (0, 0)
    assert (written[0].leader_recovery_state, written[0].isr) == (0, (1, 2))


def test_an_unknown_recovery_state_fails_the_request() -> None:
    cluster = cluster_of()
    decision = decided(cluster, request(cluster, proposal(cluster, (1,), leader_recovery_state=2)))
    assert decision.answer.error_code == ApiError.UNKNOWN_SERVER_ERROR
    assert not decision.records


@pytest.mark.parametrize("why", ["unregistered", "fenced", "leaving", "restarted"])
def test_who_may_have_lost_what_it_had_is_not_taken_in(why: str) -> None:
    cluster = cluster_of(isr=(1,))
    epoch = cluster.epoch(2)
    stale = partitions.InSyncBroker(broker_id=2, broker_epoch=epoch - 1)
    wanted = proposal(cluster, (1, 2))
    if why == "unregistered":
        cluster.append([records.UnregisterBrokerRecord(2, epoch)])
    elif why == "fenced":
        cluster.append([records.FenceBrokerRecord(2, epoch)])
    elif why == "leaving":
        cluster.append([records.BrokerRegistrationChangeRecord(2, epoch, 0, 1)])
    else:
        members = (wanted.new_isr_with_epochs[0], stale)
        wanted = proposal(cluster, new_isr_with_epochs=members)
    assert refused(cluster, wanted) == ApiError.INELIGIBLE_REPLICA


def test_an_unknown_broker_epoch_is_not_compared() -> None:
    cluster = cluster_of(isr=(1,))
    members = tuple(partitions.InSyncBroker(broker_id=each) for each in (1, 2))
    entry, _ = outcome(cluster, proposal(cluster, new_isr_with_epochs=members))
    assert entry.error_code == ApiError.NONE


def test_who_ends_its_own_leadership_is_told_of_the_new_leader() -> None:
    cluster = cluster_of((1, 2, 3), isr=(1, 2), removing_replicas=(1,), adding_replicas=(3,))
    entry, written = outcome(cluster, proposal(cluster, (1, 2, 3)))
    assert entry.error_code == ApiError.NEW_LEADER_ELECTED
    assert (entry.leader_id, entry.isr) == (0, ())
    assert (written[0].leader, written[0].isr, written[0].replicas) == (2, (2, 3), (2, 3))


def test_who_ends_a_move_and_leads_on_is_told_its_new_epoch() -> None:
    cluster = cluster_of((1, 2, 3), isr=(1, 2), removing_replicas=(2,), adding_replicas=(3,))
    entry, written = outcome(cluster, proposal(cluster, (1, 2, 3)))
    assert (entry.error_code, entry.leader_id, entry.leader_epoch) == (0, 1, 1)
    assert entry.isr == (1, 3)
    assert written[0].directories == (directory(1), directory(3))


def test_each_partition_has_its_own_outcome() -> None:
    cluster = cluster_of((1, 2), (1, 2), (2, 1))
    wanted = [proposal(cluster, (1,), partition_index=each) for each in (0, 2, 1)]
    decision = decided(cluster, request(cluster, *wanted))
    outcome = decision.answer.topics[0].partitions
    assert [each.partition_index for each in outcome] == [0, 2, 1]
    assert [each.error_code for each in outcome] == [0, ApiError.INVALID_REQUEST, 0]
    assert [each.partition_id for each in decision.records] == [0, 1]
