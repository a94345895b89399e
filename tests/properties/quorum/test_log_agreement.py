"""Two logs that grew apart agree after finitely many rounds, and nothing common is lost."""

from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.fetch_desk import divergence
from splitbrain.nodes.quorum.fetching import truncation_offset
from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    UNKNOWN_OFFSET,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import FetchRequest
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape


def positions(epochs: list[int]) -> LogPositions:
    starts: list[EpochStart] = []
    for offset, epoch in enumerate(epochs):
        if not starts or epoch > starts[-1].epoch:
            starts.append(EpochStart(Epoch(epoch), Offset(offset)))
    shape = LogShape(Offset(0), Offset(len(epochs)), tuple(starts))
    return LogPositions(shape, UNKNOWN_OFFSET)


def fetch(log: LogPositions) -> FetchRequest:
    return FetchRequest(
        "c",
        NodeId(2),
        NO_DIRECTORY,
        Epoch(99),
        log.end_offset,
        log.last_epoch,
        UNKNOWN_OFFSET,
        0,
        1,
    )


@st.composite
def diverged_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs as a quorum leaves them: an epoch's records are a prefix of what its leader wrote.

    Log matching holds between them: the same epoch at the same offset means the same prefix.
    """
    common = sorted(draw(st.lists(st.integers(1, 4), max_size=6)))
    last = common[-1] if common else 0
    tails: list[list[int]] = [[], []]
    # Epochs after the common part belong to one log each, but one may go on with the common one.
    go_on = draw(st.sampled_from((0, 1)))
    tails[go_on] += [last] * draw(st.integers(0, 3)) if last else []
    for epoch in range(last + 1, last + 5):
        tails[draw(st.sampled_from((0, 1)))] += [epoch] * draw(st.integers(0, 3))
    return common + tails[0], common + tails[1]


def common_length(one: list[int], two: list[int]) -> int:
    length = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        length += 1
    return length


@given(diverged_logs())
def test_a_follower_keeps_exactly_what_both_logs_have(logs: tuple[list[int], list[int]]) -> None:
    leader_epochs, follower_epochs = logs
    leader, follower = positions(leader_epochs), positions(follower_epochs)
    common = common_length(leader_epochs, follower_epochs)
    for _ in range(len(follower_epochs) + 1):
        diverging = divergence(leader, fetch(follower))
        if diverging is None:
            break
        end = truncation_offset(follower, diverging)
        assert common <= end < follower.end_offset
        follower.truncate(end)
    assert divergence(leader, fetch(follower)) is None
    assert follower.end_offset == common


@given(diverged_logs())
def test_a_log_never_diverges_from_itself_nor_from_a_prefix(
    logs: tuple[list[int], list[int]],
) -> None:
    epochs = logs[0]
    for length in range(len(epochs) + 1):
        assert divergence(positions(epochs), fetch(positions(epochs[:length]))) is None
