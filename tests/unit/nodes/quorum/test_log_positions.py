import pytest

from splitbrain.nodes.quorum.errors import InvariantViolation, StorageMismatch
from splitbrain.nodes.quorum.fetching import truncation_offset
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape
from tests.unit.nodes.quorum.replicas import shape


def positions(*starts: tuple[int, int], end: int = 0) -> LogPositions:
    return LogPositions(shape(*starts, end=end), UNKNOWN_OFFSET)


def test_an_empty_log_has_no_epoch_and_no_high_watermark() -> None:
    log = positions()
    assert (log.last_epoch, log.end_offset, log.high_watermark) == (NO_EPOCH, 0, UNKNOWN_OFFSET)


@pytest.mark.parametrize(
    ("epoch", "end"), [(0, (NO_EPOCH, 0)), (1, (1, 3)), (2, (1, 3)), (4, (4, 5)), (9, (4, 5))]
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, end: tuple[int, int]) -> None:
    log = positions((1, 0), (4, 3), end=5)
    assert log.epochs.end_of(Epoch(epoch), log.start_offset, log.end_offset) == end


def test_a_report_makes_durable_what_its_submission_left_behind() -> None:
    log = positions((1, 0), end=2)
    first = log.append(Offset(4), ())
    second = log.append(Offset(6), ())
    log.flushed(first)
    assert (log.flushed_end_offset, log.settled) == (4, False)
    log.flushed(second)
    assert (log.flushed_end_offset, log.settled) == (6, True)


def test_a_flush_reported_after_a_truncation_counts_only_what_is_left() -> None:
    log = positions((1, 0), end=2)
    appended = log.append(Offset(6), ())
    log.truncate(Offset(3))
    again = log.append(Offset(5), ())
    log.flushed(appended)
    assert log.flushed_end_offset == 3
    log.flushed(again)
    assert log.flushed_end_offset == 5


def test_a_truncation_drops_epochs_and_flushed_records() -> None:
    log = positions((1, 0), (3, 2), end=4)
    log.truncate(Offset(2))
    assert (log.last_epoch, log.flushed_end_offset) == (1, 2)


def test_a_truncation_below_the_high_watermark_is_a_violation() -> None:
    log = positions((1, 0), end=4)
    log.advance_high_watermark(Offset(3))
    with pytest.raises(InvariantViolation, match="INV-08"):
        log.truncate(Offset(2))


@pytest.mark.planted("truncate-below-high-watermark")
def test_the_planted_bug_truncates_below_the_high_watermark() -> None:
    log = positions((1, 0), end=4)
    log.advance_high_watermark(Offset(3))
    log.truncate(Offset(2))
    assert log.high_watermark == 2


@pytest.mark.planted("ack-before-fsync")
def test_the_planted_bug_takes_appended_for_flushed() -> None:
    log = positions()
    log.append(Offset(2), (EpochStart(Epoch(1), Offset(0)),))
    assert (log.flushed_end_offset, log.settled) == (2, True)


@pytest.mark.parametrize("offset", [1, 9])
def test_the_high_watermark_neither_falls_nor_passes_the_end(offset: int) -> None:
    log = positions((1, 0), end=4)
    log.advance_high_watermark(Offset(2))
    with pytest.raises(InvariantViolation, match="INV-06"):
        log.advance_high_watermark(Offset(offset))


def test_an_epoch_that_does_not_rise_is_a_violation() -> None:
    log = positions((2, 0), end=2)
    with pytest.raises(InvariantViolation, match="INV-22"):
        log.append(Offset(4), (EpochStart(Epoch(2), Offset(2)),))


@pytest.mark.parametrize("offset", [1, 2])
def test_an_append_must_move_the_end(offset: int) -> None:
    with pytest.raises(InvariantViolation, match="INV-21"):
        positions((1, 0), end=2).append(Offset(offset), ())


def test_a_flush_of_something_never_submitted_is_a_violation() -> None:
    with pytest.raises(InvariantViolation, match="INV-21"):
        positions((1, 0), end=2).flushed(1)


@pytest.mark.parametrize(
    "found",
    [
        shape(end=3),
        shape(start=5, end=3),
        shape((1, 3), end=3),
        shape((2, 0), (1, 1), end=3),
        shape((1, 0), (2, 3), end=3),  # it is the last epoch that begins past the end
    ],
)
def test_a_shape_that_contradicts_itself_is_refused(found: LogShape) -> None:
    with pytest.raises(StorageMismatch):
        LogPositions(found, UNKNOWN_OFFSET)


@pytest.mark.parametrize(
    ("epoch", "leader_end", "kept"),
    [
        (6, 2, 5),  # found by seed 50794: 2 is within our batch of epoch 3, which is not meant
        (6, 9, 5),
        (3, 1, 1),
        (3, 9, 5),
        (7, 6, 6),
        (2, 1, 0),
    ],
)
def test_an_epoch_that_is_not_ours_says_nothing_of_where_our_batches_end(
    epoch: int, leader_end: int, kept: int
) -> None:
    # Epoch 3 holds a batch of two records at 1; epoch 7 opens at 5.
    log = positions((3, 0), (7, 5), end=6)
    assert truncation_offset(log, (Epoch(epoch), Offset(leader_end))) == kept
