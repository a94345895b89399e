"""A log that loses its beginning to a snapshot, wholly or in part, and what a restart makes of it.

Crashes strike after every step of the work; each must leave a log from which the node goes on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
from tests.unit.nodes.storage.disks import Disk

#: One batch of two records is longer: every batch has a segment of its own.
SMALL = 1


def snapshot(offset: int, epoch: int) -> SnapshotId:
    return SnapshotId(Offset(offset), Epoch(epoch))


def starts(*pairs: tuple[int, int]) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(Epoch(epoch), Offset(offset)) for epoch, offset in pairs)


class Folder(NamedTuple):
    """A data folder, on whatever disk."""

    filesystem: FileSystem
    path: Path

    def write(self, snapshot_id: SnapshotId) -> None:
        content = encode_snapshot(snapshot_id, 5, [b"state"])
        write_snapshot(self.filesystem, self.path, snapshot_id, content)

    def opened(self, segment_bytes: int = SMALL) -> tuple[LogStore, LogShape]:
        return LogStore.open(self.filesystem, self.path, segment_bytes=segment_bytes)

    def filled(self, segment_bytes: int = SMALL) -> LogStore:
        """Two records of epoch 1, four of epoch 2, two of epoch 4, in batches of two."""
        log, _ = self.opened(segment_bytes)
        for number, epoch in enumerate((1, 2, 2, 4)):
            payloads = [(None, b"%d" % (2 * number + part)) for part in range(2)]
            log.append_records(Offset(2 * number), Epoch(epoch), 9, payloads)
        log.flush()
        return log

    def cut(self, snapshot_id: SnapshotId, segment_bytes: int = SMALL) -> LogStore:
        """As ``filled``, with a snapshot that the log then starts at."""
        log = self.filled(segment_bytes)
        self.write(snapshot_id)
        log.cut_start(snapshot_id)()
        return log

    def segments(self) -> list[str]:
        names = self.filesystem.list(log_folder(self.path))
        return [name for name in names if name.endswith(".log")]

    def checkpoint(self) -> tuple[EpochStart, ...]:
        return read_epochs(self.filesystem, log_folder(self.path) / EPOCH_CHECKPOINT)


@pytest.fixture
def node(filesystem: FileSystem, folder: Path) -> Folder:
    return Folder(filesystem, folder)


def values(log: LogStore) -> list[bytes | None]:
    found = log.batches(log.start_offset, log.end_offset)
    return [record.value for batch in found for record in batch.records]


def test_whole_segments_below_the_start_go_and_the_checkpoint_with_them(node: Folder) -> None:
    log = node.cut(snapshot(4, 2))
    assert node.segments() == [segment_name(4), segment_name(6)]
    assert node.checkpoint() == starts((2, 4), (4, 6)) == log.epochs
    assert (log.start_offset, values(log)) == (4, [b"4", b"5", b"6", b"7"])
    with pytest.raises(ValueError, match="below"):
        log.read(Offset(3), Offset(8), 100)
    log.close()
    log, shape = node.opened()
    assert shape == LogShape(Offset(4), Offset(8), starts((2, 4), (4, 6)), (snapshot(4, 2),))
    assert values(log) == [b"4", b"5", b"6", b"7"]
    log.close()


def test_a_segment_that_reaches_over_the_start_stays_and_its_beginning_is_not_read(
    node: Folder,
) -> None:
    node.cut(snapshot(4, 2), 1_000_000).close()
    assert node.segments() == [segment_name(0)]
    log, shape = node.opened()
    assert (shape.start_offset, shape.epochs) == (4, starts((2, 4), (4, 6)))
    assert values(log) == [b"4", b"5", b"6", b"7"]
    log.close()


def test_a_log_cut_at_its_end_goes_on_with_its_epoch_or_a_later_one(node: Folder) -> None:
    log = node.cut(snapshot(8, 4))
    assert log.epochs == starts((4, 8))
    log.append_records(Offset(8), Epoch(6), 9, [(None, b"8")])
    log.flush()
    assert log.epochs == starts((6, 8)) == node.checkpoint()
    log.close()
    log, shape = node.opened()
    assert shape == LogShape(Offset(8), Offset(9), starts((6, 8)), (snapshot(8, 4),))
    log.close()


def test_after_a_restart_the_epoch_of_the_snapshot_begins_with_the_next_batch(node: Folder) -> None:
    node.cut(snapshot(8, 4)).close()
    log, shape = node.opened()
    assert (shape.start_offset, shape.epochs, log.last_epoch) == (8, (), 4)
    log.append_records(Offset(8), Epoch(4), 9, [(None, b"8")])
    log.flush()
    log.close()
    log, shape = node.opened()
    assert (shape.epochs, values(log)) == (starts((4, 8)), [b"8"])
    log.close()


def test_older_snapshots_go_with_what_they_stood_for(node: Folder) -> None:
    log = node.filled()
    for snapshot_id in (snapshot(2, 1), snapshot(4, 2), snapshot(8, 4)):
        node.write(snapshot_id)
    log.cut_start(snapshot(4, 2))()
    assert list_snapshots(*node) == (snapshot(4, 2), snapshot(8, 4))
    assert not [n for n in node.filesystem.list(log_folder(node.path)) if n.endswith(".deleted")]
    log.close()
    log, shape = node.opened()
    assert shape.snapshots == (snapshot(4, 2), snapshot(8, 4))
    log.close()


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_snapshot_takes_the_place_of_the_log(node: Folder, snapshot_id: SnapshotId) -> None:
    log = node.filled()
    node.write(snapshot_id)
    log.replace(snapshot_id)
    end = snapshot_id.end_offset
    assert (log.start_offset, log.end_offset, log._flusher.flushed.end_offset) == (end, end, end)
    assert node.segments() == [segment_name(end)]
    raw_epoch = Epoch(snapshot_id.epoch)
    header = log.append_records(end, raw_epoch, 9, [(None, b"next")])
    assert log.flush() == header.last_offset + 1
    log.close()
    log, shape = node.opened()
    assert shape == LogShape(end, Offset(end + 1), (EpochStart(raw_epoch, end),), (snapshot_id,))
    assert values(log) == [b"next"]
    log.close()


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_snapshot_that_the_log_does_not_reach_replaces_it_at_the_start(
    node: Folder, snapshot_id: SnapshotId
) -> None:
    """The node died after the snapshot was durable and before the log was dropped."""
    node.filled().close()
    node.write(snapshot_id)
    log, shape = node.opened()
    end = snapshot_id.end_offset
    assert shape == LogShape(end, end, (), (snapshot_id,))
    assert (log.last_epoch, node.segments()) == (snapshot_id.epoch, [segment_name(end)])
    log.close()


def test_a_snapshot_that_the_log_agrees_with_keeps_it(node: Folder) -> None:
    node.filled().close()
    node.write(snapshot(6, 2))
    log, shape = node.opened()
    assert (shape.start_offset, shape.end_offset, shape.epochs) == (6, 8, starts((4, 6)))
    assert values(log) == [b"6", b"7"]
    log.close()


@pytest.mark.parametrize(
    ("snapshot_id", "rotten", "epoch"), [(snapshot(6, 2), 4, 3), (snapshot(4, 2), 2, 1)]
)
def test_an_epoch_that_rots_just_below_the_start_drops_no_log(
    node: Folder, snapshot_id: SnapshotId, rotten: int, epoch: int
) -> None:
    """The log was cut at the snapshot, so that it is no log which the snapshot was to replace."""
    node.cut(snapshot_id, segment_bytes=1 << 20).close()
    path = log_folder(node.path) / segment_name(Offset(0))
    file = node.filesystem.open(path)
    position = 0
    while (header := peek_batch(file.read_at(position, HEADER_BYTES), 0))[0] != rotten:
        position += header[2]
    file.write_at(position + 12, epoch.to_bytes(4, "big"))
    file.sync()
    file.close()
    with pytest.raises(CorruptStorageError, match="was cut where the snapshot"):
        node.opened(segment_bytes=1 << 20)


def test_a_log_without_beginning_and_snapshot_is_refused(node: Folder) -> None:
    node.cut(snapshot(4, 2)).close()
    node.filesystem.remove(snapshot_path(node.path, snapshot(4, 2)))
    with pytest.raises(CorruptStorageError, match="starts at 4, and no snapshot that can be used"):
        node.opened()


def test_a_broken_newer_snapshot_is_ignored_with_a_sentence(node: Folder) -> None:
    node.cut(snapshot(4, 2)).close()
    node.write(snapshot(8, 4))
    broken = node.filesystem.open(snapshot_path(node.path, snapshot(8, 4)))
    broken.truncate(broken.size() - 1)
    broken.close()
    sentences: list[str] = []
    log, shape = LogStore.open(*node, ignored=sentences.append)
    assert shape.snapshots == (snapshot(4, 2),)
    assert len(sentences) == 1
    assert sentences[0].startswith(f"snapshot {snapshot_name(snapshot(8, 4))} is ignored: ")
    log.close()


def test_raw_batches_of_the_snapshots_epoch_follow_it(node: Folder) -> None:
    log = node.filled()
    raw = log.read(Offset(6), Offset(8), 1_000)
    node.write(snapshot(6, 4))
    log.replace(snapshot(6, 4))
    log.append_raw(raw, split_batches(raw))
    log.flush()
    assert (log.epochs, values(log)) == (starts((4, 6)), [b"6", b"7"])
    log.close()


def test_tools_read_what_is_left_and_know_where_it_begins(node: Folder) -> None:
    node.cut(snapshot(4, 2)).close()
    filesystem, path = node
    offsets = [record.offset for record in read_committed(path, filesystem=filesystem)]
    assert (offsets, log_start(path, filesystem=filesystem)) == ([4, 5, 6, 7], snapshot(4, 2))
    node.write(snapshot(30, 9))
    assert list(read_committed(path, filesystem=filesystem)) == []
    assert log_start(path, filesystem=filesystem) == snapshot(30, 9)


Work = Callable[[LogStore], None]


def crash_everywhere(
    disk: Disk, prepare: Work, work: Work
) -> list[tuple[LogShape, list[bytes | None]]]:
    """Yield a restart's findings after a crash behind each step of the work, the full work last."""
    found: list[tuple[LogShape, list[bytes | None]]] = []
    node = Folder(disk, disk.folder)
    before = disk.snapshot()
    steps = total = 0
    while steps <= total:
        disk.restore(before)
        log = node.filled()
        prepare(log)
        disk.begin_job()
        work(log)
        total = disk.end_job()
        disk.crash(steps=steps)
        log, shape = node.opened()
        found.append((shape, values(log)))
        log.append_records(log.end_offset, Epoch(9), 9, [(None, b"more")])
        log.flush()
        log.close()
        again, later = node.opened()
        assert later.end_offset == shape.end_offset + 1
        again.close()
        steps += 1
    return found


