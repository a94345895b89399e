"""A log that loses its beginning to a snapshot, wholly or in part, and what a restart makes of it.

Crashes strike after every step of the work; each must leave a log from which the node goes on.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, SnapshotId
from splitbrain.nodes.storage.epoch_checkpoint import read_epochs
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, log_folder, segment_name
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.reading import log_start, read_committed
from splitbrain.nodes.storage.snapshots import (
    list_snapshots,
    snapshot_name,
    snapshot_path,
    write_snapshot,
)
from splitbrain.nodes.wire.batches import HEADER_BYTES, peek_batch, split_batches
from splitbrain.nodes.wire.snapshots import encode_snapshot
from splitbrain.simulation.disk.file_system import MemoryFileSystem

#: One batch of two records is longer: every batch has a segment of its own.
SMALL = 1


def snapshot(offset: int, epoch: int) -> SnapshotId:
    return SnapshotId(Offset(offset), Epoch(epoch))


def starts(*pairs: tuple[int, int]) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(Epoch(epoch), Offset(offset)) for epoch, offset in pairs)


def write(filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId) -> None:
    write_snapshot(filesystem, folder, snapshot_id, encode_snapshot(snapshot_id, 5, [b"state"]))


def opened(
    filesystem: FileSystem, folder: Path, segment_bytes: int = SMALL
) -> tuple[LogStore, LogShape]:
    return LogStore.open(filesystem, folder, segment_bytes=segment_bytes)


def filled(filesystem: FileSystem, folder: Path, segment_bytes: int = SMALL) -> LogStore:
    """Two records of epoch 1, four of epoch 2, two of epoch 4, in batches of two."""
    log, _ = opened(filesystem, folder, segment_bytes)
    for number, epoch in enumerate((1, 2, 2, 4)):
        payloads = [(None, b"%d" % (2 * number + part)) for part in range(2)]
        log.append_records(Offset(2 * number), Epoch(epoch), 9, payloads)
    log.flush()
    return log


def values(log: LogStore) -> list[bytes | None]:
    found = log.batches(log.start_offset, log.end_offset)
    return [record.value for batch in found for record in batch.records]


def segments(filesystem: FileSystem, folder: Path) -> list[str]:
    return [name for name in filesystem.list(log_folder(folder)) if name.endswith(".log")]


def checkpoint(filesystem: FileSystem, folder: Path) -> tuple[EpochStart, ...]:
    return read_epochs(filesystem, log_folder(folder) / EPOCH_CHECKPOINT)


def test_whole_segments_below_the_start_go_and_the_checkpoint_with_them(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(4, 2))
    log.cut_start(snapshot(4, 2))()
    assert segments(filesystem, folder) == [segment_name(4), segment_name(6)]
    assert checkpoint(filesystem, folder) == starts((2, 4), (4, 6)) == log.epochs
    assert (log.start_offset, values(log)) == (4, [b"4", b"5", b"6", b"7"])
    with pytest.raises(ValueError, match="below"):
        log.read(Offset(3), Offset(8), 100)
    log.close()
    log, shape = opened(filesystem, folder)
    assert shape == LogShape(Offset(4), Offset(8), starts((2, 4), (4, 6)), (snapshot(4, 2),))
    assert values(log) == [b"4", b"5", b"6", b"7"]
    log.close()


def test_a_segment_that_reaches_over_the_start_stays_and_its_beginning_is_not_read(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder, 1_000_000)
    write(filesystem, folder, snapshot(4, 2))
    log.cut_start(snapshot(4, 2))()
    log.close()
    assert segments(filesystem, folder) == [segment_name(0)]
    log, shape = opened(filesystem, folder)
    assert (shape.start_offset, shape.epochs) == (4, starts((2, 4), (4, 6)))
    assert values(log) == [b"4", b"5", b"6", b"7"]
    log.close()


def test_a_log_cut_at_its_end_goes_on_with_its_epoch_or_a_later_one(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(8, 4))
    log.cut_start(snapshot(8, 4))()
    assert log.epochs == starts((4, 8))
    log.append_records(Offset(8), Epoch(6), 9, [(None, b"8")])
    log.flush()
    assert log.epochs == starts((6, 8)) == checkpoint(filesystem, folder)
    log.close()
    log, shape = opened(filesystem, folder)
    assert shape == LogShape(Offset(8), Offset(9), starts((6, 8)), (snapshot(8, 4),))
    log.close()


def test_after_a_restart_the_epoch_of_the_snapshot_begins_with_the_next_batch(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(8, 4))
    log.cut_start(snapshot(8, 4))()
    log.close()
    log, shape = opened(filesystem, folder)
    assert (shape.start_offset, shape.epochs, log.last_epoch) == (8, (), 4)
    log.append_records(Offset(8), Epoch(4), 9, [(None, b"8")])
    log.flush()
    log.close()
    log, shape = opened(filesystem, folder)
    assert (shape.epochs, values(log)) == (starts((4, 8)), [b"8"])
    log.close()


def test_older_snapshots_go_with_what_they_stood_for(filesystem: FileSystem, folder: Path) -> None:
    log = filled(filesystem, folder)
    for snapshot_id in (snapshot(2, 1), snapshot(4, 2), snapshot(8, 4)):
        write(filesystem, folder, snapshot_id)
    log.cut_start(snapshot(4, 2))()
    assert list_snapshots(filesystem, folder) == (snapshot(4, 2), snapshot(8, 4))
    assert not [n for n in filesystem.list(log_folder(folder)) if n.endswith(".deleted")]
    log.close()
    log, shape = opened(filesystem, folder)
    assert shape.snapshots == (snapshot(4, 2), snapshot(8, 4))
    log.close()


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_snapshot_takes_the_place_of_the_log(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot_id)
    log.replace(snapshot_id)
    end = snapshot_id.end_offset
    assert (log.start_offset, log.end_offset, log.flushed_offset) == (end, end, end)
    assert segments(filesystem, folder) == [segment_name(end)]
    raw_epoch = Epoch(snapshot_id.epoch)
    header = log.append_records(end, raw_epoch, 9, [(None, b"next")])
    assert log.flush() == header.last_offset + 1
    log.close()
    log, shape = opened(filesystem, folder)
    assert shape == LogShape(end, Offset(end + 1), (EpochStart(raw_epoch, end),), (snapshot_id,))
    assert values(log) == [b"next"]
    log.close()


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_snapshot_that_the_log_does_not_reach_replaces_it_at_the_start(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId
) -> None:
    """The node died after the snapshot was durable and before the log was dropped."""
    filled(filesystem, folder).close()
    write(filesystem, folder, snapshot_id)
    log, shape = opened(filesystem, folder)
    end = snapshot_id.end_offset
    assert shape == LogShape(end, end, (), (snapshot_id,))
    assert (log.last_epoch, segments(filesystem, folder)) == (
        snapshot_id.epoch,
        [segment_name(end)],
    )
    log.close()


def test_a_snapshot_that_the_log_agrees_with_keeps_it(filesystem: FileSystem, folder: Path) -> None:
    filled(filesystem, folder).close()
    write(filesystem, folder, snapshot(6, 2))
    log, shape = opened(filesystem, folder)
    assert (shape.start_offset, shape.end_offset, shape.epochs) == (6, 8, starts((4, 6)))
    assert values(log) == [b"6", b"7"]
    log.close()


@pytest.mark.parametrize(
    ("snapshot_id", "rotten", "epoch"), [(snapshot(6, 2), 4, 3), (snapshot(4, 2), 2, 1)]
)
def test_an_epoch_that_rots_just_below_the_start_drops_no_log(
    filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId, rotten: int, epoch: int
) -> None:
    """The log was cut at the snapshot, so that it is no log which the snapshot was to replace."""
    log = filled(filesystem, folder, segment_bytes=1 << 20)
    write(filesystem, folder, snapshot_id)
    log.cut_start(snapshot_id)()
    log.close()
    path = log_folder(folder) / segment_name(Offset(0))
    file = filesystem.open(path)
    position = 0
    while (header := peek_batch(file.read_at(position, HEADER_BYTES), 0))[0] != rotten:
        position += header[2]
    file.write_at(position + 12, epoch.to_bytes(4, "big"))
    file.sync()
    file.close()
    with pytest.raises(CorruptStorageError, match="was cut where the snapshot"):
        opened(filesystem, folder, segment_bytes=1 << 20)


def test_a_log_without_beginning_and_snapshot_is_refused(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(4, 2))
    log.cut_start(snapshot(4, 2))()
    log.close()
    filesystem.remove(snapshot_path(folder, snapshot(4, 2)))
    with pytest.raises(CorruptStorageError, match="starts at 4, and no snapshot that can be used"):
        opened(filesystem, folder)


def test_a_broken_newer_snapshot_is_ignored_with_a_sentence(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(4, 2))
    log.cut_start(snapshot(4, 2))()
    log.close()
    write(filesystem, folder, snapshot(8, 4))
    broken = filesystem.open(snapshot_path(folder, snapshot(8, 4)))
    broken.truncate(broken.size() - 1)
    broken.close()
    told: list[str] = []
    log, shape = LogStore.open(filesystem, folder, ignored=told.append)
    assert shape.snapshots == (snapshot(4, 2),)
    assert len(told) == 1
    assert told[0].startswith(f"snapshot {snapshot_name(snapshot(8, 4))} is ignored: ")
    log.close()


def test_raw_batches_of_the_snapshots_epoch_follow_it(filesystem: FileSystem, folder: Path) -> None:
    log = filled(filesystem, folder)
    raw = log.read(Offset(6), Offset(8), 1_000)
    write(filesystem, folder, snapshot(6, 4))
    log.replace(snapshot(6, 4))
    log.append_raw(raw, split_batches(raw))
    log.flush()
    assert (log.epochs, values(log)) == (starts((4, 6)), [b"6", b"7"])
    log.close()


def test_tools_read_what_is_left_and_know_where_it_begins(
    filesystem: FileSystem, folder: Path
) -> None:
    log = filled(filesystem, folder)
    write(filesystem, folder, snapshot(4, 2))
    log.cut_start(snapshot(4, 2))()
    log.close()
    offsets = [record.offset for record in read_committed(folder, filesystem=filesystem)]
    assert (offsets, log_start(folder, filesystem=filesystem)) == ([4, 5, 6, 7], snapshot(4, 2))
    write(filesystem, folder, snapshot(30, 9))
    assert list(read_committed(folder, filesystem=filesystem)) == []
    assert log_start(folder, filesystem=filesystem) == snapshot(30, 9)


Work = Callable[[LogStore], None]


def crash_everywhere(
    memory: MemoryFileSystem, folder: Path, prepare: Work, work: Work
) -> list[tuple[LogShape, list[bytes | None]]]:
    """Yield a restart's findings after a crash behind each step of the work, the full work last."""
    found: list[tuple[LogShape, list[bytes | None]]] = []
    before = memory.snapshot()
    steps = total = 0
    while steps <= total:
        memory.restore(before)
        log = filled(memory, folder)
        prepare(log)
        memory.begin_job()
        work(log)
        total = memory.end_job()
        memory.crash(steps=steps)
        log, shape = opened(memory, folder)
        found.append((shape, values(log)))
        log.append_records(log.end_offset, Epoch(9), 9, [(None, b"more")])
        log.flush()
        log.close()
        again, later = opened(memory, folder)
        assert later.end_offset == shape.end_offset + 1
        again.close()
        steps += 1
    return found


