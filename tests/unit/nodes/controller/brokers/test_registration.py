"""BrokerRegistration: who may register, and what is written."""

from typing import Any

import pytest

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.metadata import records
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from tests.unit.nodes.controller.led_cluster import (
    SESSION,
    Cluster,
    directory,
    feature,
    incarnation,
    listener,
    registration,
)


def decided(cluster: Cluster, broker_id: int = 1, life: int = 1, **fields: Any) -> Any:
    return cluster.decide(
        ApiKey.BROKER_REGISTRATION, registration(broker_id, life, **fields), version=4
    )


def test_a_broker_is_registered_fenced_with_the_next_offset_as_its_epoch() -> None:
    cluster = Cluster()
    decision = decided(cluster, rack="r1", listeners=(listener(), listener(name="B", port=1)))
    assert decision.answer.error_code == ApiError.NONE
    assert decision.answer.broker_epoch == cluster.next_offset
    assert decision.records == [
        records.RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=incarnation(1),
            broker_epoch=cluster.next_offset,
            end_points=(
                records.AdvertisedListener("PLAINTEXT", "127.0.0.1", 9092, 0),
                records.AdvertisedListener("B", "127.0.0.1", 1, 0),
            ),
            features=(
                records.SupportedFeature("metadata.version", 7, 30),
                records.SupportedFeature("transaction.version", 0, 2),
            ),
            rack="r1",
            fenced=True,
            log_dirs=(directory(1),),
        )
    ]


LISTENERS_WRONG = [listener(host=" "), listener(port=0), listener(security_protocol=4)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ApiError.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ApiError.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": ()}, ApiError.INVALID_REGISTRATION),
        ({"log_dirs": (f"{99:032x}",)}, ApiError.INVALID_REGISTRATION),
        ({"log_dirs": (f"{1 << 63:032x}",)}, ApiError.INVALID_REGISTRATION),
        ({"log_dirs": (directory(1), directory(1))}, ApiError.INVALID_REGISTRATION),
        ({"log_dirs": (directory(1), directory(9))}, ApiError.INVALID_REGISTRATION),
        ({"features": ()}, ApiError.INVALID_REGISTRATION),
        ({"features": (feature("metadata.version", 7, 29),)}, ApiError.UNSUPPORTED_VERSION),
        ({"features": (feature("metadata.version", 31, 31),)}, ApiError.UNSUPPORTED_VERSION),
        # It does not know a feature that the cluster works with.
        ({"features": (feature("metadata.version", 7, 30),)}, ApiError.UNSUPPORTED_VERSION),
        *(({"listeners": (wrong,)}, ApiError.UNKNOWN_SERVER_ERROR) for wrong in LISTENERS_WRONG),
    ],
)
def test_what_is_wrong_is_refused(fields: dict[str, Any], code: ApiError) -> None:
    cluster = Cluster()
    cluster.register(9)
    decision = decided(cluster, **fields)
    assert decision.answer.error_code == code
    assert decision.answer.broker_epoch == -1
    assert not decision.records


def test_a_feature_that_the_cluster_does_not_use_has_to_be_possible_without() -> None:
    known = (feature("metadata.version", 7, 30), feature("transaction.version", 0, 2))
    assert not decided(Cluster(), features=(*known, feature("x", 0, 1))).answer.error_code
    refused = decided(Cluster(), features=(*known, feature("x", 1, 1)))
    assert refused.answer.error_code == ApiError.UNSUPPORTED_VERSION


def test_the_first_wrong_thing_is_told() -> None:
    cluster = Cluster(1)
    wrong: dict[str, Any] = {"log_dirs": (), "listeners": (listener(port=0),), "features": ()}
    code = decided(cluster, life=2, cluster_id="another", **wrong).answer.error_code
    assert code == ApiError.INCONSISTENT_CLUSTER_ID
    code = decided(cluster, life=2, is_migrating_zk_broker=True, **wrong).answer.error_code
    assert code == ApiError.DUPLICATE_BROKER_REGISTRATION
    code = decided(cluster, is_migrating_zk_broker=True, **wrong).answer.error_code
    assert code == ApiError.BROKER_ID_NOT_REGISTERED
    assert decided(cluster, **wrong).answer.error_code == ApiError.INVALID_REGISTRATION
    del wrong["log_dirs"]
    assert decided(cluster, **wrong).answer.error_code == ApiError.UNKNOWN_SERVER_ERROR


def test_a_second_process_waits_for_the_end_of_the_first_ones_session() -> None:
    cluster = Cluster(1)
    cluster.now += SESSION
    assert cluster.register(1, life=2).error_code == ApiError.DUPLICATE_BROKER_REGISTRATION
    cluster.now += 1
    assert cluster.register(1, life=2).error_code == ApiError.NONE


def test_who_never_sent_a_heartbeat_is_replaced_at_once() -> None:
    cluster = Cluster()
    first = cluster.register(1).broker_epoch
    assert cluster.register(1, life=2).broker_epoch > first


def test_the_same_process_amends_what_it_said_and_keeps_its_epoch_and_state() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    before = cluster.image.brokers[1]
    decision = decided(cluster, rack="r2")
    assert decision.answer.broker_epoch == before.broker_epoch
    (record,) = decision.records
    assert record.broker_epoch == before.broker_epoch
    assert record.in_controlled_shutdown
    assert not record.fenced
    assert record.rack == "r2"
    # It has to say again which directories take nothing new.
    assert record.cordoned_log_dirs is None


def test_a_new_process_leaves_the_isrs_and_leads_nothing() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (1,))
    cluster.now += SESSION + 1
    cluster.beat(2)
    decision = decided(cluster, life=2)
    moved, left, registered = decision.records
    assert (moved.partition_id, moved.isr, moved.leader) == (0, (2,), 2)
    # Alone in sync it stays so, without leading.
    assert (left.partition_id, left.isr, left.leader) == (1, None, -1)
    assert isinstance(registered, records.RegisterBrokerRecord)
    assert registered.broker_epoch == cluster.next_offset
    assert registered.fenced


def test_a_broker_has_its_own_registration_once_it_has_the_record_itself() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    cluster.now += SESSION + 1
    cluster.beat(2)
    epoch = cluster.register(1, life=2).broker_epoch
    # Its epoch is the offset of the first record, its registration is the last.
    assert not cluster.beat(1, current_metadata_offset=epoch).is_caught_up
    assert cluster.beat(1, current_metadata_offset=epoch + 1).is_caught_up
    # A leader that did not write it asks for all that it starts with.
    cluster.contacts = Contacts.of_new_leader(cluster.image, cluster.view.now)
    last = cluster.next_offset - 1
    assert not cluster.beat(1, current_metadata_offset=last - 1).is_caught_up
    assert cluster.beat(1, current_metadata_offset=last).is_caught_up