def test_a_crash_while_the_start_moves_leaves_the_log_above_it_whole(disk: Disk) -> None:
    def prepare(log: LogStore) -> None:
        Folder(disk, disk.folder).write(snapshot(2, 1))
        Folder(disk, disk.folder).write(snapshot(4, 2))
        log.cut_start(snapshot(2, 1))()
        Folder(disk, disk.folder).write(snapshot(6, 2))

    found = crash_everywhere(disk, prepare, lambda log: log.cut_start(snapshot(6, 2))())
    for shape, read in found:
        assert shape.start_offset in (2, 4, 6)
        assert shape.snapshots[-1] == snapshot(6, 2)
        assert read == [b"%d" % offset for offset in range(shape.start_offset, 8)]
    assert found[-1][0].start_offset == 6


@pytest.mark.parametrize("snapshot_id", [snapshot(20, 5), snapshot(8, 5), snapshot(4, 3)])
def test_a_crash_while_the_log_is_replaced_leaves_the_snapshot_and_nothing_else(
    disk: Disk, snapshot_id: SnapshotId
) -> None:
    def prepare(log: LogStore) -> None:
        log.persist_mark()
        Folder(disk, disk.folder).write(snapshot_id)

    found = crash_everywhere(disk, prepare, lambda log: log.replace(snapshot_id))
    end = snapshot_id.end_offset
    for shape, read in found:
        assert (shape, read) == (LogShape(end, end, (), (snapshot_id,)), [])
    assert len(found) > 8
