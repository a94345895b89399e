"""BrokerHeartbeat: the states of a broker, what each change writes, and what is answered."""

from typing import Any

import pytest

from splitbrain.nodes.controller.basis.contacts import Contacts, Incarnation
from splitbrain.nodes.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from tests.unit.nodes.controller.led_cluster import SESSION, Cluster, changed, directory


def beaten(cluster: Cluster, broker_id: int, **fields: Any) -> list[MetadataRecord]:
    written = len(cluster.log)
    assert cluster.beat(broker_id, **fields).error_code == ApiError.NONE
    return cluster.log[written:]


def state(cluster: Cluster, broker_id: int, **fields: Any) -> tuple[bool, bool, bool]:
    """Caught up, fenced, shall shut down."""
    answer = cluster.beat(broker_id, **fields)
    assert answer.error_code == ApiError.NONE
    return answer.is_caught_up, answer.is_fenced, answer.should_shut_down


@pytest.mark.parametrize("epoch", [-1, 0, 99])
def test_who_is_not_registered_with_the_epoch_is_refused_and_fenced(epoch: int) -> None:
    cluster = Cluster(1)
    for broker_id in (1, 2):
        decision = cluster.decide(
            ApiKey.BROKER_HEARTBEAT, cluster.heartbeat(broker_id, broker_epoch=epoch), 2
        )
        answer: Any = decision.answer
        assert answer.error_code == ApiError.STALE_BROKER_EPOCH
        assert answer.is_fenced
        assert not answer.is_caught_up
        assert not answer.should_shut_down
        assert not decision.records


def test_a_refused_heartbeat_does_not_prolong_the_sessions_of_others() -> None:
    cluster = Cluster(1)
    cluster.now += SESSION + 1
    cluster.beat(1, broker_epoch=77)
    assert cluster.contacts.stale(cluster.view.now, SESSION) == (Incarnation(1, cluster.epoch(1)),)


def test_a_broker_is_unfenced_once_it_has_applied_its_registration() -> None:
    cluster = Cluster()
    epoch = cluster.register(1).broker_epoch
    assert state(cluster, 1, current_metadata_offset=epoch - 1) == (False, True, False)
    assert state(cluster, 1, want_fence=True) == (True, True, False)
    assert beaten(cluster, 1, current_metadata_offset=epoch) == [
        BrokerRegistrationChangeRecord(1, epoch, fenced=-1)
    ]
    assert state(cluster, 1) == (True, False, False)


def test_a_heartbeat_of_a_broker_that_stays_what_it_is_writes_nothing() -> None:
    cluster = Cluster(1)
    assert beaten(cluster, 1) == []
    assert beaten(cluster, 1, current_metadata_offset=-1) == []
    assert not cluster.image.brokers[1].fenced


def test_who_is_unfenced_leads_what_nobody_could() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (2, 1))
    for broker_id in (1, 2):
        beaten(cluster, broker_id, want_fence=True)
    # 2 was the last in sync of both.
    assert [cluster.partition(each).leader for each in (0, 1)] == [-1, -1]
    assert beaten(cluster, 1)[1:] == []
    written = beaten(cluster, 2)
    assert isinstance(written[0], BrokerRegistrationChangeRecord)
    assert [cluster.partition(each).leader for each in (0, 1)] == [2, 2]
    assert [cluster.partition(each).isr for each in (0, 1)] == [(2,), (2,)]
    assert cluster.partition(0).leader_recovery_state == 0


def test_an_unclean_leader_may_be_unfenced_where_the_topic_allows_it() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), isr=(2,), leader=2)
    for broker_id in (1, 2):
        beaten(cluster, broker_id, want_fence=True)
    cluster.allow_unclean()
    beaten(cluster, 1)
    after = cluster.partition()
    assert (after.leader, after.isr, after.leader_recovery_state) == (1, (1,), 1)


