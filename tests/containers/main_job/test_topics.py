"""Controllers and brokers as a system under test: topics stay right, a planted bug is caught."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import results
from history.run_folder import RunFolder

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[3]


def run(folder: Path, *options: str) -> tuple[int, results.Results, str]:
    words = ("--system", "kraft", "--state-machine", "metadata", "--seed", "7", "--no-analyze")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness.cli", "test", *words),
            *("--rate", "100", "--time-limit", "15", "--runs-folder", str(folder), *options),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    path = RunFolder((folder / "latest").resolve()).results
    assert path.is_file(), done.stdout + done.stderr
    return done.returncode, results.read(path), done.stdout + done.stderr


def verdicts(found: results.Results) -> dict[str, str]:
    return {result.checker: result.verdict.value for result in found.checkers}


def test_topics_stay_right_while_the_active_controller_is_killed(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, "--nemesis", "leader-kill")
    assert code == 0, output
    assert set(verdicts(found).values()) == {"valid"}
    assert set(found.operations) == {"create", "delete", "describe", "view"}
    # The brokers serve, and each kill is followed by a change in a new epoch.
    assert found.operations["view"].ok > 100
    assert all(fault.failover_ms for fault in found.faults)
    assert RunFolder(Path(found.run_folder)).node_names() == ["n1", "n2", "n3", "n4", "n5"]


def test_topics_acknowledged_before_they_are_committed_are_caught(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, "--bug", "ack-before-commit", "--nemesis", "isolate-leader")
    assert code == 1, output
    assert verdicts(found)["lost-commits"] == "invalid"
    assert verdicts(found)["node-health"] == "valid"
