"""Our quorum with a wrong clock: it goes on, and the fault is seen to bite."""

import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]


def test_a_correct_quorum_survives_a_leader_with_a_wrong_clock(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "splitbrain.harness.cli",
                "test",
                "--system",
                "kraft",
                "--seed",
                "7",
            ),
            *("--nemesis", "clock-jump:leader", "--time-limit", "8", "--rate", "60"),
            *("--no-analyze", "--runs-folder", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    found = results.read(RunFolder((tmp_path / "latest").resolve()).results)
    assert [fault.kind for fault in found.faults] == ["clock-jump"]
    assert "VALID" in output
    assert "not-bitten" not in output, output
    assert "not-applicable" not in output, output
