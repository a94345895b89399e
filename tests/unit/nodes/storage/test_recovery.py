"""Truncations by a restarted node, and reasons to refuse to start."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.reading import read_committed
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.disk.file_system import MemoryFileSystem

LOG = Path("/node/data/__cluster_metadata-0")
FIRST = LOG / "00000000000000000000.log"


def batch(offset: int, epoch: int = 1, value: bytes = b"v" * 20) -> bytes:
    return encode_payloads(Offset(offset), Epoch(epoch), 5, [(None, value)])


SIZE = len(batch(0))


@pytest.fixture
def log(memory: MemoryFileSystem, memory_folder: Path) -> LogStore:
    """Six batches of epoch 1: four flushed and marked, two only appended."""
    store, _ = LogStore.open(memory, memory_folder)
    for offset in range(4):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
    store.flush()
    store.persist_mark()
    for offset in (4, 5):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
    memory.kill()
    return store


def overwrite(memory: MemoryFileSystem, path: Path, position: int, content: bytes) -> None:
    file = memory.open(path, create=True)
    file.write_at(position, content)
    file.sync()


def reopened_end(memory: MemoryFileSystem, folder: Path) -> int:
    store, shape = LogStore.open(memory, folder)
    assert store.flushed_offset == shape.end_offset
    store.close()
    return shape.end_offset


def spoil_checksum(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 70)


def spoil_base_offset(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 7, 0x40)


def spoil_epoch(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 15, 0x40)


def lower_epoch(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 15, 0x01)


def spoil_length(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 8, 0x70)


def spoil_magic(memory: MemoryFileSystem, offset: int) -> None:
    memory.rot(FIRST, offset * SIZE + 16)


def zero(memory: MemoryFileSystem, offset: int) -> None:
    overwrite(memory, FIRST, offset * SIZE, bytes(SIZE))


SPOILERS = [
    spoil_checksum,
    spoil_base_offset,
    spoil_epoch,
    lower_epoch,
    spoil_length,
    spoil_magic,
    zero,
]


@pytest.mark.usefixtures("log")
class TestOneSpoiledBatch:
    @pytest.mark.parametrize("spoil", SPOILERS)
    @pytest.mark.parametrize("offset", [0, 2, 3])
    def test_below_the_mark_it_is_corruption_and_nothing_is_changed(
        self,
        memory: MemoryFileSystem,
        memory_folder: Path,
        spoil: Callable[[MemoryFileSystem, int], None],
        offset: int,
    ) -> None:
        spoil(memory, offset)
        before = {name: memory.read(LOG / name) for name in memory.list(LOG)}
        with pytest.raises(CorruptStorageError, match="offset 4 was flushed") as caught:
            LogStore.open(memory, memory_folder)
        error = caught.value
        assert (error.path, error.offset, error.position) == (FIRST, offset, offset * SIZE)
        for part in (str(FIRST), f"at byte {offset * SIZE}", f"log offset {offset}", "restore"):
            assert part in str(error)
        assert {name: memory.read(LOG / name) for name in memory.list(LOG)} == before

    @pytest.mark.parametrize("spoil", SPOILERS)
    def test_above_the_mark_it_is_a_torn_tail_also_when_a_valid_batch_follows(
        self,
        memory: MemoryFileSystem,
        memory_folder: Path,
        spoil: Callable[[MemoryFileSystem, int], None],
    ) -> None:
        spoil(memory, 4)
        assert reopened_end(memory, memory_folder) == 4
        assert memory.read(FIRST) == b"".join(batch(offset) for offset in range(4))
        memory.crash()
        assert reopened_end(memory, memory_folder) == 4

    @pytest.mark.parametrize("missing", range(1, SIZE, 7))
    def test_half_written_last_batch_is_cut_off(
        self, memory: MemoryFileSystem, memory_folder: Path, missing: int
    ) -> None:
        memory.open(FIRST).truncate(6 * SIZE - missing)
        assert reopened_end(memory, memory_folder) == 5

    def test_garbage_behind_the_log_is_cut_off(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        overwrite(memory, FIRST, 6 * SIZE, b"\xff" * 5000)
        assert reopened_end(memory, memory_folder) == 6
        assert len(memory.read(FIRST)) == 6 * SIZE

    def test_file_that_ends_below_the_mark_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        memory.open(FIRST).truncate(3 * SIZE)
        with pytest.raises(CorruptStorageError, match="the log ends here") as caught:
            LogStore.open(memory, memory_folder)
        assert (caught.value.offset, caught.value.position) == (3, 3 * SIZE)

    def test_missing_segment_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        memory.remove(FIRST)
        with pytest.raises(CorruptStorageError, match="has no segment file"):
            LogStore.open(memory, memory_folder)

    def test_missing_mark_or_checkpoint_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        content = memory.read(LOG / "durable-length")
        memory.remove(LOG / "durable-length")
        with pytest.raises(CorruptStorageError, match="durable-length"):
            LogStore.open(memory, memory_folder)
        overwrite(memory, LOG / "durable-length", 0, content)
        memory.remove(LOG / "leader-epoch-checkpoint")
        with pytest.raises(CorruptStorageError, match="leader-epoch-checkpoint"):
            LogStore.open(memory, memory_folder)

    def test_refused_folder_is_not_held(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        spoil_checksum(memory, 0)
        for _ in range(2):
            with pytest.raises(CorruptStorageError):
                LogStore.open(memory, memory_folder)

    def test_tools_read_up_to_the_torn_tail_and_refuse_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        spoil_checksum(memory, 4)
        before = memory.read(FIRST)
        assert [r.offset for r in read_committed(memory_folder, filesystem=memory)] == [0, 1, 2, 3]
        assert memory.read(FIRST) == before
        spoil_checksum(memory, 1)
        with pytest.raises(CorruptStorageError):
            list(read_committed(memory_folder, filesystem=memory))

    def test_disk_that_fails_during_recovery_is_told(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        memory.fault = lambda action, _: errno.EIO if action == "sync" else None
        with pytest.raises(StorageFailed, match="recover"):
            LogStore.open(memory, memory_folder)
        memory.fault = None
        assert reopened_end(memory, memory_folder) == 6

    def test_kept_bytes_above_the_mark_are_written_again_before_they_are_synced(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        """An fsync that failed in an earlier life may have left clean pages that no disk holds."""
        memory.journal.clear()
        reopened_end(memory, memory_folder)
        done = [action for action, path in memory.journal if path == FIRST]
        assert done == ["write", "sync"]


def write_checkpoint(memory: MemoryFileSystem, text: str) -> None:
    path = LOG / "leader-epoch-checkpoint"
    memory.open(path).truncate(0)
    overwrite(memory, path, 0, text.encode())


@pytest.mark.usefixtures("log")
class TestEpochCheckpoint:
    def test_entries_past_the_logs_end_are_dropped(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        write_checkpoint(memory, "0\n3\n1 0\n2 6\n3 9\n")
        assert reopened_end(memory, memory_folder) == 6
        assert memory.read(LOG / "leader-epoch-checkpoint") == b"0\n1\n1 0\n"

    @pytest.mark.parametrize("text", ["0\n0\n", "0\n1\n2 0\n", "0\n2\n1 0\n2 2\n", "0\n1\n1 1\n"])
    def test_disagreement_below_the_mark_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path, text: str
    ) -> None:
        write_checkpoint(memory, text)
        with pytest.raises(CorruptStorageError, match="checkpoint"):
            LogStore.open(memory, memory_folder)

    def test_disagreement_above_the_mark_is_a_torn_tail(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        write_checkpoint(memory, "0\n2\n1 0\n2 5\n")
        assert reopened_end(memory, memory_folder) == 5

    def test_epoch_that_starts_within_a_batch_is_refused(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        store, _ = LogStore.open(memory, memory_folder)
        store.append_records(Offset(6), Epoch(2), 5, [(None, b"a"), (None, b"b")])
        store.flush()
        store.close()
        write_checkpoint(memory, "0\n3\n1 0\n2 6\n3 7\n")
        with pytest.raises(CorruptStorageError, match="another epoch within the batch"):
            LogStore.open(memory, memory_folder)

    def test_batch_of_an_epoch_that_was_never_flushed_is_cut_off(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        """Its bytes reached the disk by write-back, the checkpoint did not: nobody was told."""
        store, _ = LogStore.open(memory, memory_folder)
        store.append_records(Offset(6), Epoch(2), 5, [(None, b"a")])
        memory.kill()
        assert reopened_end(memory, memory_folder) == 6


class TestSeveralSegments:
    @pytest.fixture
    def segments(self, memory: MemoryFileSystem, memory_folder: Path) -> list[Path]:
        """Ten batches, two a segment; the first six flushed."""
        store, _ = LogStore.open(memory, memory_folder, segment_bytes=2 * SIZE)
        for offset in range(10):
            store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
            if offset == 5:
                store.flush()
        memory.kill()
        return [LOG / f"{offset:020d}.log" for offset in range(0, 10, 2)]

    def test_torn_segment_takes_all_later_ones_with_it(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.rot(segments[3], SIZE + 70)
        assert reopened_end(memory, memory_folder) == 7
        assert not memory.exists(segments[4])

    def test_gap_above_the_mark_ends_the_log(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.remove(segments[3])
        assert reopened_end(memory, memory_folder) == 6
        assert not memory.exists(segments[4])

    def test_gap_below_the_mark_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.remove(segments[1])
        with pytest.raises(CorruptStorageError, match="gap") as caught:
            LogStore.open(memory, memory_folder)
        assert caught.value.offset == 2

    def test_first_segment_that_is_gone_is_corruption(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.remove(segments[0])
        with pytest.raises(CorruptStorageError, match="starts at 2, and no snapshot"):
            LogStore.open(memory, memory_folder)

    def test_segment_with_another_ones_name_ends_the_log(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.rename(segments[4], LOG / f"{9:020d}.log")
        assert reopened_end(memory, memory_folder) == 8

    def test_log_goes_on_after_its_tail_was_cut(
        self, memory: MemoryFileSystem, memory_folder: Path, segments: list[Path]
    ) -> None:
        memory.rot(segments[3], 70)
        store, _ = LogStore.open(memory, memory_folder, segment_bytes=2 * SIZE)
        for offset in range(6, 12):
            store.append_records(Offset(offset), Epoch(2), 5, [(None, b"w")])
        store.flush()
        memory.crash()
        assert reopened_end(memory, memory_folder) == 12


def test_rot_in_the_group_that_the_mark_does_not_know_passes_for_a_torn_tail(
    memory: MemoryFileSystem, memory_folder: Path
) -> None:
    """The stated limit of the format: the mark lags by one flush group, not by two."""
    store, _ = LogStore.open(memory, memory_folder)
    for offset in range(3):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
        store.flush()
    memory.crash()
    memory.rot(FIRST, 2 * SIZE + 70)
    assert reopened_end(memory, memory_folder) == 2


def test_rot_in_the_group_before_the_last_is_detected(
    memory: MemoryFileSystem, memory_folder: Path
) -> None:
    store, _ = LogStore.open(memory, memory_folder)
    for offset in range(3):
        store.append_records(Offset(offset), Epoch(1), 5, [(None, b"v" * 20)])
        store.flush()
    memory.crash()
    memory.rot(FIRST, SIZE + 70)
    with pytest.raises(CorruptStorageError):
        LogStore.open(memory, memory_folder)


def test_committed_part_ends_where_the_caller_says(
    memory: MemoryFileSystem, memory_folder: Path, log: LogStore
) -> None:
    records = list(read_committed(memory_folder, 5, filesystem=memory))
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


def test_folder_of_a_real_controller_needs_no_mark(
    memory: MemoryFileSystem, memory_folder: Path, log: LogStore
) -> None:
    memory.remove(LOG / "durable-length")
    assert len(list(read_committed(memory_folder, filesystem=memory))) == 6
