"""The log: what is appended is read back, what is flushed is durable, what is cut off is gone."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape
from splitbrain.nodes.storage.errors import NotFormattedError, StorageFailed, StorageInUseError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.flushing import FlushPoint
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.wire.batches import encode_payloads, split_batches
from splitbrain.nodes.wire.control import LeaderChange, decode_control
from tests.unit.nodes.storage.disks import Disk

SEGMENT_BYTES = 600
LOG = "__cluster_metadata-0"


@pytest.fixture
def store(filesystem: FileSystem, folder: Path) -> Iterator[LogStore]:
    log, _ = LogStore.open(filesystem, folder, segment_bytes=SEGMENT_BYTES)
    yield log
    log.close()


def append(log: LogStore, epoch: int, *values: bytes) -> BatchHeader:
    payloads = [(None, value) for value in values]
    return log.append_records(log.end_offset, Epoch(epoch), 1000, payloads)


def fill(log: LogStore, count: int = 20, epoch: int = 1) -> None:
    """``count`` batches of two records; several segments' worth."""
    for number in range(count):
        append(log, epoch, b"value %d" % number, b"x" * (number % 7))


def values(log: LogStore, start: int = 0, end: int = 1 << 40) -> list[bytes | None]:
    batches = log.batches(Offset(start), Offset(end))
    return [record.value for batch in batches for record in batch.records]


def test_new_log_is_empty(filesystem: FileSystem, folder: Path) -> None:
    log, shape = LogStore.open(filesystem, folder)
    assert shape == LogShape(Offset(0), Offset(0), ())
    assert (log.start_offset, log.end_offset, log._flusher.flushed.end_offset) == (0, 0, 0)
    assert log.last_epoch == NO_EPOCH
    assert log.read(Offset(0), Offset(10), 100) == b""
    assert log.flush() == 0
    log.close()


def test_appended_batch_is_readable_before_it_is_flushed(store: LogStore) -> None:
    header = append(store, 3, b"a", b"b")
    assert header == BatchHeader(Offset(0), Offset(1), Epoch(3), header.size_bytes)
    assert (store.end_offset, store._flusher.flushed.end_offset, store.last_epoch) == (2, 0, 3)
    raw = store.read(Offset(0), Offset(2), 1)
    assert split_batches(raw) == (header,)
    assert store.flush() == 2
    assert store._flusher.flushed.end_offset == 2


def test_raw_batches_are_kept_byte_for_byte(store: LogStore) -> None:
    raw = encode_payloads(Offset(0), Epoch(1), 77, [(b"k", b"v"), (None, None)])
    raw += encode_payloads(Offset(2), Epoch(4), 78, [(None, b"w")])
    store.append_raw(raw, split_batches(raw))
    assert store.read(Offset(0), Offset(3), 1000) == raw
    assert store.epochs == (EpochStart(Epoch(1), Offset(0)), EpochStart(Epoch(4), Offset(2)))


def test_leader_change_is_a_control_batch(store: LogStore) -> None:
    voters = ((NodeId(1), DirectoryId("0" * 32)), (NodeId(2), DirectoryId("0" * 32)))
    change = LeaderChange(NodeId(1), voters, voters[:1])
    store.append_control(Offset(0), Epoch(1), 5, change)
    (batch,) = store.batches(Offset(0), Offset(1))
    assert batch.is_control
    assert decode_control(batch.records[0]) == change


@pytest.mark.parametrize(
    ("base_offset", "epoch", "problem"),
    [(1, 2, "the log ends at 2"), (3, 2, "the log ends at 2"), (2, 1, "epoch 1 after epoch 2")],
)
def test_batch_that_does_not_follow_is_refused(
    store: LogStore, base_offset: int, epoch: int, problem: str
) -> None:
    append(store, 2, b"a", b"b")
    before = store.read(Offset(0), Offset(9), 1000)
    with pytest.raises(ValueError, match=problem):
        store.append_records(Offset(base_offset), Epoch(epoch), 0, [(None, b"c")])
    assert store.read(Offset(0), Offset(9), 1000) == before


def test_headers_that_do_not_describe_the_bytes_are_refused(store: LogStore) -> None:
    raw = encode_payloads(Offset(0), Epoch(1), 77, [(None, b"v")])
    with pytest.raises(ValueError, match="bytes"):
        store.append_raw(raw + b"x", split_batches(raw))


def test_segments_roll_by_size_under_kafkas_names(
    filesystem: FileSystem, folder: Path, store: LogStore
) -> None:
    fill(store)
    store.flush()
    names = [name for name in filesystem.list(folder / LOG) if name.endswith(".log")]
    assert len(names) == 3
    starts = [int(name.removesuffix(".log")) for name in names]
    for start, name in zip(starts, names, strict=True):
        content = filesystem.read(folder / LOG / name)
        assert split_batches(content)[0].base_offset == start
        assert len(content) <= SEGMENT_BYTES
    assert values(store) == [
        value for n in range(20) for value in (b"value %d" % n, b"x" * (n % 7))
    ]


