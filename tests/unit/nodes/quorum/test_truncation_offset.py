"""Where a follower cuts a log that diverges: always where one of its own batches ends."""

import pytest

from splitbrain.nodes.quorum.fetching import truncation_offset
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape

#: Epoch 3 holds a batch of two records at 1; epoch 7 opens at 5.
STARTS = (EpochStart(Epoch(3), Offset(0)), EpochStart(Epoch(7), Offset(5)))


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
    log = LogPositions(LogShape(Offset(0), Offset(6), STARTS), UNKNOWN_OFFSET)
    assert truncation_offset(log, (Epoch(epoch), Offset(leader_end))) == kept
