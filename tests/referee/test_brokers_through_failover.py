"""Unmodified brokers work on three controllers before and after the active one is killed.

One body judges Kafka's controllers, which proves the referee, and ours.
"""

import pytest

from tests.referee import java_tools
from tests.referee.brokers_view import create_topic, has_leader_beside, quorum_view
from tests.referee.cluster import Cluster
from tests.referee.record_load import RecordLoad

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

_FAILOVER_PATIENCE_S = 60.0
_RECORDS = 500


def test_no_acknowledged_record_and_no_topic_is_lost_when_the_active_controller_is_killed(
    cluster: Cluster,
) -> None:
    before = quorum_view(cluster.bootstrap)
    assert before.voters == {1, 2, 3}
    assert before.observers == set(cluster.brokers)
    create_topic(cluster.bootstrap, "before", partitions=2, replication_factor=2)
    with RecordLoad(cluster.bootstrap, "before") as load:
        load.produce(_RECORDS)
        assert load.audit().found == _RECORDS
        with load.running():
            cluster.kill(before.leader)
            cluster.await_true(
                "another controller is active",
                lambda: has_leader_beside(cluster.bootstrap, before.leader),
                _FAILOVER_PATIENCE_S,
            )
            create_topic(cluster.bootstrap, "after", partitions=2, replication_factor=2)
        assert_kept(load)
    with RecordLoad(cluster.bootstrap, "after") as load:
        load.produce(_RECORDS)
        assert_kept(load)

    after = quorum_view(cluster.bootstrap)
    assert after.leader != before.leader
    assert after.epoch > before.epoch
    assert {"after", "before"} <= set(java_tools.topics(cluster))


def assert_kept(load: RecordLoad) -> None:
    result = load.audit()
    assert result.is_clean, result
    assert result.acknowledged >= _RECORDS
    assert load.refusals == set()


def test_kafkas_own_tools_describe_the_quorum(cluster: Cluster) -> None:
    seen = quorum_view(cluster.bootstrap)
    assert java_tools.quorum_status(cluster)["LeaderId"] == str(seen.leader)
    assert java_tools.cluster_id(cluster) == cluster.cluster_id
    assert java_tools.replicas(cluster) == {
        seen.leader: "Leader",
        **dict.fromkeys(seen.voters - {seen.leader}, "Follower"),
        **dict.fromkeys(cluster.brokers, "Observer"),
    }
