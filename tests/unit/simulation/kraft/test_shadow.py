"""A shadow log follows what was done to a log, and knows where its bytes lie."""

from pathlib import Path

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.shadow import Codec, Entry, ShadowLog

FOLDER = Path("/n1")


def raw_batch(base: int, epoch: int, *payloads: bytes) -> bytes:
    return encode_payloads(Offset(base), Epoch(epoch), 0, [(None, payload) for payload in payloads])


def disk_with(*segments: tuple[int, bytes], is_synced: bool = True) -> MemoryFileSystem:
    disk = MemoryFileSystem(journals=False)
    disk.make_folder(log_folder(FOLDER))
    for base, content in segments:
        file = disk.open(log_folder(FOLDER) / segment_name(base), create=True)
        file.write_at(0, content)
        if is_synced:
            file.sync()
    if is_synced:
        disk.sync_folder(log_folder(FOLDER))
    return disk


def log_on(disk: MemoryFileSystem) -> ShadowLog:
    log = ShadowLog(FOLDER, Codec())
    log.read_disk(disk, ())
    return log


A, B, C = raw_batch(0, 1, b"a"), raw_batch(1, 1, b"b", b"c"), raw_batch(3, 2, b"d")
ENTRIES = [Entry(1, b"a"), Entry(1, b"b"), Entry(1, b"c"), Entry(2, b"d")]


def test_the_disk_is_read_over_several_segments() -> None:
    assert log_on(disk_with((0, A + B), (3, C))).entries == ENTRIES


def test_the_disk_is_read_up_to_the_first_damage_or_gap() -> None:
    damaged = bytearray(B)
    damaged[-1] ^= 1
    assert log_on(disk_with((0, A + bytes(damaged)), (3, C))).entries == ENTRIES[:1]
    assert log_on(disk_with((0, A), (3, C))).entries == ENTRIES[:1]
    assert log_on(disk_with((0, A + B[:-1]), (3, C))).entries == ENTRIES[:1]


def test_only_synced_bytes_count() -> None:
    assert log_on(disk_with((0, A), is_synced=False)).entries == []


def test_what_is_appended_is_durable_once_it_is_synced() -> None:
    disk = disk_with((0, A))
    log = log_on(disk)
    file = disk.open(log_folder(FOLDER) / segment_name(0))
    file.write_at(len(A), bytes(len(B)))
    log.append_raw(B, 0, len(A) + len(B))
    assert log.entries == ENTRIES[:3]
    assert log.is_durable(disk, 0, 1)
    assert not log.is_durable(disk, 0, 2)
    file.sync()
    assert log.is_durable(disk, 0, 3)


def test_a_segment_without_a_durable_name_is_not_durable() -> None:
    disk = disk_with((0, A + B))
    log = log_on(disk)
    file = disk.open(log_folder(FOLDER) / segment_name(3), create=True)
    file.write_at(0, C)
    file.sync()
    log.append([ENTRIES[3]], 3, len(C))
    assert not log.is_durable(disk, 0, 4)
    disk.sync_folder(log_folder(FOLDER))
    assert log.is_durable(disk, 0, 4)


def test_an_append_after_a_truncation_lies_where_the_dropped_batch_lay() -> None:
    disk = disk_with((0, A + B), (3, C))
    log = log_on(disk)
    log.agreed = 4
    log.truncate(1)
    assert (log.entries, log.agreed) == (ENTRIES[:1], 1)
    file = disk.open(log_folder(FOLDER) / segment_name(0))
    file.truncate(len(A))
    other = raw_batch(1, 3, b"other")
    file.write_at(len(A), other)
    log.append([Entry(3, b"other")], 0, len(A) + len(other))
    assert not log.is_durable(disk, 1, 2)
    file.sync()
    assert log.is_durable(disk, 0, 2)
    assert log.position_of(1) == len(A)
    assert log.position_of(2) == len(A) + len(other)


def test_raft_s_own_records_have_no_payload() -> None:
    raw = encode_payloads(Offset(0), Epoch(1), 0, [(b"k", b"v")], is_control=True)
    assert log_on(disk_with((0, raw))).entries == [Entry(1, None)]


def test_a_part_of_a_log_knows_its_places_and_leaves_the_whole_as_it_was() -> None:
    disk = disk_with((0, A + B), (3, C))
    whole = log_on(disk)
    part = whole.upto(3)
    assert part.entries == ENTRIES[:3]
    assert whole.entries == ENTRIES
    assert part.position_of(3) == len(A + B)
    assert part.is_durable(disk, 0, 3)
    file = disk.open(log_folder(FOLDER) / segment_name(0))
    file.write_at(len(A), bytes(len(B)))
    assert not part.is_durable(disk, 0, 3), "it asks the disk, at the place of each batch"
    part.append_raw(C, 3, len(C))
    assert part.position_of(4) == len(A + B + C)