def test_reading_starts_at_any_offset_and_stops_below_the_end(store: LogStore) -> None:
    fill(store)
    everything = values(store)
    for start in range(0, 40, 2):
        assert values(store, start) == everything[start:]
        assert values(store, start + 1) == everything[start:]  # from the batch that holds it
    for end in range(41):
        assert values(store, 0, end) == everything[: end - end % 2]
    assert store.read(Offset(40), Offset(99), 100) == b""
    with pytest.raises(ValueError, match="below the log's start"):
        store.read(Offset(-1), Offset(99), 100)


def test_read_gives_whole_batches_within_the_limit_but_at_least_one(store: LogStore) -> None:
    first, second = append(store, 1, b"a" * 50), append(store, 1, b"b" * 50)
    both = first.size_bytes + second.size_bytes
    for limit, expected in ((1, 1), (first.size_bytes, 1), (both - 1, 1), (both, 2), (both * 9, 2)):
        assert len(split_batches(store.read(Offset(0), Offset(2), limit))) == expected


def test_batch_larger_than_the_read_limit_comes_whole(store: LogStore) -> None:
    append(store, 1, b"a" * 50_000)
    append(store, 1, b"b" * 50_000)
    raw = store.read(Offset(1), Offset(2), 10)
    assert split_batches(raw)[0].base_offset == 1


def test_long_segment_is_found_through_its_index(filesystem: FileSystem, folder: Path) -> None:
    log, _ = LogStore.open(filesystem, folder)
    for number in range(600):
        append(log, 1, b"%d" % number)
    for offset in (0, 1, 61, 62, 300, 599):
        assert values(log, offset, offset + 1) == [b"%d" % offset]
    log.close()


def test_closed_log_opens_as_it_was(filesystem: FileSystem, folder: Path, store: LogStore) -> None:
    fill(store, 10, epoch=1)
    fill(store, 10, epoch=5)
    everything = values(store)
    store.flush()
    store.close()
    again, shape = LogStore.open(filesystem, folder, segment_bytes=SEGMENT_BYTES)
    starts = (EpochStart(Epoch(1), Offset(0)), EpochStart(Epoch(5), Offset(20)))
    assert shape == LogShape(Offset(0), Offset(40), starts)
    assert again._flusher.flushed.end_offset == 40
    assert values(again) == everything
    append(again, 5, b"more")
    assert again.end_offset == 41
    again.close()


def test_folder_has_one_user(filesystem: FileSystem, folder: Path, store: LogStore) -> None:
    with pytest.raises(StorageInUseError):
        LogStore.open(filesystem, folder)
    store.close()
    LogStore.open(filesystem, folder)[0].close()


def test_folder_without_log_is_not_opened(filesystem: FileSystem, parent: Path) -> None:
    with pytest.raises(NotFormattedError):
        LogStore.open(filesystem, parent)


@pytest.mark.parametrize("end", [0, 2, 6, 18, 20, 24, 38, 40])
def test_truncated_log_goes_on_from_its_new_end(
    filesystem: FileSystem, folder: Path, store: LogStore, end: int
) -> None:
    fill(store, 10, epoch=1)
    fill(store, 10, epoch=5)
    everything = values(store)
    store.flush()
    store.truncate(Offset(end))
    assert (store.end_offset, store._flusher.flushed.end_offset) == (end, end)
    assert values(store) == everything[:end]
    append(store, 7, b"new")
    store.flush()
    expected = [start for start in ((1, 0), (5, 20)) if start[1] < end] + [(7, end)]
    assert [(entry.epoch, entry.start_offset) for entry in store.epochs] == expected
    store.close()
    again, shape = LogStore.open(filesystem, folder, segment_bytes=SEGMENT_BYTES)
    assert shape.end_offset == end + 1
    assert values(again) == [*everything[:end], b"new"]
    again.close()


def test_truncation_makes_what_stays_durable(disk: Disk) -> None:
    log = disk.open_log(SEGMENT_BYTES)
    fill(log)
    log.truncate(Offset(30))
    disk.crash()
    assert disk.reopened_end() == 30


def test_truncation_outside_the_log_or_within_a_batch_is_refused(store: LogStore) -> None:
    fill(store)
    for offset, problem in ((41, "outside"), (-1, "outside"), (7, "within the batch")):
        with pytest.raises(ValueError, match=problem):
            store.truncate(Offset(offset))
    assert store.end_offset == 40


def test_flush_covers_what_was_there_when_it_was_prepared(store: LogStore) -> None:
    append(store, 1, b"a")
    point = store.prepare_flush()
    append(store, 2, b"b")
    assert store.flush(point) == 1
    assert store._flusher.flushed.end_offset == 1
    assert store.flush() == 2


