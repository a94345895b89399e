"""``splitbrain shrink`` of a run in containers: one cut is left, confirmed, and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.run_folder import RunFolder

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[3]
PLAN = """
[[faults]]
kind = "kill"
target = "follower"
at_ms = 2000
duration_ms = 1500

[[faults]]
kind = "partition"
target = "leader"
at_ms = 5500
duration_ms = 4000
"""


def splitbrain(*words: str) -> list[str]:
    return [sys.executable, "-m", "splitbrain.harness.cli", *words]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two faults, one of which shows the planted bug."""
    folder = tmp_path_factory.mktemp("shrink")
    (folder / "plan.toml").write_text(PLAN)
    command = splitbrain(
        *("test", "--bug", "stale-leader-reads", "--nemesis", str(folder / "plan.toml")),
        *("--time-limit", "12", "--seed", "7", "--no-analyze", "--runs-folder", str(folder)),
    )
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return (folder / "latest").resolve()


def left_over(search: Path) -> str:
    """Containers and networks of any of the search's runs."""
    lines = [json.loads(line) for line in (search / "tries.jsonl").read_text().splitlines()]
    runs = [Path(line["folder"]).name for line in lines if line["folder"]]
    assert runs
    found = ""
    for run in runs:
        label = f"label=splitbrain.run={run}"
        for what in (("ps", "-a"), ("network", "ls")):
            command = ["docker", *what, "--filter", label, "-q"]
            found += subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return found


# Three minutes; the same search over simulated runs gates each change.
@pytest.mark.nightly
def test_one_cut_is_left_of_two_faults(failed: Path) -> None:
    command = splitbrain("shrink", str(failed), "--tries", "2", "--at-least", "1", "--runs", "8")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults 2 -> 1, " in done.stdout, done.stdout
    search = failed.parent.parent / "shrinking" / failed.name
    nodes = RunFolder(failed).node_names()
    (left,) = plan_faults(str(search / "plan.toml"), tuple(nodes), 1, 60_000)[0]
    assert (left.kind, left.target) == ("partition", "leader")
    latest = RunFolder((failed.parent.parent / "latest").resolve())
    assert latest.root.is_relative_to(search)
    assert json.loads(latest.results.read_bytes())["verdict"] == "invalid"
    assert left_over(search) == ""


def test_ctrl_c_ends_the_run_in_order_and_removes_its_nodes(failed: Path, tmp_path: Path) -> None:
    command = splitbrain("shrink", str(failed), "--no-simulate", "--runs-folder", str(tmp_path))
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as search:
        folder = tmp_path / "shrinking" / failed.name
        deadline = time.monotonic() + 300
        while not list(folder.glob("*/*/history.jsonl")):
            assert time.monotonic() < deadline
            assert search.poll() is None
            time.sleep(0.2)
        os.kill(search.pid, signal.SIGINT)
        output, errors = search.communicate(timeout=200)
    assert search.returncode == 2, output + errors
    assert "interrupted: this try is ended in order" in errors
    assert "interrupted: no plan was settled, so nothing became smaller" in output
    assert left_over(folder) == ""
