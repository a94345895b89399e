"""When a snapshot is due."""

import msgspec
import pytest

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host.snapshot_files import SnapshotSchedule

HOUR_US = 3_600_000_000
SETTINGS = QuorumSettings(snapshot_max_new_record_bytes=100)


@pytest.mark.parametrize(
    ("new_bytes", "now", "due"),
    [
        (99, 0, False),
        (100, 0, True),
        (1, HOUR_US - 1, False),
        (1, HOUR_US, True),
        (0, 2 * HOUR_US, False),
    ],
)
def test_bytes_or_age_and_something_new(new_bytes: int, now: int, due: bool) -> None:
    schedule = SnapshotSchedule(SETTINGS, Microseconds(0))
    assert schedule.is_due(new_bytes, Microseconds(now)) is due


def test_age_counts_from_the_last_one() -> None:
    schedule = SnapshotSchedule(SETTINGS, Microseconds(0))
    schedule.began(Microseconds(HOUR_US))
    assert not schedule.is_due(1, Microseconds(HOUR_US + 1))
    assert schedule.is_due(1, Microseconds(2 * HOUR_US))


def test_an_interval_of_zero_is_never_over() -> None:
    settings = msgspec.structs.replace(SETTINGS, snapshot_max_interval_ms=0)
    schedule = SnapshotSchedule(settings, Microseconds(0))
    assert not schedule.is_due(99, Microseconds(1_000 * HOUR_US))
