"""Snapshot files: names, crashes while one is written, damage, leftovers."""

import errno
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.snapshots import (
    FoundSnapshots,
    SnapshotWriter,
    find_snapshots,
    list_snapshots,
    read_chunk,
    read_snapshot,
    settle_snapshots,
    snapshot_id_in,
    snapshot_name,
    snapshot_path,
    write_snapshot,
)
from splitbrain.nodes.wire.snapshots import encode_snapshot
from splitbrain.simulation.disk.file_system import MemoryFileSystem

DATA = Path("/node/data")
FIRST = SnapshotId(Offset(10), Epoch(2))
SECOND = SnapshotId(Offset(20), Epoch(2))
THIRD = SnapshotId(Offset(20), Epoch(3))
VALUES = [b"one", b"two", b"three"]


def content(snapshot_id: SnapshotId) -> list[bytes]:
    return list(encode_snapshot(snapshot_id, 5, VALUES))


def with_first() -> MemoryFileSystem:
    """A disk with one snapshot on it."""
    memory = MemoryFileSystem()
    memory.make_folder(log_folder(DATA))
    memory.sync_folder(DATA)
    memory.sync_folder(DATA.parent)
    write_snapshot(memory, DATA, FIRST, content(FIRST))
    return memory


def values_in(filesystem: FileSystem, folder: Path, snapshot_id: SnapshotId) -> list[bytes | None]:
    batches = list(read_snapshot(filesystem, folder, snapshot_id))
    return [record.value for batch in batches[1:-1] for record in batch.records]


def test_snapshots_are_written_found_and_read(filesystem: FileSystem, folder: Path) -> None:
    assert find_snapshots(filesystem, folder) == FoundSnapshots(None, ())
    for snapshot_id in (THIRD, FIRST, SECOND):
        raw = content(snapshot_id)
        assert write_snapshot(filesystem, folder, snapshot_id, raw) == len(b"".join(raw))
    assert list_snapshots(filesystem, folder) == (FIRST, SECOND, THIRD)
    assert find_snapshots(filesystem, folder) == FoundSnapshots(THIRD, ())
    assert values_in(filesystem, folder, SECOND) == VALUES


def test_a_snapshot_is_fetched_in_chunks(filesystem: FileSystem, folder: Path) -> None:
    write_snapshot(filesystem, folder, FIRST, content(FIRST))
    source, size = read_chunk(filesystem, folder, FIRST, 0, 7)
    assert len(source) == 7
    copy = SnapshotWriter(filesystem, folder, SECOND)
    while copy.size_bytes < size:
        copy.append(read_chunk(filesystem, folder, FIRST, copy.size_bytes, 7)[0])
    # The same bytes under the same epoch: a whole snapshot.
    assert copy.snapshot_id == SECOND
    copy.freeze()
    assert values_in(filesystem, folder, SECOND) == VALUES
    assert read_chunk(filesystem, folder, SECOND, size, 7) == (b"", size)


@pytest.mark.parametrize(
    ("name", "snapshot_id"),
    [
        ("00000000000000000010-0000000002.checkpoint", FIRST),
        ("00000000000000000010-0000000002.checkpoint.part", None),
        ("00000000000000000010-0000000002.checkpoint.deleted", None),
        ("0000000000000000010-0000000002.checkpoint", None),
        ("00000000000000000010-000000002.checkpoint", None),
        ("0000000000000000001x-0000000002.checkpoint", None),
        ("0000000000000000001\u0663-0000000002.checkpoint", None),
        ("00000000000000000010.0000000002.checkpoint", None),
        ("bootstrap.checkpoint", None),
        ("00000000000000000010.log", None),
    ],
)
def test_names_are_those_of_kafka(name: str, snapshot_id: SnapshotId | None) -> None:
    assert snapshot_id_in(name) == snapshot_id
    if snapshot_id is not None:
        assert snapshot_name(snapshot_id) == name


def test_what_is_not_whole_gets_no_name(filesystem: FileSystem, folder: Path) -> None:
    raw = content(FIRST)
    for broken in (raw[:-1], raw[1:], [*raw, raw[-1]], [raw[0], raw[1][:-1]], []):
        with pytest.raises(CorruptStorageError):
            write_snapshot(filesystem, folder, FIRST, broken)
    with pytest.raises(CorruptStorageError, match="a batch of epoch 2"):
        write_snapshot(filesystem, folder, THIRD, raw)
    assert list_snapshots(filesystem, folder) == ()
    assert len(settle_snapshots(filesystem, folder)) == 2


