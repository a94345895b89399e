"""The renaming of answers and images hides what is declared, and nothing beside it."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.wire.families import (
    brokers,
    cluster,
    configs,
    controllers,
    partitions,
    topics,
)
from tests.referee.admin_streams import codes, differing
from tests.referee.alike import Alike
from tests.referee.known import CHOSEN_PREFIX, directory, incarnation

_ID, _OTHER_ID = "a1" * 16, "b2" * 16
_FEATURES = (
    records.SupportedFeature("group.version", 0, 1),
    records.SupportedFeature("metadata.version", 7, 30),
)
_OTHER_HOST = records.AdvertisedListener("CONTROLLER", "n2", 9193, 0)
_CONTROLLER = records.RegisterControllerRecord(
    1, "c1" * 16, False, (records.AdvertisedListener("CONTROLLER", "n1", 9193, 0),), _FEATURES
)
_BROKER = records.RegisterBrokerRecord(
    broker_id=11,
    incarnation_id=incarnation(11, 1),
    broker_epoch=7,
    end_points=(),
    features=_FEATURES,
    rack="r1",
    fenced=False,
    log_dirs=(directory(11, 0),),
)
_PARTITION = records.PartitionRecord(
    partition_id=0,
    topic_id=_ID,
    replicas=(11, 12),
    isr=(11,),
    removing_replicas=(),
    adding_replicas=(),
    leader=11,
    leader_epoch=3,
    partition_epoch=5,
    directories=(directory(11, 0), directory(12, 0)),
)
_RECORDS: tuple[MetadataRecord, ...] = (
    records.FeatureLevelRecord("metadata.version", 30),
    _CONTROLLER,
    _BROKER,
    records.TopicRecord("a", _ID),
    _PARTITION,
    records.ConfigRecord(2, "a", "retention.ms", "5"),
    records.ProducerIdsRecord(broker_id=11, broker_epoch=7, next_producer_id=5_000),
)


def _image(some: Iterable[MetadataRecord], base: MetadataImage | None = None) -> MetadataImage:
    delta = MetadataDelta(base or MetadataImage())
    for record in some:
        delta.replay(record)
    return delta.apply(Provenance(Offset(9), Epoch(1)))


def _renamed(*images: MetadataImage, begins: MetadataImage | None = None) -> dict[str, Any]:
    """The last of the images that one cluster had."""
    alike = Alike("cluster", begins or MetadataImage())
    for image in images:
        alike.see(image)
    return alike.image(images[-1])


def _with(index: int, **changes: Any) -> MetadataImage:
    changed = msgspec.structs.replace(_RECORDS[index], **changes)
    return _image([*_RECORDS[:index], changed, *_RECORDS[index + 1 :]])


def _of_topic(topic_id: str) -> MetadataImage:
    return _image(
        [
            *_RECORDS[:3],
            records.TopicRecord("a", topic_id),
            msgspec.structs.replace(_PARTITION, topic_id=topic_id),
            *_RECORDS[5:],
        ]
    )


_IMAGE = _image(_RECORDS)


@pytest.mark.parametrize(
    "other",
    [
        _of_topic(_OTHER_ID),
        _with(1, incarnation_id="d4" * 16),
        _with(1, features=_FEATURES[::-1]),
        _with(2, broker_epoch=99),
        msgspec.structs.replace(_IMAGE, provenance=Provenance(Offset(70), Epoch(4))),
    ],
)
def test_what_is_declared_is_hidden(other: MetadataImage) -> None:
    assert _renamed(_IMAGE) == _renamed(other)


def test_producer_ids_count_from_where_they_began() -> None:
    base = _image([records.ProducerIdsRecord(broker_id=11, next_producer_id=3_000)])
    later = _image([records.ProducerIdsRecord(broker_id=11, next_producer_id=6_000)])
    assert _renamed(_with(6, next_producer_id=8_000), begins=later) == _renamed(_IMAGE, begins=base)
    assert _renamed(_with(6, next_producer_id=9_000), begins=later) != _renamed(_IMAGE, begins=base)


_MUTANTS: dict[str, MetadataImage] = {
    "level": _with(0, feature_level=29),
    "controller's host": _with(
        1, end_points=(records.AdvertisedListener("CONTROLLER", "n2", 9193, 0),)
    ),
    "controller's feature": _with(1, features=_FEATURES[:1]),
    "rack": _with(2, rack="r2"),
    "incarnation": _with(2, incarnation_id=incarnation(11, 2)),
    "fenced": _with(2, fenced=True),
    "shutdown": _with(2, in_controlled_shutdown=True),
    "directory": _with(2, log_dirs=(directory(11, 1),)),
    "broker's feature": _with(2, features=_FEATURES[::-1]),
    "replicas": _with(4, replicas=(12, 11)),
    "isr": _with(4, isr=(11, 12)),
    "leader": _with(4, leader=12),
    "leader epoch": _with(4, leader_epoch=4),
    "partition epoch": _with(4, partition_epoch=6),
    "adding": _with(4, adding_replicas=(12,)),
    "removing": _with(4, removing_replicas=(12,)),
    "recovery": _with(4, leader_recovery_state=1),
    "replica's directory": _with(4, directories=(directory(11, 0), directory(12, 1))),
    "config": _with(5, value="6"),
    "config's name": _with(5, name="retention.bytes"),
    "config's topic": _with(5, resource_name="b"),
    "producer id": _with(6, next_producer_id=6_000),
    "no producer id": _image(_RECORDS[:-1]),
    "no config": _image([*_RECORDS[:5], _RECORDS[6]]),
    "one topic more": _image([*_RECORDS, records.TopicRecord("b", _OTHER_ID)]),
}


@pytest.mark.parametrize("mutant", _MUTANTS.values(), ids=_MUTANTS.keys())
def test_everything_else_of_an_image_is_seen(mutant: MetadataImage) -> None:
    assert list(differing("", _renamed(_IMAGE), _renamed(mutant)))


def test_a_topic_that_was_made_again_is_another() -> None:
    gone = _image([records.RemoveTopicRecord(_ID)], _IMAGE)
    assert _renamed(_IMAGE, gone, _of_topic(_OTHER_ID)) != _renamed(_IMAGE)
    assert _renamed(_IMAGE, gone, _of_topic(_OTHER_ID)) == _renamed(
        _of_topic("e5" * 16), gone, _of_topic("f6" * 16)
    )


def test_a_broker_that_registered_again_is_another() -> None:
    again = _with(2, broker_epoch=50)
    assert _renamed(_IMAGE, again) != _renamed(_IMAGE)
    assert _renamed(_IMAGE, again) == _renamed(_with(2, broker_epoch=8), _with(2, broker_epoch=9))


def test_of_replicas_that_a_controller_chose_the_number_counts() -> None:
    def chosen(**changes: Any) -> dict[str, Any]:
        record = msgspec.structs.replace(_PARTITION, topic_id=_OTHER_ID, **changes)
        name = f"{CHOSEN_PREFIX}1"
        return _renamed(_image([*_RECORDS, records.TopicRecord(name, _OTHER_ID), record]))

    assert chosen() == chosen(replicas=(14, 13), isr=(14, 13), leader=14)
    one = directory(11, 0)
    assert chosen() != chosen(replicas=(11,), directories=(one,))
    assert chosen() != chosen(leader_epoch=4)


def _told(message: msgspec.Struct, *, active: int = 1, broker_id: int = -1) -> dict[str, Any]:
    alike = Alike("cluster", MetadataImage())
    alike.see(_IMAGE)
    return alike.answer(message, active, broker_id)


def _refused(words: str) -> topics.EnlargedTopic:
    return topics.EnlargedTopic(name="a", error_code=42, error_message=words)


def _enlarged(*results: topics.EnlargedTopic) -> topics.CreatePartitionsResponse:
    return topics.CreatePartitionsResponse(throttle_time_ms=0, results=results)


def _created(topic_id: str, **changes: Any) -> topics.CreateTopicsResponse:
    whole: dict[str, Any] = {
        "name": "a",
        "topic_id": topic_id,
        "error_code": 0,
        "error_message": None,
        **changes,
    }
    return topics.CreateTopicsResponse(throttle_time_ms=0, topics=(topics.CreatedTopic(**whole),))


def test_ids_and_epochs_are_hidden_where_they_are_the_clusters_own() -> None:
    assert _told(_created(_ID)) != _told(_created(_OTHER_ID))
    assert _told(_created("00" * 16)) != _told(_created(_OTHER_ID))
    epoch, wrong = (
        brokers.BrokerRegistrationResponse(throttle_time_ms=0, error_code=0, broker_epoch=each)
        for each in (7, 8)
    )
    assert _told(epoch, broker_id=11) != _told(wrong, broker_id=11)
    assert _told(epoch, broker_id=11) != _told(epoch, broker_id=12)


@pytest.mark.parametrize(
    "changes", [{"name": "b"}, {"error_code": 1}, {"error_message": ""}, {"num_partitions": 2}]
)
def test_everything_else_of_an_answer_is_seen(changes: dict[str, Any]) -> None:
    assert list(differing("", _told(_created(_ID)), _told(_created(_ID, **changes))))


def test_which_controller_is_active_is_hidden_where_it_is_told() -> None:
    one = _enlarged(_refused("The active controller appears to be node 1."))
    other = _enlarged(_refused("The active controller appears to be node 3."))
    assert _told(one) == _told(other)
    assert _told(one) != _told(_enlarged(_refused("The active controller appears to be gone.")))
    described = cluster.DescribeClusterResponse(
        throttle_time_ms=0, error_code=0, cluster_id="cluster", controller_id=2, brokers=()
    )
    third = msgspec.structs.replace(described, controller_id=3)
    assert _told(described, active=2) == _told(third, active=3)
    assert _told(described, active=3) != _told(third, active=3)


def test_orders_of_hash_maps_are_hidden_and_no_others() -> None:
    a, b = _refused("x"), topics.EnlargedTopic(name="b", error_code=0)
    assert _told(_enlarged(a, b)) == _told(_enlarged(b, a))
    assert _told(_enlarged(a, b)) != _told(_enlarged(b, b))
    features = [
        controllers.UpdatedFeature(feature=name, error_code=0, error_message=None)
        for name in ("x", "y")
    ]

    def updated(*results: controllers.UpdatedFeature) -> dict[str, Any]:
        return _told(
            controllers.UpdateFeaturesResponse(
                throttle_time_ms=0, error_code=0, error_message=None, results=results
            )
        )

    assert updated(*features) != updated(*reversed(features))


def test_an_inner_order_is_hidden_within_its_own_item() -> None:
    def elected(*names_and_numbers: tuple[str, tuple[int, ...]]) -> dict[str, Any]:
        return _told(
            partitions.ElectLeadersResponse(
                throttle_time_ms=0,
                replica_election_results=tuple(
                    partitions.ElectedTopic(
                        topic=name,
                        partition_result=tuple(
                            partitions.ElectedPartition(
                                partition_id=number, error_code=0, error_message=None
                            )
                            for number in numbers
                        ),
                    )
                    for name, numbers in names_and_numbers
                ),
            )
        )

    assert elected(("a", (0, 1)), ("b", (2,))) == elected(("b", (2,)), ("a", (1, 0)))
    assert elected(("a", (0, 1)), ("b", (2,))) != elected(("a", (0,)), ("b", (1, 2)))


def test_codes_are_found_wherever_they_are() -> None:
    answer = configs.AlterConfigsResponse(
        throttle_time_ms=0,
        responses=(
            configs.AlteredResource(
                error_code=40, error_message=None, resource_type=2, resource_name="a"
            ),
        ),
    )
    assert list(codes(msgspec.to_builtins(answer))) == [40]
    assert list(codes(_told(answer))) == [40]
