from typing import Any

import pytest

from splitbrain.nodes.quorum.settings import QuorumSettings


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