def test_a_crash_while_the_start_moves_leaves_the_log_above_it_whole(
    memory: MemoryFileSystem, memory_folder: Path
) -> None:
    def prepare(log: LogStore) -> None:
        write(memory, memory_folder, snapshot(2, 1))
        write(memory, memory_folder, snapshot(4, 2))
        log.cut_start(snapshot(2, 1))()
        write(memory, memory_folder, snapshot(6, 2))

    found = crash_everywhere(
        memory, memory_folder, prepare, lambda log: log.cut_start(snapshot(6, 2))()
    )
    for shape, read in found:
        assert shape.start_offset in (2, 4, 6)
        assert shape.snapshots[-1] == snapshot(6, 2)
        assert read == [b"%d" % offset for offset in range(shape.start_offset, 8)]
    assert found[-1][0].start_offset == 6


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_crash_while_the_log_is_replaced_leaves_the_snapshot_and_nothing_else(
    memory: MemoryFileSystem, memory_folder: Path, snapshot_id: SnapshotId
) -> None:
    def prepare(log: LogStore) -> None:
        log.persist_mark()
        write(memory, memory_folder, snapshot_id)

    found = crash_everywhere(memory, memory_folder, prepare, lambda log: log.replace(snapshot_id))
    end = snapshot_id.end_offset
    for shape, read in found:
        assert (shape, read) == (LogShape(end, end, (), (snapshot_id,)), [])
    assert len(found) > 8
