from typing import Any

import pytest

from splitbrain.nodes.quorum.bugs import NO_BUGS, PlantedBugs
from splitbrain.nodes.quorum.settings import QuorumSettings


def test_every_bug_is_off_by_default() -> None:
    assert NO_BUGS.names() == ()


def test_bugs_are_named_in_kebab_case_and_back() -> None:
    names = ["vote-not-persisted", "stale-leader-reads"]
    assert PlantedBugs.from_names(names).names() == tuple(names)


def test_an_unknown_bug_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown bug 'x'.*ack-before-fsync"):
        PlantedBugs.from_names(["x"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"fetch_timeout_ms": 0},
        {"election_timeout_ms_min": 501},
        {"fetch_max_wait_ms": 500},
        {"retry_back_off_ms": -1},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        QuorumSettings(**wrong)


def test_check_quorum_waits_one_and_a_half_fetch_timeouts() -> None:
    assert QuorumSettings(fetch_timeout_ms=300).check_quorum_timeout_ms == 450
