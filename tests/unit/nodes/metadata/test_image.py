"""Image and delta: equal to Kafka's own, copied on write, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import METADATA_VERSIONS, MetadataDelta, image_after, image_of
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import MIGRATING_DIRECTORY
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import RECORD_TYPES, decode_record, encode_record
from splitbrain.nodes.metadata.transactions import Settled
from tests.unit.nodes.metadata.courses import after, at_offset, course
from tests.unit.nodes.metadata.definitions import FOLDER

TOPIC_ID = "ab" * 16
OTHER_ID = "cd" * 16
BROKER = records.RegisterBrokerRecord(
    broker_id=1, incarnation_id=OTHER_ID, broker_epoch=5, end_points=(), features=(), rack=None
)


def partition(number: int, **said: object) -> records.PartitionRecord:
    whole = {
        "partition_id": number,
        "topic_id": TOPIC_ID,
        "replicas": (1, 2),
        "isr": (1, 2),
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": (TOPIC_ID, OTHER_ID),
    }
    return records.PartitionRecord(**(whole | said))  # pyright: ignore[reportArgumentType]


def change(number: int, **said: object) -> records.PartitionChangeRecord:
    whole = {"partition_id": number, "topic_id": TOPIC_ID}
    return records.PartitionChangeRecord(**(whole | said))  # pyright: ignore[reportArgumentType]


CLUSTER: list[MetadataRecord] = [
    records.FeatureLevelRecord("metadata.version", 30),
    BROKER,
    records.TopicRecord("t", TOPIC_ID),
    partition(0),
    partition(1),
    records.ConfigRecord(2, "t", "retention.ms", "1"),
    records.ProducerIdsRecord(broker_id=1, next_producer_id=1000),
]
IMAGE = image_of(CLUSTER, at_offset(6))


def test_images_are_those_of_kafka() -> None:
    for line in (FOLDER / "image_vectors.tsv").read_text().splitlines():
        played, content = (
            [decode_record(bytes.fromhex(each)) for each in part.split()]
            for part in line.split("\t")
        )
        provenance = at_offset(len(played) - 1)
        ours = image_of(played, provenance)
        assert ours == image_of(content, provenance)
        # The same records in the same versions; Kafka sorts some parts by its hashes.
        quota = records.ClientQuotaRecord
        written = [
            encode_record(each) for each in image_records(ours) if not isinstance(each, quota)
        ]
        theirs = [bytes.fromhex(each) for each in line.split("\t")[1].split()]
        assert sorted(written) == sorted(each for each in theirs if each[1] != 14)


@settings(max_examples=60)
@given(st.integers(0, 1 << 32), st.integers(1, 80))
def test_a_snapshot_of_an_image_tells_the_same_image(seed: int, count: int) -> None:
    _, images = course(seed, count)
    content = list(image_records(images[-1]))
    again = image_of(content, images[-1].provenance)
    assert again == images[-1]
    # The way that led there does not show.
    assert list(image_records(again)) == content


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.data())
def test_however_records_are_parted_into_deltas_the_image_is_the_same(
    seed: int, data: st.DataObject
) -> None:
    written, images = course(seed, 60)
    image, position = MetadataImage(), 0
    while position < len(written):
        end = data.draw(st.integers(position + 1, len(written)))
        settled = Settled(written[position:end], at_offset(end - 1))
        image, position = image_after(image, settled), end
        assert image == images[end - 1]


@settings(max_examples=40)
@given(st.integers(0, 1 << 32))
def test_an_image_never_changes(seed: int) -> None:
    written, images = course(seed, 40)
    content = [list(image_records(image)) for image in images]
    for image, record in zip(images, written[1:], strict=False):
        after(image, [record], 99)
    assert [list(image_records(image)) for image in images] == content


def test_what_does_not_change_is_shared() -> None:
    next_image = after(IMAGE, [change(1, leader=2)], 7)
    assert next_image.brokers is IMAGE.brokers
    assert next_image.configs is IMAGE.configs
    before, now = IMAGE.topics.by_id[TOPIC_ID], next_image.topics.by_id[TOPIC_ID]
    assert now.partitions[0] is before.partitions[0]
    assert next_image.topics.ids_by_name is IMAGE.topics.ids_by_name
    assert after(IMAGE, [records.NoOpRecord()], 7).topics is IMAGE.topics


def test_equal_replicas_are_one_object() -> None:
    topic = IMAGE.topics.by_id[TOPIC_ID]
    first, second = topic.partitions
    assert first.replicas is first.isr is second.replicas
    assert first.directories is second.directories


def test_every_record_type_has_a_replay() -> None:
    assert set(MetadataDelta.REPLAYS) == {each.struct for each in RECORD_TYPES}


def test_a_change_keeps_what_it_does_not_name() -> None:
    topics = after(IMAGE, [change(0, isr=(2,), leader=2), change(0, leader=2)], 8).topics
    state = topics.partition(TOPIC_ID, 0)
    assert state is not None
    # Naming the leader that leads already is an election too.
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (2, 2, 2)
    assert (state.isr, state.replicas) == ((2,), (1, 2))
    assert topics.partition(TOPIC_ID, 2) is topics.partition(OTHER_ID, 0) is None
    assert topics.partition(TOPIC_ID, -1) is None


def test_fencing_and_controlled_shutdown() -> None:
    shutting = records.BrokerRegistrationChangeRecord(1, 5, fenced=-1, in_controlled_shutdown=1)
    image = after(IMAGE, [shutting], 7)
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (False, True)
    image = after(image, [records.FenceBrokerRecord(1, 5)], 8)
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    image = after(image, [records.BrokerRegistrationChangeRecord(1, 5)], 9)
    assert image.brokers[1].fenced
    assert 1 not in after(image, [records.UnregisterBrokerRecord(1, 5)], 10).brokers


def test_a_removed_topic_takes_its_configuration_and_its_name_along() -> None:
    image = after(IMAGE, [records.RemoveTopicRecord(TOPIC_ID)], 7)
    assert (image.topics.by_id, image.topics.ids_by_name, image.configs) == ({}, {}, {})
    assert image.topics.named("t") is None
    again = after(image, [records.TopicRecord("t", OTHER_ID)], 8)
    topic = again.topics.named("t")
    assert topic is not None
    assert topic.topic_id == OTHER_ID


def test_partitions_may_come_in_any_order() -> None:
    topic = records.TopicRecord("u", OTHER_ID)
    parts = [partition(number, topic_id=OTHER_ID, leader=number) for number in (2, 0, 1)]
    elected = change(2, topic_id=OTHER_ID, leader=7)
    image = after(IMAGE, [topic, parts[0], elected, *parts[1:]], 7)
    assert [each.leader for each in image.topics.by_id[OTHER_ID].partitions] == [0, 1, 7]


def test_partitions_without_directories_are_migrating() -> None:
    image = after(IMAGE, [partition(0, directories=())], 7)
    state = image.topics.partition(TOPIC_ID, 0)
    assert state is not None
    assert state.directories == (MIGRATING_DIRECTORY, MIGRATING_DIRECTORY)
    moved = after(image, [change(0, replicas=(1, 2, 3))], 8).topics.partition(TOPIC_ID, 0)
    assert moved is not None
    assert moved.directories == (MIGRATING_DIRECTORY,) * 3


def test_eligible_leaders_are_cleared_and_count_as_a_change_where_there_were_any() -> None:
    image = after(IMAGE, [partition(0, eligible_leader_replicas=(2,))], 7)
    for name in ("t", ""):
        cleared = after(image, [records.ClearElrRecord(name)], 8).topics.by_id[TOPIC_ID]
        assert [each.elr for each in cleared.partitions] == [(), ()]
        assert [each.partition_epoch for each in cleared.partitions] == [1, 0]
    cleared = after(IMAGE, [partition(0, last_known_elr=(2,)), records.ClearElrRecord("t")], 8)
    assert cleared.topics.by_id[TOPIC_ID].partitions[0].last_known_elr == ()
    assert after(IMAGE, [records.ClearElrRecord("")], 8).topics is IMAGE.topics


def test_features_of_raft_are_not_the_images() -> None:
    image = after(IMAGE, [records.FeatureLevelRecord("kraft.version", 1)], 7)
    assert image.features == {"metadata.version": 30}
    assert image.metadata_version == 30
    assert MetadataImage().metadata_version is None


def test_a_quota_is_for_an_entity_however_its_parts_are_ordered() -> None:
    parts = (records.QuotaEntity("user", "ann"), records.QuotaEntity("client-id", None))
    quota = records.ClientQuotaRecord(parts, "rate", 1.5, False)
    image = after(IMAGE, [quota], 7)
    removal = records.ClientQuotaRecord(parts[::-1], "rate", 0.0, True)
    assert [each.value for each in image.quotas.values()] == [1.5]
    assert after(image, [removal], 8).quotas == {}


@pytest.mark.parametrize(
    ("contradiction", "problem"),
    [
        (partition(0, topic_id=OTHER_ID), "which is not there"),
        (change(0, topic_id=OTHER_ID), "which is not there"),
        (change(2), "partition 2 of topic t cannot change: it is not there"),
        (partition(-1), "topic t has no partition -1"),
        (partition(3), "topic t has a partition 3 and none 2"),
        (partition(1 << 30), "topic t has a partition 1073741824 and none 2"),
        (partition(0, directories=(TOPIC_ID,)), "2 replicas in 1 directories"),
        (change(0, replicas=(1,)), "1 replicas in 2 directories"),
        (partition(0, leader_recovery_state=2), "unknown leader recovery state 2"),
        (change(0, leader_recovery_state=5), "unknown leader recovery state 5"),
        (records.TopicRecord("t", OTHER_ID), "with its name is"),
        (records.TopicRecord("u", TOPIC_ID), "with its id is"),
        (records.RemoveTopicRecord(OTHER_ID), "cannot be removed: it is not there"),
        (records.ClearElrRecord("u"), "topic u cannot forget its ELR"),
        (records.UnregisterBrokerRecord(1, 4), "cannot unregister broker 1, .* 4: it is with 5"),
        (records.UnregisterBrokerRecord(2, 5), "cannot unregister broker 2, .* 5: it is not"),
        (records.FenceBrokerRecord(1, 6), "cannot fence broker 1"),
        (records.UnfenceBrokerRecord(3, 6), "cannot unfence broker 3"),
        (records.BrokerRegistrationChangeRecord(1, 4), "cannot change broker 1"),
        (records.BrokerRegistrationChangeRecord(1, 5, fenced=2), "says 2 where"),
        (records.BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=-1), "says -1 where"),
        (replace(BROKER, broker_epoch=4), "epoch 5, and would go back to 4"),
        (records.ProducerIdsRecord(broker_id=1, next_producer_id=1000), "from 1000 on"),
        (records.RemoveAccessControlEntryRecord(TOPIC_ID), "access rule .* is not there"),
        (
            records.FeatureLevelRecord("metadata.version", METADATA_VERSIONS[-1] + 1),
            "metadata.version 31 is unknown to this build, which reads 7 to 30",
        ),
        (records.BeginTransactionRecord(), "for the transaction buffer"),
    ],
)
def test_what_contradicts_the_image_is_refused(contradiction: MetadataRecord, problem: str) -> None:
    content = list(image_records(IMAGE))
    with pytest.raises(ContradictionError, match=problem):
        after(IMAGE, [contradiction], 7)
    assert list(image_records(IMAGE)) == content
