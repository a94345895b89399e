"""Controllers and brokers as a system under test: topics stay right, a planted bug is caught."""

from pathlib import Path

import pytest

from splitbrain.history.run_folder import RunFolder
from tests.containers.real_runs import run, verdicts

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

METADATA = (
    *("--system", "kraft", "--state-machine", "metadata"),
    *("--rate", "100", "--time-limit", "15"),
)


def test_topics_stay_right_while_the_active_controller_is_killed(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, *METADATA, "--nemesis", "leader-kill")
    assert code == 0, output
    assert set(verdicts(found).values()) == {"valid"}
    assert set(found.operations) == {"create", "delete", "describe", "view"}
    # The brokers serve, and each kill is followed by a change in a new epoch.
    assert found.operations["view"].ok > 100
    assert all(fault.failover_ms for fault in found.faults)
    assert RunFolder(Path(found.run_folder)).node_names() == ["n1", "n2", "n3", "n4", "n5"]


def test_topics_acknowledged_before_they_are_committed_are_caught(tmp_path: Path) -> None:
    # A cut leader must be asked for a change before it resigns: 3 s after, with this setting.
    patient = ("--setting", "fetch_timeout_ms=2000", "--nemesis", "isolate-leader-8s")
    code, found, output = run(tmp_path, *METADATA, "--bug", "ack-before-commit", *patient)
    assert code == 1, output
    assert verdicts(found)["node-health"] == "valid"
    assert verdicts(found)["lost-commits"] == "invalid"
