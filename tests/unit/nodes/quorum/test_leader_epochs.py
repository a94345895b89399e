"""The epoch list of a log that has lost its beginning."""

import pytest

from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.leader_epochs import LeaderEpochs, starts_from
from splitbrain.nodes.quorum.persistent import EpochStart


def start(epoch: int, offset: int) -> EpochStart:
    return EpochStart(Epoch(epoch), Offset(offset))


LIST = (start(1, 0), start(3, 10), start(4, 20))


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (0, LIST),
        (5, (start(1, 5), start(3, 10), start(4, 20))),
        (10, (start(3, 10), start(4, 20))),
        (19, (start(3, 19), start(4, 20))),
        (20, (start(4, 20),)),
        (90, (start(4, 90),)),
    ],
)
def test_the_epoch_in_force_begins_at_the_new_start(
    offset: int, left: tuple[EpochStart, ...]
) -> None:
    assert starts_from(LIST, Offset(offset)) == left


def test_a_list_that_begins_later_is_left_alone() -> None:
    assert starts_from((start(3, 10),), Offset(5)) == (start(3, 10),)


def test_the_epoch_below_the_start_ends_there() -> None:
    epochs = LeaderEpochs(LIST)
    epochs.cut_start(Offset(10), Epoch(1))
    assert epochs.end_of(Epoch(1), Offset(10), Offset(30)) == (1, 10)
    assert epochs.end_of(Epoch(2), Offset(10), Offset(30)) == (1, 10)
    assert epochs.end_of(Epoch(0), Offset(10), Offset(30)) == (NO_EPOCH, 10)
    assert epochs.end_of(Epoch(3), Offset(10), Offset(30)) == (3, 20)


def test_a_log_cut_at_its_end_knows_its_last_epoch_and_goes_on_with_it() -> None:
    epochs = LeaderEpochs(LIST)
    epochs.cut_start(Offset(30), Epoch(4))
    assert (epochs.last, epochs.start_of(Epoch(4))) == (4, 30)


def test_the_next_epoch_takes_the_place_of_one_without_records() -> None:
    epochs = LeaderEpochs(LIST)
    epochs.cut_start(Offset(30), Epoch(4))
    epochs.begin(start(6, 30))
    assert epochs.starts == (start(6, 30),)
    assert epochs.end_of(Epoch(5), Offset(30), Offset(31)) == (4, 30)


def test_an_epoch_with_records_is_never_replaced() -> None:
    epochs = LeaderEpochs(LIST)
    with pytest.raises(InvariantViolation, match="INV-22"):
        epochs.begin(start(6, 20))


def test_a_list_that_was_emptied_goes_on_with_the_snapshots_epoch_or_a_later_one() -> None:
    epochs = LeaderEpochs(LIST)
    epochs.restart(Epoch(5))
    assert (epochs.last, epochs.is_empty, epochs.starts) == (5, True, ())
    with pytest.raises(InvariantViolation, match="INV-22"):
        epochs.begin(start(4, 40))
    epochs.begin(start(5, 40))
    assert epochs.starts == (start(5, 40),)
