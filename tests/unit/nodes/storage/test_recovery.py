"""Truncations by a restarted node, and reasons to refuse to start."""

import errno
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.reading import read_committed
from splitbrain.nodes.wire.batches import encode_payloads
from tests.unit.nodes.storage.disks import Disk

LOG = Path("/node/data/__cluster_metadata-0")
FIRST = LOG / "00000000000000000000.log"


def batch(offset: int, epoch: int = 1, value: bytes = b"v" * 20) -> bytes:
    return encode_payloads(Offset(offset), Epoch(epoch), 5, [(None, value)])


SIZE = len(batch(0))


@pytest.fixture
def log(disk: Disk) -> LogStore:
    """Six batches of epoch 1: four flushed and marked, two only appended."""
    store = disk.open_log()
    for offset in range(4):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
    store.flush()
    store.persist_mark()
    for offset in (4, 5):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
    disk.kill()
    return store


def overwrite(disk: Disk, path: Path, position: int, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.write_at(position, content)
    file.sync()


#: Rot of one batch: a byte of it and the bits that change; None: it is all zeros.
CHECKSUM = (70, 0x01)
SPOILED = {
    "checksum": CHECKSUM,
    "base offset": (7, 0x40),
    "epoch": (15, 0x40),
    "lower epoch": (15, 0x01),
    "length": (8, 0x70),
    "magic": (16, 0x01),
    "zeros": None,
}
SPOILERS = pytest.mark.parametrize("rot", SPOILED.values(), ids=SPOILED)


def spoil(disk: Disk, offset: int, rot: tuple[int, int] | None = CHECKSUM) -> None:
    if rot is None:
        overwrite(disk, FIRST, offset * SIZE, bytes(SIZE))
    else:
        disk.rot(FIRST, offset * SIZE + rot[0], rot[1])


@pytest.mark.usefixtures("log")
class TestOneSpoiledBatch:
    @SPOILERS
    @pytest.mark.parametrize("offset", [0, 2, 3])
    def test_below_the_mark_it_is_corruption_and_nothing_is_changed(
        self, disk: Disk, rot: tuple[int, int] | None, offset: int
    ) -> None:
        spoil(disk, offset, rot)
        before = {name: disk.read(LOG / name) for name in disk.list(LOG)}
        with pytest.raises(CorruptStorageError, match="offset 4 was flushed") as caught:
            disk.open_log()
        error = caught.value
        assert (error.path, error.offset, error.position) == (FIRST, offset, offset * SIZE)
        for part in (str(FIRST), f"at byte {offset * SIZE}", f"log offset {offset}", "restore"):
            assert part in str(error)
        assert {name: disk.read(LOG / name) for name in disk.list(LOG)} == before

    @SPOILERS
    def test_above_the_mark_it_is_a_torn_tail_also_when_a_valid_batch_follows(
        self, disk: Disk, rot: tuple[int, int] | None
    ) -> None:
        spoil(disk, 4, rot)
        assert disk.reopened_end() == 4
        assert disk.read(FIRST) == b"".join(batch(offset) for offset in range(4))
        disk.crash()
        assert disk.reopened_end() == 4

    @pytest.mark.parametrize("missing", range(1, SIZE, 7))
    def test_half_written_last_batch_is_cut_off(self, disk: Disk, missing: int) -> None:
        disk.open(FIRST).truncate(6 * SIZE - missing)
        assert disk.reopened_end() == 5

    def test_garbage_behind_the_log_is_cut_off(self, disk: Disk) -> None:
        overwrite(disk, FIRST, 6 * SIZE, b"\xff" * 5000)
        assert disk.reopened_end() == 6
        assert len(disk.read(FIRST)) == 6 * SIZE

    def test_file_that_ends_below_the_mark_is_corruption(self, disk: Disk) -> None:
        disk.open(FIRST).truncate(3 * SIZE)
        with pytest.raises(CorruptStorageError, match="the log ends here") as caught:
            disk.open_log()
        assert (caught.value.offset, caught.value.position) == (3, 3 * SIZE)

    def test_missing_segment_is_corruption(self, disk: Disk) -> None:
        disk.remove(FIRST)
        with pytest.raises(CorruptStorageError, match="has no segment file"):
            disk.open_log()

    def test_missing_mark_or_checkpoint_is_corruption(self, disk: Disk) -> None:
        content = disk.read(LOG / "durable-length")
        disk.remove(LOG / "durable-length")
        with pytest.raises(CorruptStorageError, match="durable-length"):
            disk.open_log()
        overwrite(disk, LOG / "durable-length", 0, content)
        disk.remove(LOG / "leader-epoch-checkpoint")
        with pytest.raises(CorruptStorageError, match="leader-epoch-checkpoint"):
            disk.open_log()

    def test_refused_folder_is_not_held(self, disk: Disk) -> None:
        spoil(disk, 0)
        for _ in range(2):
            with pytest.raises(CorruptStorageError):
                disk.open_log()

    def test_tools_read_up_to_the_torn_tail_and_refuse_corruption(self, disk: Disk) -> None:
        spoil(disk, 4)
        before = disk.read(FIRST)
        assert [r.offset for r in read_committed(disk.folder, filesystem=disk)] == [0, 1, 2, 3]
        assert disk.read(FIRST) == before
        spoil(disk, 1)
        with pytest.raises(CorruptStorageError):
            list(read_committed(disk.folder, filesystem=disk))

    def test_disk_that_fails_during_recovery_is_told(self, disk: Disk) -> None:
        disk.fault = lambda action, _: errno.EIO if action == "sync" else None
        with pytest.raises(StorageFailed, match="recover"):
            disk.open_log()
        disk.fault = None
        assert disk.reopened_end() == 6

    def test_kept_bytes_above_the_mark_are_written_again_before_they_are_synced(
        self, disk: Disk
    ) -> None:
        """An fsync that failed in an earlier life may have left clean pages that no disk holds."""
        disk.journal.clear()
        disk.reopened_end()
        done = [action for action, path in disk.journal if path == FIRST]
        assert done == ["write", "sync"]


def write_checkpoint(disk: Disk, text: str) -> None:
    disk.overwrite(LOG / "leader-epoch-checkpoint", text.encode())


@pytest.mark.usefixtures("log")
class TestEpochCheckpoint:
    def test_entries_past_the_logs_end_are_dropped(self, disk: Disk) -> None:
        write_checkpoint(disk, "0\n3\n1 0\n2 6\n3 9\n")
        assert disk.reopened_end() == 6
        assert disk.read(LOG / "leader-epoch-checkpoint") == b"0\n1\n1 0\n"

    @pytest.mark.parametrize("text", ["0\n0\n", "0\n1\n2 0\n", "0\n2\n1 0\n2 2\n", "0\n1\n1 1\n"])
    def test_disagreement_below_the_mark_is_corruption(self, disk: Disk, text: str) -> None:
        write_checkpoint(disk, text)
        with pytest.raises(CorruptStorageError, match="checkpoint"):
            disk.open_log()

    def test_disagreement_above_the_mark_is_a_torn_tail(self, disk: Disk) -> None:
        write_checkpoint(disk, "0\n2\n1 0\n2 5\n")
        assert disk.reopened_end() == 5

    def test_epoch_that_starts_within_a_batch_is_refused(self, disk: Disk) -> None:
        store = disk.open_log()
        store.append_records(Offset(6), Epoch(2), 5, [(None, b"a"), (None, b"b")])
        store.flush()
        store.close()
        write_checkpoint(disk, "0\n3\n1 0\n2 6\n3 7\n")
        with pytest.raises(CorruptStorageError, match="another epoch within the batch"):
            disk.open_log()

    def test_batch_of_an_epoch_that_was_never_flushed_is_cut_off(self, disk: Disk) -> None:
        """Its bytes reached the disk by write-back, the checkpoint did not: nobody was told."""
        store = disk.open_log()
        store.append_records(Offset(6), Epoch(2), 5, [(None, b"a")])
        disk.kill()
        assert disk.reopened_end() == 6


class TestSeveralSegments:
    @pytest.fixture
    def segments(self, disk: Disk) -> list[Path]:
        """Ten batches, two a segment; the first six flushed."""
        store = disk.open_log(2 * SIZE)
        for offset in range(10):
            store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
            if offset == 5:
                store.flush()
        disk.kill()
        return [LOG / f"{offset:020d}.log" for offset in range(0, 10, 2)]

    def test_torn_segment_takes_all_later_ones_with_it(
        self, disk: Disk, segments: list[Path]
    ) -> None:
        disk.rot(segments[3], SIZE + 70)
        assert disk.reopened_end() == 7
        assert not disk.exists(segments[4])

    def test_gap_above_the_mark_ends_the_log(self, disk: Disk, segments: list[Path]) -> None:
        disk.remove(segments[3])
        assert disk.reopened_end() == 6
        assert not disk.exists(segments[4])

    def test_gap_below_the_mark_is_corruption(self, disk: Disk, segments: list[Path]) -> None:
        disk.remove(segments[1])
        with pytest.raises(CorruptStorageError, match="gap") as caught:
            disk.open_log()
        assert caught.value.offset == 2

    def test_first_segment_that_is_gone_is_corruption(
        self, disk: Disk, segments: list[Path]
    ) -> None:
        disk.remove(segments[0])
        with pytest.raises(CorruptStorageError, match="starts at 2, and no snapshot"):
            disk.open_log()

    def test_segment_with_another_ones_name_ends_the_log(
        self, disk: Disk, segments: list[Path]
    ) -> None:
        disk.rename(segments[4], LOG / f"{9:020d}.log")
        assert disk.reopened_end() == 8

    def test_log_goes_on_after_its_tail_was_cut(self, disk: Disk, segments: list[Path]) -> None:
        disk.rot(segments[3], 70)
        store = disk.open_log(2 * SIZE)
        for offset in range(6, 12):
            store.append_records(Offset(offset), Epoch(2), 5, [(None, b"w")])
        store.flush()
        disk.crash()
        assert disk.reopened_end() == 12


def test_rot_in_the_group_that_the_mark_does_not_know_passes_for_a_torn_tail(disk: Disk) -> None:
    """The stated limit of the format: the mark lags by one flush group, not by two."""
    store = disk.open_log()
    for offset in range(3):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
        store.flush()
    disk.crash()
    disk.rot(FIRST, 2 * SIZE + 70)
    assert disk.reopened_end() == 2


def test_rot_in_the_group_before_the_last_is_detected(disk: Disk) -> None:
    store = disk.open_log()
    for offset in range(3):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
        store.flush()
    disk.crash()
    disk.rot(FIRST, SIZE + 70)
    with pytest.raises(CorruptStorageError):
        disk.open_log()


def test_committed_part_ends_where_the_caller_says(disk: Disk, log: LogStore) -> None:
    records = list(read_committed(disk.folder, 5, filesystem=disk))
    assert [(r.offset, r.epoch, r.value, r.is_control) for r in records] == [
        (offset, 1, b"v" * 20, False) for offset in range(5)
    ]


def test_stopped_nodes_folder_on_the_disk_is_read_without_its_lock(
    tmp_path: Path, identity: object
) -> None:
    from splitbrain.nodes.storage.disk import DiskFileSystem
    from splitbrain.nodes.storage.identity import StorageIdentity, format_storage

    assert isinstance(identity, StorageIdentity)
    format_storage(DiskFileSystem(), tmp_path / "data", identity)
    store, _ = LogStore.open(DiskFileSystem(), tmp_path / "data")
    store.append_records(Offset(0), Epoch(1), 5, [(b"k", b"v")])
    store.flush()
    (record,) = read_committed(tmp_path / "data")
    assert (record.key, record.value, record.timestamp_ms) == (b"k", b"v", 5)
    store.close()


def test_folder_of_a_real_controller_needs_no_mark(disk: Disk, log: LogStore) -> None:
    disk.remove(LOG / "durable-length")
    assert len(list(read_committed(disk.folder, filesystem=disk))) == 6
