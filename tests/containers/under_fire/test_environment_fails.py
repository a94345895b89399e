"""The environment fails amid a real run: one sentence, the next step, exit 3, nothing left.

The record up to then is judged all the same.
"""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.harness.judge.evidence_loader import load_run
from tests.containers.leftovers.engine_relay import EngineRelay
from tests.containers.real_runs import StartedTest, check, leftovers, verdicts

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

OPTIONS = ("--system", "kraft", "--nemesis", "none", "--time-limit")
#: Enough for a plan and a few seconds of history.
SMALL_DISK_KIB = 2_500


def test_an_engine_that_goes_away_costs_the_logs_alone(tmp_path: Path, relay: EngineRelay) -> None:
    run = StartedTest(tmp_path, *OPTIONS, "60", engine=relay.host)
    run.until("per second")
    relay.cut()
    code, said = run.end()
    assert code == 3, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith(" HARNESS FAILED  could not"), said
    found = run.results()
    assert verdicts(found)["linearizability:cas-register"] == "valid"
    assert verdicts(found)["record"] == "unknown"
    assert "engine" in found.problems[0]
    assert "splitbrain clean" in said
    assert "nodes stopped" not in said
    # With the engine back, checking fetches what the nodes left and removes the rest.
    code, said = check(run.root)
    assert code == 3, said
    assert verdicts(run.results())["lost-commits"] == "valid"
    assert verdicts(run.results())["record"] == "valid"
    assert leftovers(run.root) == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_KIB}k", "tmpfs", str(folder)], check=True
    )
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_under_the_run_folder_leaves_a_prefix_of_the_run(small_disk: Path) -> None:
    run = StartedTest(small_disk, *OPTIONS, "120", "--rate", "600")
    code, said = run.end()
    assert code == 3, said
    assert "Traceback" not in said
    assert "No space left on device" in said
    assert "Make room" in said
    record = load_run(run.root)
    assert len(record.operations) > 100
    assert not [problem for problem in record.problems if "history.jsonl is broken" in problem]
    assert leftovers(run.root) == ""
    # Nodes write their state events to the same disk: that they end with it is not their fault.
    found = run.results()
    assert verdicts(found)["node-health"] != "invalid"
    assert found.exit_code == 3
    assert check(run.root)[0] == 3


BROKEN_NODE = """
import sys
import msgspec
from splitbrain.harness.cli import main as cli
from splitbrain.systems.kraft.adapter import KraftSystem

describe = KraftSystem.deployment

def broken(self, *arguments):
    spec = describe(self, *arguments)
    command = ("python3", "-c", "print('cannot open the log: no such disk'); raise SystemExit(9)")
    nodes = tuple(
        msgspec.structs.replace(node, command=command) if node.name == "n2" else node
        for node in spec.nodes
    )
    return msgspec.structs.replace(spec, nodes=nodes)

KraftSystem.deployment = broken
sys.exit(cli.run(sys.argv[1:]))
"""


def test_a_node_that_never_starts_shows_its_last_lines(tmp_path: Path) -> None:
    program = tmp_path / "broken_node.py"
    program.write_text(BROKEN_NODE)
    run = StartedTest(tmp_path / "runs", *OPTIONS, "5", program=str(program))
    code, said = run.end()
    assert code == 3, said
    assert "Traceback" not in said
    assert "n2 exited with code 9" in said
    assert "cannot open the log: no such disk" in said.split("splitbrain: ")[-1]
    assert leftovers(run.root) == ""
    assert run.results().exit_code == 3
    code, said = check(run.root)
    assert code == 3, said


def test_three_signals_leave_at_once_and_the_rest_to_the_watchdog(tmp_path: Path) -> None:
    run = StartedTest(tmp_path, *OPTIONS, "60")
    run.until("per second")
    run.process.send_signal(signal.SIGTERM)
    run.until("once more to hurry")
    run.process.send_signal(signal.SIGTERM)
    run.until("interrupted again")
    run.process.send_signal(signal.SIGTERM)
    code, said = run.end()
    assert code == 3, said
    # The clients' thread may still say that it has stopped.
    assert any("splitbrain check" in line for line in said.splitlines()[-2:]), said
    code, said = check(run.root)
    assert code == 2, said
    assert "INTERRUPTED" in said.splitlines()[-1] or "UNKNOWN" in said.splitlines()[-1]
    assert leftovers(run.root) == ""
