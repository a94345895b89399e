"""A broker that falls silent loses its leaderships, and comes back to what it replicates.

One body judges Kafka's controllers, which proves the referee, and ours.
"""

import pytest

from tests.referee.brokers_view import create_topic, partitions
from tests.referee.cluster import Cluster
from tests.referee.record_load import RecordLoad

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

_PARTITIONS = 4
_RECORDS = 200
_PATIENCE_S = 60.0


def test_a_frozen_broker_is_fenced_and_rejoins_and_no_acknowledged_record_is_lost(
    cluster: Cluster,
) -> None:
    stays, frozen = cluster.brokers
    both = frozenset(cluster.brokers)
    create_topic(cluster.bootstrap, "frozen", _PARTITIONS, replication_factor=2)
    before = partitions(cluster.bootstrap, "frozen")
    assert [part.replicas for part in before] == [both] * _PARTITIONS
    assert {part.leader for part in before} == both

    def in_sync(members: frozenset[int]) -> bool:
        found = partitions(cluster.client_address(stays), "frozen")
        return [part.in_sync for part in found] == [members] * _PARTITIONS

    with RecordLoad(cluster.bootstrap, "frozen") as load:
        load.produce(_RECORDS)
        with load.running():
            cluster.pause(frozen)
            cluster.await_true(
                "the frozen broker is out of every ISR",
                lambda: in_sync(frozenset({stays})),
                _PATIENCE_S,
            )
            during = partitions(cluster.client_address(stays), "frozen")
            assert {part.leader for part in during} == {stays}
            assert [part.replicas for part in during] == [both] * _PARTITIONS
            cluster.resume(frozen)
            cluster.await_true("it is back in every ISR", lambda: in_sync(both), _PATIENCE_S)
        result = load.audit()
        assert result.is_clean, result
        assert result.acknowledged > _RECORDS
        assert load.refusals == set()
