"""Brokers and controllers that leave in order and come back, under load; and one after another.

One body judges Kafka's controllers, which proves the referee, and ours.
"""

import pytest
from kafka.errors import KafkaError, TopicAlreadyExistsError

from tests.referee.brokers_view import create_topic, lagging_voters, partitions, quorum_view
from tests.referee.cluster import Cluster
from tests.referee.record_load import RecordLoad

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(900)]

_PARTITIONS = 6
_RECORDS = 200
_PATIENCE_S = 90.0
_KILLS = 10
#: After which a silent broker is fenced, on either make.
_SESSION_S = 9.0


def assert_kept(load: RecordLoad) -> None:
    result = load.audit()
    assert result.is_clean, result
    assert result.acknowledged >= _RECORDS
    assert load.refusals == set()


def await_in_sync(cluster: Cluster, topic: str, members: frozenset[int]) -> None:
    def in_sync() -> bool:
        found = partitions(cluster.bootstrap, topic)
        return [part.in_sync for part in found] == [members] * _PARTITIONS

    cluster.await_true(f"the ISRs of {topic} are {set(members)}", in_sync, _PATIENCE_S)


def await_caught_up(cluster: Cluster) -> None:
    cluster.await_true(
        "all controllers have caught up", lambda: not lagging_voters(cluster.bootstrap), _PATIENCE_S
    )


def leads_nothing(cluster: Cluster, broker: int, topic: str) -> bool:
    others = [each for each in cluster.brokers if each != broker]
    found = partitions(cluster.client_address(others[0]), topic)
    return len(found) == _PARTITIONS and broker not in {part.leader for part in found}


def is_created(cluster: Cluster, topic: str) -> bool:
    try:
        create_topic(cluster.bootstrap, topic, partitions=1, replication_factor=3)
    except TopicAlreadyExistsError:
        return True  # by an attempt whose answer got lost
    except KafkaError:
        return False
    return True


def test_a_broker_that_is_asked_to_end_leads_nothing_when_it_does(trio: Cluster) -> None:
    everyone = frozenset(trio.brokers)
    leaving = trio.brokers[0]
    create_topic(trio.bootstrap, "leaving", _PARTITIONS, replication_factor=3)
    with RecordLoad(trio.bootstrap, "leaving") as load:
        load.produce(_RECORDS)
        with load.running():
            trio.terminate(leaving, _PATIENCE_S)
            # One that crashed would lead until its session is over, three times as long.
            trio.await_true(
                "others lead", lambda: leads_nothing(trio, leaving, "leaving"), _SESSION_S / 3
            )
            await_in_sync(trio, "leaving", everyone - {leaving})
            trio.start(leaving)
            await_in_sync(trio, "leaving", everyone)
        assert_kept(load)


def test_brokers_and_controllers_are_restarted_one_after_another_under_load(trio: Cluster) -> None:
    everyone = frozenset(trio.brokers)
    create_topic(trio.bootstrap, "rolling", _PARTITIONS, replication_factor=3)
    with RecordLoad(trio.bootstrap, "rolling") as load:
        load.produce(_RECORDS)
        with load.running():
            for broker in trio.brokers:
                trio.terminate(broker, _PATIENCE_S)
                trio.start(broker)
                await_in_sync(trio, "rolling", everyone)
            for voter in trio.voters:
                trio.terminate(voter.node_id, _PATIENCE_S)
                trio.start(voter.node_id)
                await_caught_up(trio)
        assert_kept(load)
    create_topic(trio.bootstrap, "rolled", _PARTITIONS, replication_factor=3)
    assert len(partitions(trio.bootstrap, "rolled")) == _PARTITIONS


def test_the_active_controller_is_killed_ten_times_under_load(trio: Cluster) -> None:
    topics = [f"kill-{number}" for number in range(_KILLS)]
    create_topic(trio.bootstrap, "killed", _PARTITIONS, replication_factor=3)
    epochs = [quorum_view(trio.bootstrap).epoch]
    with RecordLoad(trio.bootstrap, "killed") as load:
        load.produce(_RECORDS)
        with load.running():
            for topic in topics:
                active = quorum_view(trio.bootstrap).leader
                trio.kill(active)
                trio.await_true(
                    f"{topic} is created after controller {active} was killed",
                    lambda topic=topic: is_created(trio, topic),
                    _PATIENCE_S,
                )
                epochs.append(quorum_view(trio.bootstrap).epoch)
                trio.start(active)
                await_caught_up(trio)
        assert_kept(load)
    assert epochs == sorted(set(epochs)), "each kill had a new leader"
    for topic in topics:
        assert len(partitions(trio.bootstrap, topic)) == 1
