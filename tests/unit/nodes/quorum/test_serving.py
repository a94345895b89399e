"""Answers of a leader whose log begins above 0 to a fetch: records, a divergence, a snapshot."""

import pytest

from splitbrain.nodes.quorum.fetch_desk import divergence, needed_snapshot
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, UNKNOWN_OFFSET, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import FetchRequest
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, SnapshotId

OLDER = SnapshotId(Offset(10), Epoch(2))
NEWER = SnapshotId(Offset(15), Epoch(3))
#: Epoch 2 up to 12, epoch 3 up to 18, epoch 5 up to 20; the log starts at 10.
CUT = LogShape(
    Offset(10),
    Offset(20),
    (
        EpochStart(Epoch(2), Offset(10)),
        EpochStart(Epoch(3), Offset(12)),
        EpochStart(Epoch(5), Offset(18)),
    ),
    (OLDER, NEWER),
)
WHOLE = LogShape(Offset(0), Offset(20), (EpochStart(Epoch(1), Offset(0)), *CUT.epochs), (OLDER,))


def positions(shape: LogShape) -> LogPositions:
    return LogPositions(shape, UNKNOWN_OFFSET)


def fetch(offset: int, last_epoch: int) -> FetchRequest:
    return FetchRequest(
        None, NodeId(2), NO_DIRECTORY, Epoch(5), Offset(offset), Epoch(last_epoch),
        UNKNOWN_OFFSET, 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offset", "last_epoch", "why"),
    [
        (0, -1, "an empty log"),
        (9, 2, "below the start"),
        (9, 1, "below the start, in an earlier epoch"),
        (10, 1, "at the start, of another epoch"),
        (10, 3, "at the start, of a later epoch"),
        (17, 1, "it leaves this log below the start"),
        (25, 0, "longer, and it leaves this log below the start"),
    ],
)
def test_needs_the_newest_snapshot(offset: int, last_epoch: int, why: str) -> None:
    assert needed_snapshot(positions(CUT), fetch(offset, last_epoch)) == NEWER, why


@pytest.mark.parametrize(
    ("offset", "last_epoch", "where"),
    [
        (10, 2, None),
        (12, 2, None),
        (15, 3, None),
        (20, 5, None),
        (13, 2, (2, 12)),
        (30, 2, (2, 12)),
        (18, 4, (3, 18)),
        (21, 5, (5, 20)),
    ],
)
def test_needs_no_snapshot_above_the_start(
    offset: int, last_epoch: int, where: tuple[int, int] | None
) -> None:
    request = fetch(offset, last_epoch)
    assert needed_snapshot(positions(CUT), request) is None
    assert divergence(positions(CUT), request) == where


def test_a_whole_log_sends_a_snapshot_to_an_empty_one_alone() -> None:
    log = positions(WHOLE)
    assert needed_snapshot(log, fetch(0, -1)) == OLDER
    assert needed_snapshot(log, fetch(3, 1)) is None
    assert needed_snapshot(log, fetch(3, 0)) is None
    assert divergence(log, fetch(3, 0)) == (0, 0)


def test_without_a_snapshot_nobody_is_sent_to_one() -> None:
    log = positions(LogShape(Offset(0), Offset(1), (EpochStart(Epoch(1), Offset(0)),)))
    assert needed_snapshot(log, fetch(0, -1)) is None
