"""Metadata records in neutral form: what clients asked for is named with its topic."""

from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.errors import RecordError
from splitbrain.nodes.metadata.image import MetadataImage, Provenance
from splitbrain.nodes.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.metadata.snapshot import encode_image, snapshot_id_of
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.machine.configuration import (
    Listener,
    NodeConfiguration,
    encode_configuration,
)
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.reading import LoggedRecord
from splitbrain.nodes.storage.snapshots import write_snapshot
from splitbrain.nodes.wire.control import LeaderChange
from splitbrain.systems.kraft.committed_log import committed_log, contents, names_before
from tests.unit.nodes.controller.clusters import partition

A, B = "a" * 32, "b" * 32


def created(name: str, topic_id: str, count: int) -> list[MetadataRecord]:
    partitions = [partition(topic_id, number, (4,)) for number in range(count)]
    return [TopicRecord(name, topic_id), ConfigRecord(2, name, "k", "v"), *partitions]


def logged(records: list[MetadataRecord | None]) -> list[LoggedRecord]:
    return [
        LoggedRecord(
            offset=Offset(place),
            epoch=Epoch(1),
            timestamp_ms=0,
            key=None,
            value=b"" if record is None else encode_record(record),
            is_control=record is None,
        )
        for place, record in enumerate(records)
    ]


def told(records: list[MetadataRecord | None], **names: str) -> list[tuple[object, ...]]:
    return [tuple(one) for one in contents(logged(records), names)]


def test_a_creation_is_named_with_the_number_of_its_partitions() -> None:
    assert told([None, *created("t", A, 2), NoOpRecord(), *created("u", B, 1)]) == [
        (None, None, None),
        ("create", "t", 2),
        (None, None, "ConfigRecord"),
        (None, None, "PartitionRecord"),
        (None, None, "PartitionRecord"),
        (None, None, "NoOpRecord"),
        ("create", "u", 1),
        (None, None, "ConfigRecord"),
        (None, None, "PartitionRecord"),
    ]


def test_partitions_that_came_later_are_no_part_of_the_creation() -> None:
    records = [*created("t", A, 1), NoOpRecord(), partition(A, 1, (4,))]
    assert told([*records])[0] == ("create", "t", 1)
    assert told([TopicRecord("t", A), partition(B, 0, (4,))])[0] == ("create", "t", 0)


def test_a_deletion_is_named_by_the_topic_that_had_the_id() -> None:
    records = [*created("t", A, 1), RemoveTopicRecord(A), *created("t", B, 1), RemoveTopicRecord(B)]
    assert [one for one in told([*records]) if one[0] == "delete"] == [("delete", "t", None)] * 2
    assert told([RemoveTopicRecord(A)], **{A: "old"}) == [("delete", "old", None)]


def test_a_topic_that_nobody_knows_is_not_guessed() -> None:
    assert told([RemoveTopicRecord(A)]) == [(None, None, "RemoveTopicRecord")]


def test_what_is_no_metadata_is_refused() -> None:
    record = logged([NoOpRecord()])[0]
    with pytest.raises(RecordError):
        contents([LoggedRecord(record.offset, record.epoch, 0, None, b"\x09", False)], {})


def configured(folder: Path) -> Path:
    """A node's data folder beside the configuration that says what stands above its log."""
    listener = Listener("127.0.0.1", 1)
    configuration = NodeConfiguration(
        name="n1",
        node_id=1,
        directory_id="ab" * 16,
        cluster_id="c" * 22,
        voters=(Voter(NodeId(1), DirectoryId("ab" * 16), "n1", 1),),
        quorum_listener=listener,
        client_listener=listener,
        data_folder="/data",
        state_machine="metadata",
    )
    (folder / "config").mkdir()
    (folder / "config" / "node.json").write_bytes(encode_configuration(configuration))
    data = folder / "data"
    data.mkdir()
    identity = StorageIdentity("c", NodeId(1), DirectoryId("ab" * 16), ())
    format_storage(DiskFileSystem(), data, identity)
    return data


def test_the_log_of_a_controller_is_dumped_by_its_configuration(tmp_path: Path) -> None:
    data = configured(tmp_path)
    log, _ = LogStore.open(DiskFileSystem(), data)
    log.append_control(Offset(0), Epoch(1), 1, LeaderChange(NodeId(1), (), ()))
    records = [*created("t", A, 2), RemoveTopicRecord(A)]
    log.append_records(Offset(1), Epoch(1), 1, [(None, encode_record(one)) for one in records])
    log.flush()
    log.close()
    dumped = committed_log(NodeName("n1"), data, None, converged_end=6)
    assert [(one.offset, one.f, one.key, one.value) for one in dumped.records if one.f] == [
        (1, "create", "t", 2),
        (5, "delete", "t", None),
    ]
    assert len({one.digest for one in dumped.records}) == 6


def test_topics_of_a_lost_beginning_are_named_by_the_snapshot(tmp_path: Path) -> None:
    data = configured(tmp_path)
    delta = MetadataDelta(MetadataImage())
    for record in [FeatureLevelRecord("metadata.version", 30), *created("t", A, 1)]:
        delta.replay(record)
    image = delta.apply(Provenance(Offset(4), Epoch(1), 0))
    write_snapshot(DiskFileSystem(), data, snapshot_id_of(image), encode_image(image))
    assert names_before(data, 5) == {A: "t"}
    assert names_before(data, 0) == {}
