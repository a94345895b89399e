"""The neutral dump: what is in it, how far it goes; the records that bytes of a log belong to."""

import re
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.errors import RecordError
from splitbrain.nodes.metadata.image import MetadataImage, Provenance
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.metadata.snapshot import encode_image, snapshot_id_of
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.registers.commands import Add, CompareAndSet, Write, encode_command
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
from splitbrain.nodes.wire.batches import HEADER_BYTES, Record, RecordBatch, encode_batch
from splitbrain.nodes.wire.control import LeaderChange
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.committed_log import (
    committed_end,
    committed_log,
    contents,
    names_before,
    record_at,
)
from tests.unit.nodes.controller.clusters import broker, partition

N1 = NodeName("n1")
COMMANDS = [Write("o1", "r", 1), CompareAndSet("o2", "r", 1, 2), Add("o3", "s", 5)]


def make_log(folder: Path, timestamp_ms: int = 1) -> Path:
    """A folder with a leader change and three commands."""
    filesystem = DiskFileSystem()
    folder.mkdir()
    identity = StorageIdentity("c", NodeId(1), DirectoryId("ab" * 16), ())
    format_storage(filesystem, folder, identity)
    log, _ = LogStore.open(filesystem, folder)
    log.append_control(Offset(0), Epoch(1), 1, LeaderChange(NodeId(1), (), ()))
    payloads = [(None, encode_command(command)) for command in COMMANDS]
    log.append_records(Offset(1), Epoch(1), timestamp_ms, payloads)
    log.flush()
    log.close()
    return folder


def write_events(path: Path, *events: StateEvent) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    return path


def event(kind: str, offset: int, incarnation: int = 0) -> StateEvent:
    return StateEvent("n1", 0, incarnation, kind, 1, offset=offset)  # type: ignore[arg-type]


def test_records_are_told_in_neutral_form(tmp_path: Path) -> None:
    log = committed_log(N1, make_log(tmp_path / "data"), None, converged_end=4)
    assert (log.node, log.start_offset, log.end_offset) == ("n1", 0, 4)
    told = [(r.offset, r.epoch, r.f, r.key, r.value) for r in log.records]
    assert told == [
        (0, 1, None, None, None),
        (1, 1, "write", "r", 1),
        (2, 1, "cas", "r", [1, 2]),
        (3, 1, "add", "s", 5),
    ]


def test_what_the_node_never_called_committed_is_left_out(tmp_path: Path) -> None:
    events = write_events(tmp_path / "events", event("high-watermark", 1), event("append", 4))
    log = committed_log(N1, make_log(tmp_path / "data"), events, converged_end=-1)
    assert log.end_offset == 1


def test_the_highest_claim_of_any_life_and_of_the_status_counts(tmp_path: Path) -> None:
    events = write_events(
        tmp_path / "events", event("commit", 3), event("high-watermark", 2, incarnation=1)
    )
    data = make_log(tmp_path / "data")
    assert committed_log(N1, data, events, converged_end=1).end_offset == 3
    assert committed_log(N1, data, events, converged_end=4).end_offset == 4


def test_a_log_that_ends_below_its_claim_is_dumped_as_it_is(tmp_path: Path) -> None:
    log = committed_log(N1, make_log(tmp_path / "data"), None, converged_end=9)
    assert log.end_offset == 4


def test_equal_bytes_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    logs = [
        committed_log(N1, make_log(tmp_path / str(number), timestamp_ms), None, 4)
        for number, timestamp_ms in enumerate((1, 1, 2))
    ]
    first, same, other = ([record.digest for record in log.records] for log in logs)
    assert first == same
    assert first[0] == other[0]
    assert set(first[1:]).isdisjoint(other[1:])


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = write_events(tmp_path / "events", event("high-watermark", 2))
    with path.open("ab") as file:
        file.write(b'{"node":"n1","se\n')
    assert committed_end(path) == 2
    assert committed_end(tmp_path / "missing") == -1


def test_the_folder_of_a_dead_run_is_enough(tmp_path: Path) -> None:
    state = tmp_path / "n1" / "state"
    state.mkdir(parents=True)
    write_events(state / "state_events.jsonl", event("high-watermark", 2))
    log = KraftSystem().committed_log(N1, make_log(tmp_path / "n1" / "data"))
    assert log.end_offset == 2


def test_without_any_claim_nothing_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="neither state events"):
        committed_log(N1, make_log(tmp_path / "data"), None, converged_end=-1)


def test_an_unreadable_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="nowhere"):
        committed_log(N1, tmp_path / "nowhere", None, converged_end=1)


LOG = "__cluster_metadata-0/00000000000000000007.log"


def batch(base: int, count: int) -> bytes:
    records = tuple(Record(Offset(base + n), 1, None, b"value") for n in range(count))
    return encode_batch(RecordBatch(Offset(base), Epoch(1), 1, 1, records))


def test_each_byte_of_the_log_belongs_to_the_record_of_its_batch() -> None:
    first, second, third = batch(7, 1), batch(8, 3), batch(11, 1)
    log = first + second + third
    for position in range(len(log)):
        hit = record_at(LOG, log[:position])
        assert hit is not None
        if position < len(first):
            wanted = "the record at offset 7 of the log"
        elif position < len(first) + len(second):
            wanted = "one of the records at offsets 8 to 10 of the log"
        else:
            wanted = "the record at offset 11 of the log"
        starts = (0, len(first), len(first) + len(second))
        if position - max(start for start in starts if start <= position) >= HEADER_BYTES:
            assert hit == wanted
        else:
            # The header that tells how many the batch holds is not whole before that byte.
            assert hit.endswith(" of the log, or its batch's header")
            assert re.findall(r"\d+", hit) == re.findall(r"\d+", wanted)[:1]


def test_what_is_behind_the_log_is_the_next_record() -> None:
    assert record_at(LOG, batch(7, 2)) == "the record at offset 9 of the log, or its batch's header"
    assert record_at(LOG, b"") == "the record at offset 7 of the log, or its batch's header"


def test_other_files_hold_no_records() -> None:
    assert record_at("__cluster_metadata-0/quorum-state", b"x" * 200) is None
    assert record_at("elsewhere/00000000000000000007.log", b"") is None


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


def test_records_tell_which_brokers_serve() -> None:
    registered = broker(4, fenced=True)
    live = msgspec.structs.replace(registered, fenced=False)
    records: dict[MetadataRecord, bool | None] = {
        registered: False,
        live: True,
        BrokerRegistrationChangeRecord(4, 9, fenced=-1): True,
        BrokerRegistrationChangeRecord(4, 9, fenced=1): False,
        BrokerRegistrationChangeRecord(4, 9, in_controlled_shutdown=1): None,
        UnfenceBrokerRecord(4, 9): True,
        FenceBrokerRecord(4, 9): False,
        UnregisterBrokerRecord(4, 9): False,
    }
    for record, serves in records.items():
        name = type(record).__name__
        standing = {"record": name, "observer": "n4", "serves": serves}
        assert told([record]) == [(None, None, name if serves is None else standing)]


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
