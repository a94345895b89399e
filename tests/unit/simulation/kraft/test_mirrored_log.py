"""A mirrored log follows what was done to a log; what came before it stands in copies."""

from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.copies import Copies, all_below
from splitbrain.simulation.kraft.disk_past import DiskPast
from splitbrain.simulation.kraft.mirrored_log import Codec, Entry, MirroredLog
from tests.unit.simulation.kraft.small_quorum import Quorum

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


def log_on(disk: MemoryFileSystem) -> MirroredLog:
    log = MirroredLog(FOLDER, Codec())
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


#: Where the epoch's last byte stands in a batch; no checksum covers it.
EPOCH_BYTE = 15
FIRST = raw_batch(0, 1, b"0", b"1") + raw_batch(2, 1, b"2")
SECOND = raw_batch(3, 2, b"3", b"4")


class Machine:
    def __init__(self, *segments: tuple[int, bytes]) -> None:
        self.disk = MemoryFileSystem(journals=False)
        self.past = DiskPast(self.disk)
        self.copies = Copies(self.disk, FOLDER, self.past)
        self.disk.make_folder(log_folder(FOLDER))
        for base, content in segments:
            file = self.disk.open(self.path(base), create=True)
            file.write_at(0, content)
            file.sync()
        self.disk.sync_folder(log_folder(FOLDER))

    def path(self, base: int) -> Path:
        return log_folder(FOLDER) / segment_name(base)

    def lose(self, base: int) -> None:
        self.disk.remove(self.path(base))
        self.disk.sync_folder(log_folder(FOLDER))

    def values(self, end: int, epoch: int) -> list[bytes | None] | None:
        records = self.copies.below(snapshot(end, epoch))
        return None if records is None else [record.value for record in records]


def snapshot(end: int, epoch: int) -> SnapshotId:
    return SnapshotId(Offset(end), Epoch(epoch))


def test_copies_outlive_the_segments_and_go_on_in_the_log() -> None:
    machine = Machine((0, FIRST), (3, SECOND))
    machine.copies.take(snapshot(2, 1))
    machine.copies.take(snapshot(3, 1))
    machine.lose(0)
    assert machine.values(3, 1) == [b"0", b"1", b"2"]
    assert machine.values(5, 2) == [b"0", b"1", b"2", b"3", b"4"]
    machine.lose(3)
    assert machine.values(5, 2) is None
    machine.copies.forget()
    assert machine.values(3, 1) is None


def test_what_is_still_in_the_log_needs_no_copy() -> None:
    assert Machine((0, FIRST), (3, SECOND)).values(4, 2) == [b"0", b"1", b"2", b"3"]
    assert Machine().values(0, -1) == []


@pytest.mark.parametrize(("end", "epoch"), [(3, 2), (5, 1), (6, 2), (9, 2)])
def test_a_log_that_the_snapshot_does_not_stand_for_is_no_source(end: int, epoch: int) -> None:
    machine = Machine((0, FIRST), (3, SECOND))
    machine.copies.take(snapshot(end, epoch))
    assert machine.values(end, epoch) is None
    machine.lose(0)
    assert machine.values(3, 1) is None


def test_a_log_with_a_gap_is_no_source() -> None:
    assert Machine((3, SECOND)).values(5, 2) is None
    assert Machine((0, FIRST[:-1]), (3, SECOND)).values(5, 2) is None
    assert Machine((0, FIRST), (4, raw_batch(4, 2, b"4"))).values(5, 2) is None


def test_a_file_that_rotted_is_no_source() -> None:
    machine = Machine((0, FIRST), (3, SECOND))
    machine.disk.rot(machine.path(0), EPOCH_BYTE, 1)
    machine.copies.take(snapshot(3, 1))
    assert machine.values(3, 1) is None


def test_what_one_machine_never_had_another_has() -> None:
    installed, whole = Machine((5, b"")), Machine((0, FIRST), (3, SECOND))
    sources = [installed.copies, whole.copies]
    records = all_below(snapshot(5, 2), sources)
    assert records is not None
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert all_below(snapshot(5, 3), sources) is None
    assert all_below(snapshot(5, 2), []) is None


def test_what_another_has_is_copied_before_that_one_loses_it_too() -> None:
    installed, whole = Machine((5, raw_batch(5, 2, b"5"))), Machine((0, FIRST), (3, SECOND))
    installed.copies.take(snapshot(5, 2))
    assert installed.values(5, 2) is None
    installed.copies.take(snapshot(5, 2), [whole.copies])
    assert whole.values(6, 2) is None
    assert installed.values(6, 2) == [b"0", b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("retained", ["1", "3"])
def test_dumps_reach_down_to_the_first_record_through_snapshots_and_restarts(retained: str) -> None:
    quorum = Quorum(
        settings={"snapshot_max_new_record_bytes": "300", "snapshots_retained_count": retained}
    )
    for value in range(6):
        quorum.write(value)
    for node in quorum.cluster.nodes:
        quorum.restart(node)
        quorum.run(1_000_000)
    quorum.write(6)
    assert all(machine.host.node.replica.log_start_offset > 0 for machine in quorum.machines)
    for node in quorum.cluster.nodes:
        log = quorum.cluster.committed_log(node)
        assert log is not None
        assert [record.offset for record in log.records] == list(range(quorum.end))
        assert [record.f for record in log.records].count("write") == 8
