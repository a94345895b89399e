"""Brokers that go without a word, and brokers that are sent away."""

from typing import Any

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.brokers.fencing import fence_stale
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import UnregisterBrokerRequest
from tests.unit.nodes.controller.led_cluster import SESSION, Cluster, changed


def test_a_broker_is_fenced_when_its_session_is_over_and_not_before() -> None:
    cluster = Cluster(1)
    cluster.now += SESSION
    assert fence_stale(cluster.view) is None
    assert cluster.contacts.next_stale_at(SESSION) == cluster.now + 1
    cluster.now += 1
    decision = cluster.act(fence_stale(cluster.view))
    assert list(decision.records) == [BrokerRegistrationChangeRecord(1, cluster.epoch(1), fenced=1)]
    assert fence_stale(cluster.view) is None
    assert cluster.contacts.next_stale_at(SESSION) is None


def test_one_broker_is_fenced_at_a_time_and_each_sees_what_came_of_the_one_before() -> None:
    cluster = Cluster(1)
    cluster.now += 1
    cluster.start(2, 3)
    cluster.add_topic((1, 2, 3))
    cluster.now += 2 * SESSION
    cluster.beat(3)
    first = cluster.act(fence_stale(cluster.view))
    assert cluster.image.brokers[1].fenced
    assert not cluster.image.brokers[2].fenced
    # Nobody knows yet that 2 is dead too.
    assert first.records[0] == changed(0, isr=(2, 3), leader=2)
    second = cluster.act(fence_stale(cluster.view))
    assert second.records[0] == changed(0, isr=(3,), leader=3)
    assert fence_stale(cluster.view) is None


def test_the_session_of_an_earlier_incarnation_fences_nobody() -> None:
    cluster = Cluster(1)
    cluster.now += SESSION + 1
    cluster.register(1, life=2)
    cluster.beat(1)
    assert fence_stale(cluster.view) is None
    assert not cluster.image.brokers[1].fenced


def test_a_heartbeat_of_nobody_fences_nobody() -> None:
    cluster = Cluster()
    cluster.beat(7)
    cluster.now += SESSION + 1
    assert fence_stale(cluster.view) is None
    assert cluster.contacts.next_stale_at(SESSION) is None


def test_a_broker_that_was_leaving_may_register_and_serve_again() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.now += SESSION + 1
    cluster.beat(2)
    cluster.act(fence_stale(cluster.view))
    assert cluster.contacts.shutdown_offset(1) is None
    assert cluster.register(1, life=2).error_code == ApiError.NONE
    assert not cluster.beat(1).is_fenced
    assert not cluster.image.brokers[1].in_controlled_shutdown


def test_after_a_change_of_leader_everybody_has_a_whole_session() -> None:
    cluster = Cluster(1)
    cluster.now += SESSION
    cluster.contacts = Contacts.of_new_leader(cluster.image, cluster.view.now)
    cluster.now += SESSION
    assert fence_stale(cluster.view) is None
    cluster.now += 1
    cluster.act(fence_stale(cluster.view))
    assert cluster.image.brokers[1].fenced


def unregistered(cluster: Cluster, broker_id: int) -> Any:
    return cluster.decide(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=broker_id))


def test_an_unregistered_broker_leaves_its_partitions_and_is_forgotten() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (1,))
    epoch = cluster.epoch(1)
    decision = unregistered(cluster, 1)
    assert decision.answer.error_code == ApiError.NONE
    assert decision.answer.error_message == ""
    assert decision.records == [
        changed(0, isr=(2,), leader=2),
        changed(1, leader=-1),
        UnregisterBrokerRecord(1, epoch),
    ]
    cluster.append(decision.records)
    assert 1 not in cluster.image.brokers
    assert cluster.beat(1, broker_epoch=epoch).error_code == ApiError.STALE_BROKER_EPOCH


def test_who_is_not_registered_cannot_be_unregistered() -> None:
    decision = unregistered(Cluster(), 1)
    assert decision.answer.error_code == ApiError.BROKER_ID_NOT_REGISTERED
    assert decision.answer.error_message == "Broker ID 1 is not currently registered"
    assert not decision.records


def test_a_user_may_change_no_more_than_a_batch_takes() -> None:
    cluster = Cluster(1, 2, records_per_batch_max=2)
    cluster.add_topic((1, 2), (1, 2))
    decision = unregistered(cluster, 1)
    assert decision.answer.error_code == ApiError.POLICY_VIOLATION
    assert not decision.records
    # Time may.
    cluster.now += SESSION + 1
    cluster.beat(2)
    assert len(cluster.act(fence_stale(cluster.view)).records) == 3
