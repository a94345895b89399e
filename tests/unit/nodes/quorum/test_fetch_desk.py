"""Answers of a leader to a fetch: records, a divergence, a snapshot, or none for a while."""

import pytest
from msgspec.structs import replace

from splitbrain.nodes.quorum.effects import AnswerFetch
from splitbrain.nodes.quorum.events import QuorumStatePersisted, TimerElapsed
from splitbrain.nodes.quorum.fetch_desk import divergence, needed_snapshot
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Epoch, Offset
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import FetchRequest
from splitbrain.nodes.quorum.persistent import LogShape, SnapshotId
from splitbrain.nodes.quorum.settings import QuorumSettings
from tests.unit.nodes.quorum.replicas import (
    MS,
    directory,
    fetch_request,
    lone_leader,
    received,
    shape,
    step,
)

OLDER = SnapshotId(Offset(10), Epoch(2))
NEWER = SnapshotId(Offset(15), Epoch(3))
#: Epoch 2 up to 12, epoch 3 up to 18, epoch 5 up to 20; the log starts at 10.
CUT = replace(shape((2, 10), (3, 12), (5, 18), start=10, end=20), snapshots=(OLDER, NEWER))
WHOLE = replace(shape((1, 0), (2, 10), (3, 12), (5, 18), end=20), snapshots=(OLDER,))


def positions(found: LogShape) -> LogPositions:
    return LogPositions(found, UNKNOWN_OFFSET)


def fetch(offset: int, last_epoch: int) -> FetchRequest:
    return fetch_request(epoch=5, fetch_offset=offset, last_fetched_epoch=last_epoch)


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
    log = positions(shape((1, 0), end=1))
    assert needed_snapshot(log, fetch(0, -1)) is None


def test_a_fetch_that_waits_for_a_slow_disk_asks_for_no_timer_that_is_over() -> None:
    """The host came back at once, again and again, until the leader's election was on disk."""
    replica = lone_leader(settings=QuorumSettings())
    fetch = received(fetch_request(replica_id=4, replica_directory_id=directory(4)))
    assert step(replica, fetch, 1_002) == ()
    assert step(replica, TimerElapsed(), 1_102) == ()
    assert replica.deadline is None or replica.deadline > 1_102 * MS
    effects = step(replica, QuorumStatePersisted(2), 3_000)
    assert any(isinstance(effect, AnswerFetch) for effect in effects)
