"""Each planted bug of the storage: what a restart finds with it, and that it is right without."""

import errno
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.storage.recovery import scan_log
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.planted import with_bug

FIRST = Path("/node/data/__cluster_metadata-0/00000000000000000000.log")
VOTED = QuorumState(Epoch(2), None, NodeId(1), DirectoryId("27c6803dc7cb42dd9baacd494ffacc81"))
FOLLOWING = QuorumState(Epoch(3), NodeId(2), None, None)
VALUE = b"v" * 20
SIZE = len(encode_payloads(Offset(0), Epoch(1), 5, [(None, VALUE)]))


def append(log: LogStore, count: int, epoch: int = 1) -> None:
    for _ in range(count):
        log.append_records(log.end_offset, Epoch(epoch), 5, [(None, VALUE)])


def open_log(memory: MemoryFileSystem, folder: Path, segment_bytes: int = 1 << 20) -> LogStore:
    return LogStore.open(memory, folder, segment_bytes=segment_bytes)[0]


def reopened_end(memory: MemoryFileSystem, folder: Path) -> int:
    log = open_log(memory, folder)
    end_offset = log.end_offset
    log.close()
    return end_offset


def refuses(action: Callable[[], object]) -> bool:
    """Whether the node would refuse to start."""
    try:
        action()
    except CorruptStorageError:
        return True
    return False


@pytest.mark.parametrize("has_bug", [False, with_bug("quorum-state-not-atomic", True)])
def test_a_quorum_state_written_in_place_may_be_gone_after_a_crash(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    seen: list[QuorumState | None] = []
    refused = False
    for seed in range(40):
        QuorumStateFile(memory, memory_folder).write(VOTED)
        memory.begin_job()
        QuorumStateFile(memory, memory_folder).write(FOLLOWING)
        memory.end_job()
        memory.crash(Random(seed))
        try:
            seen.append(QuorumStateFile(memory, memory_folder).read())
        except CorruptStorageError:
            refused = True
    assert refused == has_bug
    assert VOTED in seen
    assert FOLLOWING in seen


@pytest.mark.parametrize("has_bug", [False, with_bug("rename-not-synced", True)])
def test_a_rename_that_is_not_synced_takes_a_vote_back(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    file = QuorumStateFile(memory, memory_folder)
    file.write(VOTED)
    memory.crash()
    assert file.read() == (None if has_bug else VOTED)


@pytest.mark.parametrize("has_bug", [False, with_bug("rename-not-synced", True)])
def test_an_epoch_checkpoint_that_is_taken_back_takes_flushed_records_along(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    log = open_log(memory, memory_folder)
    append(log, 1)
    assert log.flush() == 1
    memory.crash()
    assert reopened_end(memory, memory_folder) == (0 if has_bug else 1)


@pytest.mark.parametrize("has_bug", [False, with_bug("segment-name-not-synced", True)])
def test_a_segment_whose_name_is_not_synced_takes_flushed_records_along(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    log = open_log(memory, memory_folder, segment_bytes=SIZE)
    append(log, 1)
    log.flush()
    append(log, 1)
    assert log.flush() == 2
    memory.crash()
    assert reopened_end(memory, memory_folder) == (1 if has_bug else 2)


def test_a_failed_sync_stops_the_log(memory: MemoryFileSystem, memory_folder: Path) -> None:
    log = open_log(memory, memory_folder)
    append(log, 1)
    memory.fail_next("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(StorageFailed):
        log.flush()


@pytest.mark.planted("failed-fsync-retried")
def test_a_sync_tried_again_promises_what_a_power_cut_takes(
    memory: MemoryFileSystem, memory_folder: Path
) -> None:
    log = open_log(memory, memory_folder)
    append(log, 1)
    memory.fail_next("sync", errno.EIO, path_suffix=".log")
    assert log.flush() == 1
    memory.crash()
    assert reopened_end(memory, memory_folder) == 0


@pytest.mark.parametrize("has_bug", [False, with_bug("mark-leads-flush", True)])
def test_a_mark_ahead_of_the_flush_makes_the_node_refuse_its_own_files(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    refused: list[bool] = []
    for steps in range(20):
        log = open_log(memory, memory_folder)
        append(log, 1)
        memory.begin_job()
        log.flush()
        memory.end_job()
        memory.crash(steps=min(steps, len(memory.job_steps)))
        refused.append(refuses(lambda: reopened_end(memory, memory_folder)))
        if refused[-1]:
            break
    assert any(refused) == has_bug


@pytest.mark.parametrize("has_bug", [False, with_bug("mark-not-rolled-back", True)])
def test_a_mark_above_a_truncated_log_makes_the_node_refuse_its_own_files(
    memory: MemoryFileSystem, memory_folder: Path, has_bug: bool
) -> None:
    log = open_log(memory, memory_folder)
    append(log, 3)
    log.flush()
    log.persist_mark()
    log.truncate(Offset(1))
    memory.kill()
    assert refuses(lambda: reopened_end(memory, memory_folder)) == has_bug


class TestRotBelowTheMark:
    @pytest.fixture(autouse=True)
    def flushed_log(self, memory: MemoryFileSystem, memory_folder: Path) -> None:
        """Three batches of epoch 1 and two of epoch 2, flushed and marked."""
        log = open_log(memory, memory_folder)
        append(log, 3)
        append(log, 2, epoch=2)
        log.flush()
        log.persist_mark()
        memory.kill()

    def test_the_node_refuses_to_start(self, memory: MemoryFileSystem, memory_folder: Path) -> None:
        memory.rot(FIRST, SIZE + 70)
        assert refuses(lambda: reopened_end(memory, memory_folder))

    @pytest.mark.planted("corruption-as-torn-tail")
    def test_it_is_cut_off_as_a_torn_tail(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        memory.rot(FIRST, SIZE + 70)
        assert reopened_end(memory, memory_folder) == 1
        with closing(scan_log(memory, memory_folder)) as scan:
            assert (scan.damage, scan.end_offset) == (None, 1)

    @pytest.mark.planted("checksum-not-verified")
    def test_it_is_read_as_if_nothing_were(
        self, memory: MemoryFileSystem, memory_folder: Path
    ) -> None:
        memory.rot(FIRST, SIZE + 70)
        log = open_log(memory, memory_folder)
        values = [batch.records[0].value for batch in log.batches(Offset(0), log.end_offset)]
        assert len(values) == 5
        assert [value == VALUE for value in values] == [True, False, True, True, True]

    @pytest.mark.parametrize("has_bug", [False, with_bug("epoch-rot-unnoticed", True)])
    @pytest.mark.parametrize(
        ("batch", "mask", "epochs"),
        [
            (1, 0x01, (1, 2)),  # falls to 0 amid epoch 1
            (3, 0x03, (1, 2)),  # the first batch of epoch 2 says 1
            (4, 0x01, (1, 2, 3)),  # the last batch says 3
        ],
    )
    def test_an_epoch_that_no_checksum_covers_is_believed(
        self,
        memory: MemoryFileSystem,
        memory_folder: Path,
        batch: int,
        mask: int,
        epochs: tuple[int, ...],
        has_bug: bool,
    ) -> None:
        memory.rot(FIRST, batch * SIZE + 15, mask)
        if not has_bug:
            assert refuses(lambda: reopened_end(memory, memory_folder))
            return
        log = open_log(memory, memory_folder)
        assert log.end_offset == 5
        assert tuple(entry.epoch for entry in log.epochs) == epochs