def test_who_wants_to_be_fenced_leaves_its_partitions_first() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (2, 1), (2,))
    written = beaten(cluster, 1, want_fence=True)
    assert written == [
        changed(0, isr=(2,), leader=2),
        changed(1, isr=(2,)),
        BrokerRegistrationChangeRecord(1, cluster.epoch(1), fenced=1),
    ]
    assert [cluster.partition(each).leader_epoch for each in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("leads", [True, False])
def test_who_wants_both_or_leads_nothing_goes_at_once(leads: bool) -> None:
    cluster = Cluster(1, 2)
    if leads:
        cluster.add_topic((1, 2))
    assert state(cluster, 1, want_shut_down=True, want_fence=leads) == (True, True, True)
    assert cluster.image.brokers[1].fenced
    assert not cluster.image.brokers[1].in_controlled_shutdown
    # Fenced, it is told so again and again; each time is written, and changes nothing.
    assert beaten(cluster, 1, want_shut_down=True) == [
        BrokerRegistrationChangeRecord(1, cluster.epoch(1), fenced=1)
    ]


def test_a_leader_goes_once_the_others_know_who_leads_in_its_place() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.add_topic((1, 2))
    for broker_id in (2, 3):
        cluster.beat(broker_id)
    written = beaten(cluster, 1, want_shut_down=True)
    assert written == [
        BrokerRegistrationChangeRecord(1, cluster.epoch(1), in_controlled_shutdown=1),
        changed(0, isr=(2,), leader=2),
    ]
    last = cluster.next_offset - 1
    cluster.beat(2)
    assert state(cluster, 1, want_shut_down=True) == (True, False, False)
    cluster.beat(3, current_metadata_offset=last - 1)
    assert state(cluster, 1, want_shut_down=True) == (True, False, False)
    cluster.beat(3, current_metadata_offset=last)
    assert state(cluster, 1, want_shut_down=True) == (True, True, True)
    assert cluster.image.brokers[1].fenced
    assert cluster.contacts.shutdown_offset(1) is None


def test_the_last_broker_goes_without_waiting_for_anybody() -> None:
    cluster = Cluster(1)
    cluster.add_topic((1,))
    assert state(cluster, 1, want_shut_down=True) == (True, False, False)
    assert cluster.partition().leader == -1
    assert cluster.partition().isr == (1,)
    assert state(cluster, 1, want_shut_down=True) == (True, True, True)


def test_who_has_begun_to_go_does_not_come_back() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    assert state(cluster, 1) == (True, False, False)
    cluster.beat(2)
    assert state(cluster, 1) == (True, True, True)


def test_a_broker_that_changes_has_to_say_anew_how_far_it_is() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    # This heartbeat writes a change of broker 2, after which nothing is known of it.
    cluster.beat(2, cordoned_log_dirs=())
    assert state(cluster, 1, want_shut_down=True) == (True, False, False)
    cluster.beat(2, cordoned_log_dirs=())
    assert state(cluster, 1, want_shut_down=True) == (True, True, True)


def test_under_a_new_leader_a_leaving_broker_that_leads_nothing_goes_at_once() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.contacts = Contacts.of_new_leader(cluster.image, cluster.view.now)
    assert state(cluster, 1, want_shut_down=True) == (True, True, True)


def test_a_lost_directory_takes_its_replicas_out_of_the_isrs() -> None:
    cluster = Cluster()
    dirs = (directory(1, 0), directory(1, 1))
    cluster.register(1, log_dirs=dirs)
    cluster.beat(1)
    cluster.start(2)
    lie = (dirs[0], directory(2))
    cluster.add_topic((1, 2), directories=lie)
    cluster.add_topic((1, 2), name="u", directories=(dirs[1], directory(2)))
    written = beaten(cluster, 1, offline_log_dirs=(dirs[0], directory(9)))
    assert written == [
        changed(0, isr=(2,), leader=2),
        BrokerRegistrationChangeRecord(1, cluster.epoch(1), log_dirs=(dirs[1],)),
    ]
    assert cluster.image.brokers[1].log_dirs == (dirs[1],)
    assert beaten(cluster, 1, offline_log_dirs=(dirs[0],)) == []


def test_cordoned_directories_are_written_when_they_are_others() -> None:
    cluster = Cluster()
    cluster.register(1, log_dirs=(directory(1, 0), directory(1, 1)))
    cluster.beat(1)
    both = (directory(1, 0), directory(1, 1))
    epoch = cluster.epoch(1)
    assert beaten(cluster, 1) == []
    for fields in ((), both[:1], both):
        assert beaten(cluster, 1, cordoned_log_dirs=fields) == [
            BrokerRegistrationChangeRecord(1, epoch, cordoned_log_dirs=fields)
        ]
    assert beaten(cluster, 1, cordoned_log_dirs=both[::-1]) == []
    assert beaten(cluster, 1, cordoned_log_dirs=None) == []


def test_who_is_unfenced_and_loses_a_directory_at_once_does_not_lead_from_it() -> None:
    cluster = Cluster()
    dirs = (directory(1, 0), directory(1, 1))
    cluster.register(1, log_dirs=dirs)
    cluster.beat(1)
    cluster.add_topic((1,), (1,), directories=dirs[:1])
    cluster.add_topic((1,), name="u", directories=dirs[1:])
    beaten(cluster, 1, want_fence=True)
    beaten(cluster, 1, offline_log_dirs=dirs[:1])
    assert not cluster.image.brokers[1].fenced
    assert [cluster.partition(each).leader for each in (0, 1)] == [-1, -1]
    other = cluster.image.topics.named("u")
    assert other is not None
    assert other.partitions[0].leader == 1
