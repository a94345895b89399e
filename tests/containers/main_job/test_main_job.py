"""The main job against real containers: a correct quorum is green, a planted bug is not."""

import json
import signal
import time
from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.harness.folder.store import is_alive
from splitbrain.history.course import read_phases
from splitbrain.history.run_folder import RunFolder
from tests.containers.real_runs import StartedTest, leftovers, ran, run, verdicts

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]


def test_a_correct_quorum_survives_each_kind_of_fault(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, "--nemesis", "partition,pause,kill", "--time-limit", "20")
    assert code == 0, output
    assert found.vacuous == ()
    assert set(verdicts(found).values()) == {"valid"}
    assert {fault.kind for fault in found.faults} == {"partition", "pause", "kill"}
    assert all(fault.verified and fault.healed and fault.resumed_ms for fault in found.faults)
    assert any(fault.leader in fault.nodes for fault in found.faults)
    assert len(found.epochs) > 1
    assert set(found.operations) == {"read", "write", "cas"}
    assert found.reproduce in output
    assert leftovers(found.run_folder) == ""
    folder = RunFolder(Path(found.run_folder))
    assert folder.node_names() == ["n1", "n2", "n3"]
    for node in folder.node_names():
        assert folder.committed_log(node).stat().st_size > 1000
        assert folder.state_events(node).stat().st_size > 1000
        assert not (folder.node(node) / "data").exists()
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert len({line["time"] // 1_000_000_000 for line in metrics}) >= 18
    assert {line["system"]["leads"] for line in metrics if line["system"]} == {0, 1}
    assert all(line["system"] is None for line in metrics if line["status"] != "running")
    # A node's own limit: under 80 MiB.
    assert max(line.get("memory_bytes", 0) for line in metrics) < 80 * 2**20


# Of our nodes on this machine tests/integration/test_members_compared.py holds it.
@pytest.mark.nightly
def test_sets_lose_nothing_when_the_leader_is_killed_again_and_again(tmp_path: Path) -> None:
    code, found, output = run(
        tmp_path, "--workload", "set", "--nemesis", "leader-kill", "--time-limit", "15"
    )
    assert code == 0, output
    assert verdicts(found)["set-full"] == "valid"


@pytest.mark.parametrize(
    ("bug", "checkers"),
    [
        pytest.param(
            "stale-leader-reads",
            {"linearizability:cas-register": "invalid", "lost-commits": "valid"},
            id="reads from a deposed leader",
            # tests/containers/suite has it found by the same checker.
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "ack-before-commit",
            {"lost-commits": "invalid"},
            id="writes acknowledged before they are committed",
        ),
    ],
)
def test_a_planted_bug_is_caught(tmp_path: Path, bug: str, checkers: dict[str, str]) -> None:
    code, found, output = run(
        tmp_path, "--bug", bug, "--nemesis", "isolate-leader", "--time-limit", "15"
    )
    assert code == 1, output
    assert verdicts(found).items() >= checkers.items()
    # Of a violation the nodes' data are kept.
    assert (RunFolder(Path(found.run_folder)).node(NodeName("n1")) / "data").is_dir()


def test_a_killed_harness_leaves_a_folder_that_check_judges(tmp_path: Path) -> None:
    test = StartedTest(tmp_path, "--nemesis", "leader-kill", "--time-limit", "60")
    with test.until("kill:leader", "resumed").process as harness:
        harness.kill()
    folder = RunFolder(test.root)
    assert not is_alive(folder)
    assert "torn-down" not in {phase.phase for phase in read_phases(folder.root)}
    code, output, errors = ran("check", str(folder.root), "--no-analyze", "--json")
    found = json.loads(output)
    # It ended before its plan did, so it cannot be green; nor did the system do anything wrong.
    assert code == 2, output + errors
    told = {result["checker"]: result["verdict"] for result in found["checkers"]}
    assert told["linearizability:cas-register"] == "valid"
    assert "invalid" not in told.values()
    # Checking has saved what the nodes left and removed the rest.
    assert leftovers(folder.root) == ""


def test_ctrl_c_heals_stops_and_reports(tmp_path: Path) -> None:
    test = StartedTest(tmp_path, "--nemesis", "isolate-leader", "--time-limit", "60")
    test.until("partition:leader", "verified")
    assert leftovers(test.root) != ""
    interrupted = time.monotonic()
    test.process.send_signal(signal.SIGINT)
    before = len(test.said)
    code, said = test.end()
    assert code == 2, said
    assert time.monotonic() - interrupted < 60
    assert "removed" in said[before:]
    assert "Reproduce" in said[before:]
    assert leftovers(test.root) == ""
