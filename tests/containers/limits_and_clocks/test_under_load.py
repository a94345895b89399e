"""Our quorum with a wrong clock: it goes on, and the fault is seen to bite."""

from pathlib import Path

import pytest

from tests.containers.real_runs import run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]


def test_a_correct_quorum_survives_a_leader_with_a_wrong_clock(tmp_path: Path) -> None:
    options = ("--nemesis", "clock-jump:leader", "--time-limit", "8", "--rate", "60")
    code, found, output = run(tmp_path, "--system", "kraft", *options)
    assert code == 0, output
    assert [fault.kind for fault in found.faults] == ["clock-jump"]
    assert "VALID" in output
    assert "not-bitten" not in output, output
    assert "not-applicable" not in output, output