def test_what_was_given_up_leaves_nothing(filesystem: FileSystem, folder: Path) -> None:
    writer = SnapshotWriter(filesystem, folder, FIRST)
    writer.append(b"half")
    writer.abandon()
    assert settle_snapshots(filesystem, folder) == ()


def test_an_attempt_begins_anew_where_an_earlier_one_was_left() -> None:
    memory = with_first()
    left = SnapshotWriter(memory, DATA, SECOND)
    left.append(bytes(100_000))
    write_snapshot(memory, DATA, SECOND, content(SECOND))
    assert find_snapshots(memory, DATA) == FoundSnapshots(SECOND, ())


def test_leftovers_are_removed_and_names_made_durable() -> None:
    memory = with_first()
    SnapshotWriter(memory, DATA, SECOND).append(b"half")
    deleted = snapshot_name(THIRD) + ".deleted"
    memory.open(log_folder(DATA) / deleted, create=True).close()
    part = snapshot_name(SECOND) + ".part"
    assert sorted(settle_snapshots(memory, DATA)) == sorted([part, deleted])
    memory.crash()
    assert memory.list(log_folder(DATA)) == [snapshot_name(FIRST)]


def test_a_name_that_only_the_page_cache_knew_is_durable_once_settled() -> None:
    memory = with_first()
    # Killed between the rename and the sync of the folder.
    memory.rename(snapshot_path(DATA, FIRST), snapshot_path(DATA, SECOND))
    memory.kill()
    assert settle_snapshots(memory, DATA) == ()
    memory.crash()
    assert find_snapshots(memory, DATA) == FoundSnapshots(SECOND, ())


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.integers(0, 12))
def test_a_power_cut_leaves_the_old_snapshots_and_the_new_one_whole_or_not_at_all(
    seed: int, steps: int
) -> None:
    memory = with_first()
    memory.begin_job()
    write_snapshot(memory, DATA, SECOND, content(SECOND))
    memory.end_job()
    memory.crash(random.Random(seed), steps=min(steps, len(memory.job_steps)))
    settle_snapshots(memory, DATA)
    found = find_snapshots(memory, DATA)
    assert found.problems == ()
    assert found.newest in (FIRST, SECOND)
    for snapshot_id in list_snapshots(memory, DATA):
        assert values_in(memory, DATA, snapshot_id) == VALUES


def test_a_written_snapshot_survives_the_worst_power_cut() -> None:
    memory = with_first()
    write_snapshot(memory, DATA, SECOND, content(SECOND))
    memory.crash()
    assert find_snapshots(memory, DATA) == FoundSnapshots(SECOND, ())


def test_every_cut_and_every_flipped_bit_is_found_out() -> None:
    raw = b"".join(content(SECOND))
    memory = with_first()
    path = snapshot_path(DATA, SECOND)
    for broken in [
        *(raw[:end] for end in range(len(raw))),
        *(raw[:at] + bytes((raw[at] ^ 1 << at % 8,)) + raw[at + 1 :] for at in range(len(raw))),
        raw + b"\0",
    ]:
        file = memory.open(path, create=True)
        file.truncate(0)
        file.write_at(0, broken)
        file.close()
        found = find_snapshots(memory, DATA)
        assert found.newest == FIRST
        (problem,) = found.problems
        assert problem.startswith(f"snapshot {path.name} is ignored: ")


def test_reading_a_corrupt_snapshot_names_the_place() -> None:
    memory = with_first()
    path = snapshot_path(DATA, FIRST)
    first_bytes = len(content(FIRST)[0])
    memory.rot(path, first_bytes + 70)
    with pytest.raises(CorruptStorageError, match=f"at byte {first_bytes}: .*checksum"):
        values_in(memory, DATA, FIRST)


@pytest.mark.parametrize("action", ["truncate", "write", "sync", "read", "rename", "sync-folder"])
def test_a_disk_that_refuses_ends_it(action: str) -> None:
    memory = with_first()
    memory.fail_next(action, errno.EIO)
    with pytest.raises(StorageFailed, match=r"could not write .*\.checkpoint\.part"):
        write_snapshot(memory, DATA, SECOND, content(SECOND))
    memory.clear_faults()
    assert FIRST in list_snapshots(memory, DATA)


def test_without_a_folder_nothing_is_written() -> None:
    with pytest.raises(StorageFailed, match=r"could not write .*\.checkpoint\.part"):
        write_snapshot(MemoryFileSystem(), DATA, FIRST, content(FIRST))


def test_a_snapshot_that_is_not_there_is_missing(filesystem: FileSystem, folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_chunk(filesystem, folder, FIRST, 0, 1)
    with pytest.raises(FileNotFoundError):
        next(read_snapshot(filesystem, folder, FIRST))
