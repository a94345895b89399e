"""Two of Kafka's controllers and one of ours are one quorum, whoever leads and whoever is away.

Kafka's are strict: one that is told a high watermark or a record that cannot be ends itself.
"""

from contextlib import suppress
from pathlib import Path

import pytest
from kafka.errors import KafkaError

from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.disk import ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.reading import log_start
from splitbrain.nodes.storage.snapshots import snapshot_path
from tests.referee.brokers_view import create_topic, partitions, quorum_view
from tests.referee.folders import snapshots
from tests.referee.mixed_quorum import (
    KAFKA_IDS,
    OWN_ID,
    PATIENCE_S,
    ROUNDS,
    MixedQuorum,
    further,
    mixed,
    numbered,
    says,
)
from tests.referee.record_load import RecordLoad

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(600)]

_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
_RECORDS = 50
#: Kafka's keep a log's beginning while it is small.
_FORGETS = {**_OFTEN, "metadata.max.retention.bytes": "8000"}


def test_ours_follows_one_of_kafkas_byte_for_byte(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        leader = quorum.make_lead({1, 2})
        quorum.write_many(leader)
        quorum.cluster.kill(OWN_ID)
        quorum.write_many(leader)
        quorum.cluster.start(OWN_ID)
        quorum.await_level(leader)
        quorum.end()


def test_ours_is_the_voter_that_decides(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        leader = quorum.make_lead({1, 2})
        other = 3 - leader
        quorum.cluster.kill(other)
        quorum.write_many(leader)
        quorum.cluster.start(other)
        quorum.await_level(leader)
        quorum.cluster.kill(leader)
        next_leader = quorum.await_leader([other, OWN_ID])
        quorum.write_many(next_leader)
        quorum.cluster.start(leader)
        quorum.end()


def test_ours_leads_kafkas(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        quorum.make_lead({OWN_ID})
        quorum.write_many(OWN_ID)
        for away in (1, 2):
            quorum.cluster.kill(away)
            quorum.write_many(OWN_ID)
            quorum.cluster.start(away)
            quorum.await_level(OWN_ID)
        quorum.end()


@pytest.mark.parametrize(
    ("isolated", "successors"),
    [
        pytest.param({OWN_ID}, {1, 2}, id="of-ours-by-kafkas"),
        pytest.param({1, 2}, {OWN_ID}, id="of-kafkas-by-ours"),
    ],
)
def test_what_an_isolated_leader_alone_has_is_truncated(
    tmp_path: Path, isolated: set[int], successors: set[int]
) -> None:
    with mixed(tmp_path / "run") as quorum:
        for _ in range(ROUNDS):
            leader = quorum.make_lead(isolated)
            lost, successor = _succeeded(quorum, leader)
            if lost and successor in successors:
                break
        else:
            raise AssertionError(f"none of {successors} came to lead in {ROUNDS} rounds")
        logs = quorum.end()
        for log in logs.values():
            assert all(log.get(offset) != raw for offset, raw in lost.items())


def _succeeded(quorum: MixedQuorum, leader: int) -> tuple[dict[int, bytes], int]:
    """Have a leader write alone until others have another; what it wrote, and who that is.

    Frozen followers would still take what the leader sends them, once they go on.
    """
    quorum.cluster.isolate(leader)
    # It leads for a while yet, until it misses their fetches.
    with quorum.connection(leader) as connection:
        connection.tell(numbered(0), 1)
        lost: dict[int, bytes] = {}
        while not lost and quorum.described(leader) is not None:
            # The rest of its surplus may be at others: they took it, and could not tell any more.
            tail = quorum.tail(leader)
            lost = {offset: raw for offset, raw in tail.items() if says(raw, 0)}
        successor = quorum.await_leader([each for each in quorum.ids if each != leader])
    quorum.write_many(successor)
    quorum.cluster.heal()
    quorum.await_level(quorum.await_leader(quorum.ids))
    return lost, successor


@pytest.mark.parametrize(
    ("away", "leaders"),
    [
        pytest.param(OWN_ID, KAFKA_IDS, id="ours-of-kafkas"),
        pytest.param(1, frozenset({OWN_ID}), id="kafkas-of-ours"),
    ],
)
def test_who_was_away_for_too_long_takes_the_leaders_snapshot(
    tmp_path: Path, away: int, leaders: frozenset[int]
) -> None:
    # Whoever was away writes no snapshots of its own while it catches up: what its log begins after
    # is what it was sent.
    is_own_away = away == OWN_ID
    controllers = further(kafka=_FORGETS) if is_own_away else further(own=_OFTEN)
    with mixed(tmp_path / "run", controllers) as quorum:
        leader = quorum.make_lead(set(leaders))
        quorum.write_many(leader)
        quorum.await_level(leader)
        position = quorum.position(away, leader)
        quorum.cluster.kill(away)
        quorum.write_until_forgotten(leader, position)
        quorum.cluster.start(away)
        quorum.await_level(leader)
        folders = quorum.end_forgetful()
        taken = log_start(folders[away])
        assert taken.end_offset > position[0]
        # The leader may have a newer one by now, and no use for that.
        if taken in snapshots(folders[leader]):
            assert _bytes(folders[away], taken) == _bytes(folders[leader], taken)


def test_a_broker_of_kafkas_serves_on_whoever_leads(tmp_path: Path) -> None:
    with mixed(tmp_path / "run", brokers=1) as quorum:
        cluster = quorum.cluster
        cluster.await_brokers()
        (broker,) = cluster.brokers
        create_topic(cluster.bootstrap, "through", partitions=2, replication_factor=1)
        with RecordLoad(cluster.bootstrap, "through") as load:
            for number, wanted in enumerate((KAFKA_IDS, {OWN_ID}, KAFKA_IDS)):
                with load.running():
                    leader = quorum.make_lead(set(wanted))
                    _await_known(quorum, leader)
                    topic = f"while-{leader}-leads-{number}"
                    create_topic(cluster.bootstrap, topic, partitions=1, replication_factor=1)
                with RecordLoad(cluster.bootstrap, topic) as fresh:
                    fresh.produce(_RECORDS)
                    assert fresh.acknowledged == _RECORDS
                    assert fresh.audit().is_clean
                (partition,) = partitions(cluster.bootstrap, topic)
                assert partition.leader == broker
            assert load.acknowledged > 0
            assert load.audit().is_clean
        cluster.terminate(broker, PATIENCE_S)
        quorum.end()


def _bytes(folder: Path, snapshot_id: SnapshotId) -> bytes:
    return ReadOnlyDiskFileSystem().read(snapshot_path(folder, snapshot_id))


def _await_known(quorum: MixedQuorum, leader: int) -> None:
    """Return when the broker tells clients that this controller leads."""
    bootstrap = quorum.cluster.bootstrap

    def is_known() -> bool:
        with suppress(KafkaError):
            return quorum_view(bootstrap).leader == leader
        return False

    quorum.cluster.await_true(f"the broker knows that {leader} leads", is_known, PATIENCE_S)