def test_unflushed_batch_is_lost_with_the_power_and_a_flushed_one_is_not(disk: Disk) -> None:
    log = disk.open_log()
    append(log, 1, b"flushed")
    log.flush()
    append(log, 1, b"not flushed")
    disk.crash()
    again = disk.open_log()
    assert values(again) == [b"flushed"]


def test_unflushed_batch_survives_the_end_of_the_process_and_is_then_made_durable(
    disk: Disk,
) -> None:
    log = disk.open_log()
    append(log, 1, b"flushed")
    log.flush()
    append(log, 1, b"not flushed")
    disk.kill()
    disk.open_log()
    disk.crash()
    again, shape = LogStore.open(disk, disk.folder)
    assert shape.end_offset == 2
    assert values(again) == [b"flushed", b"not flushed"]


def test_checkpoint_is_durable_before_the_first_batch_of_an_epoch_counts_as_flushed(
    disk: Disk,
) -> None:
    log = disk.open_log()
    append(log, 4, b"a")
    disk.journal.clear()
    log.flush()
    synced = [path.name for action, path in disk.journal if action == "sync"]
    assert synced == ["leader-epoch-checkpoint.tmp", "00000000000000000000.log"]
    append(log, 4, b"b")
    disk.journal.clear()
    log.flush()
    # The same epoch: the mark of the flush before, then the segment, and nothing else.
    synced = [path.name for action, path in disk.journal if action == "sync"]
    assert synced == ["durable-length", "00000000000000000000.log"]


def test_mark_made_durable_after_the_report_is_not_synced_again(disk: Disk) -> None:
    log = disk.open_log()
    append(log, 4, b"a")
    log.flush()
    log.persist_mark()
    append(log, 4, b"b")
    disk.journal.clear()
    log.flush()
    synced = [path.name for action, path in disk.journal if action == "sync"]
    assert synced == ["00000000000000000000.log"]


@pytest.mark.parametrize("action", ["sync", "write"])
def test_failed_flush_is_final(disk: Disk, action: str) -> None:
    log = disk.open_log()
    append(log, 1, b"a")
    disk.fault = lambda done, _: errno.EIO if done == action else None
    with pytest.raises(StorageFailed, match="the node stops") as caught:
        log.flush()
    assert caught.value.reason.startswith("[Errno 5]")
    disk.fault = None
    for attempt in (
        log.flush,
        log.persist_mark,
        lambda: append(log, 1, b"b"),
        lambda: log.read(Offset(0), Offset(1), 10),
        lambda: log.truncate(Offset(0)),
    ):
        with pytest.raises(StorageFailed):
            attempt()


def test_full_disk_is_told_and_leaves_a_tail_that_a_restart_cuts(disk: Disk) -> None:
    log = disk.open_log()
    append(log, 1, b"a")
    log.flush()
    disk.fault = lambda done, _: errno.ENOSPC if done == "write" else None
    with pytest.raises(StorageFailed, match=r"append to .* ENOSPC"):
        append(log, 1, b"b")
    disk.fault = None
    disk.kill()
    again = disk.open_log()
    assert values(again) == [b"a"]


def test_failed_truncation_is_final(disk: Disk) -> None:
    log = disk.open_log()
    fill(log)
    disk.fault = lambda done, _: errno.EIO if done == "truncate" else None
    with pytest.raises(StorageFailed, match="truncate"):
        log.truncate(Offset(4))


def test_appends_and_reads_go_on_while_another_thread_flushes(
    filesystem: FileSystem, folder: Path, store: LogStore
) -> None:
    """The server's use: one loop, one flushing thread, several segments."""
    handed_over: list[FlushPoint | None] = []
    condition = threading.Condition()
    reported: list[int] = []
    failures: list[Exception] = []

    def flush_all() -> None:
        try:
            while True:
                with condition:
                    condition.wait_for(lambda: bool(handed_over), timeout=30)
                    point = handed_over.pop(0)
                if point is None:
                    return
                reported.append(store.flush(point))
                store.persist_mark()
        except (StorageFailed, OSError, ValueError) as error:
            failures.append(error)

    thread = threading.Thread(target=flush_all)
    thread.start()
    for number in range(300):
        append(store, 1 + number // 50, b"value %d" % number)
        assert values(store, number) == [b"value %d" % number]
        if number % 3 == 0:
            with condition:
                handed_over.append(store.prepare_flush())
                condition.notify()
    with condition:
        handed_over += [store.prepare_flush(), None]
        condition.notify()
    thread.join(timeout=30)
    assert failures == []
    assert reported == sorted(reported)
    assert reported[-1] == store._flusher.flushed.end_offset == 300
    store.close()
    again, shape = LogStore.open(filesystem, folder)
    assert (shape.end_offset, len(shape.epochs)) == (300, 6)
    again.close()
