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
from tests.planted import with_bug
from tests.unit.nodes.storage.disks import Disk

FIRST = Path("/node/data/__cluster_metadata-0/00000000000000000000.log")
VOTED = QuorumState(Epoch(2), None, NodeId(1), DirectoryId("27c6803dc7cb42dd9baacd494ffacc81"))
FOLLOWING = QuorumState(Epoch(3), NodeId(2), None, None)
VALUE = b"v" * 20
SIZE = len(encode_payloads(Offset(0), Epoch(1), 5, [(None, VALUE)]))


def append(log: LogStore, count: int, epoch: int = 1) -> None:
    for _ in range(count):
        log.append_records(log.end_offset, Epoch(epoch), 5, [(None, VALUE)])


def refuses(action: Callable[[], object]) -> bool:
    try:
        action()
    except CorruptStorageError:
        return True
    return False


@pytest.mark.parametrize("has_bug", [False, with_bug("quorum-state-not-atomic", True)])
def test_a_quorum_state_written_in_place_may_be_gone_after_a_crash(
    disk: Disk, has_bug: bool
) -> None:
    seen: list[QuorumState | None] = []
    refused = False
    for seed in range(40):
        QuorumStateFile(disk, disk.folder).write(VOTED)
        disk.begin_job()
        QuorumStateFile(disk, disk.folder).write(FOLLOWING)
        disk.end_job()
        disk.crash(Random(seed))
        try:
            seen.append(QuorumStateFile(disk, disk.folder).read())
        except CorruptStorageError:
            refused = True
    assert refused == has_bug
    assert VOTED in seen
    assert FOLLOWING in seen


@pytest.mark.parametrize("has_bug", [False, with_bug("rename-not-synced", True)])
def test_a_rename_that_is_not_synced_takes_a_vote_back(disk: Disk, has_bug: bool) -> None:
    file = QuorumStateFile(disk, disk.folder)
    file.write(VOTED)
    disk.crash()
    assert file.read() == (None if has_bug else VOTED)


@pytest.mark.parametrize("has_bug", [False, with_bug("rename-not-synced", True)])
def test_an_epoch_checkpoint_that_is_taken_back_takes_flushed_records_along(
    disk: Disk, has_bug: bool
) -> None:
    log = disk.open_log()
    append(log, 1)
    assert log.flush() == 1
    disk.crash()
    assert disk.reopened_end() == (0 if has_bug else 1)


@pytest.mark.parametrize("has_bug", [False, with_bug("segment-name-not-synced", True)])
def test_a_segment_whose_name_is_not_synced_takes_flushed_records_along(
    disk: Disk, has_bug: bool
) -> None:
    log = disk.open_log(SIZE)
    append(log, 1)
    log.flush()
    append(log, 1)
    assert log.flush() == 2
    disk.crash()
    assert disk.reopened_end() == (1 if has_bug else 2)


def test_a_failed_sync_stops_the_log(disk: Disk) -> None:
    log = disk.open_log()
    append(log, 1)
    disk.fail_next("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(StorageFailed):
        log.flush()


@pytest.mark.planted("failed-fsync-retried")
def test_a_sync_tried_again_promises_what_a_power_cut_takes(disk: Disk) -> None:
    log = disk.open_log()
    append(log, 1)
    disk.fail_next("sync", errno.EIO, path_suffix=".log")
    assert log.flush() == 1
    disk.crash()
    assert disk.reopened_end() == 0


@pytest.mark.parametrize("has_bug", [False, with_bug("mark-leads-flush", True)])
def test_a_mark_ahead_of_the_flush_makes_the_node_refuse_its_own_files(
    disk: Disk, has_bug: bool
) -> None:
    refused: list[bool] = []
    for steps in range(20):
        log = disk.open_log()
        append(log, 1)
        disk.begin_job()
        log.flush()
        disk.end_job()
        disk.crash(steps=min(steps, len(disk.job_steps)))
        refused.append(refuses(disk.reopened_end))
        if refused[-1]:
            break
    assert any(refused) == has_bug


@pytest.mark.parametrize("has_bug", [False, with_bug("mark-not-rolled-back", True)])
def test_a_mark_above_a_truncated_log_makes_the_node_refuse_its_own_files(
    disk: Disk, has_bug: bool
) -> None:
    log = disk.open_log()
    append(log, 3)
    log.flush()
    log.persist_mark()
    log.truncate(Offset(1))
    disk.kill()
    assert refuses(disk.reopened_end) == has_bug


class TestRotBelowTheMark:
    @pytest.fixture(autouse=True)
    def flushed_log(self, disk: Disk) -> None:
        """Three batches of epoch 1 and two of epoch 2, flushed and marked."""
        log = disk.open_log()
        append(log, 3)
        append(log, 2, epoch=2)
        log.flush()
        log.persist_mark()
        disk.kill()

    def test_the_node_refuses_to_start(self, disk: Disk) -> None:
        disk.rot(FIRST, SIZE + 70)
        assert refuses(disk.reopened_end)

    @pytest.mark.planted("corruption-as-torn-tail")
    def test_it_is_cut_off_as_a_torn_tail(self, disk: Disk) -> None:
        disk.rot(FIRST, SIZE + 70)
        assert disk.reopened_end() == 1
        with closing(scan_log(disk, disk.folder)) as scan:
            assert (scan.damage, scan.end_offset) == (None, 1)

    @pytest.mark.planted("checksum-not-verified")
    def test_it_is_read_as_if_nothing_were(self, disk: Disk) -> None:
        disk.rot(FIRST, SIZE + 70)
        log = disk.open_log()
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
        self, disk: Disk, batch: int, mask: int, epochs: tuple[int, ...], has_bug: bool
    ) -> None:
        disk.rot(FIRST, batch * SIZE + 15, mask)
        if not has_bug:
            assert refuses(disk.reopened_end)
            return
        log = disk.open_log()
        assert log.end_offset == 5
        assert tuple(entry.epoch for entry in log.epochs) == epochs
