"""``splitbrain shrink`` of a run in containers: one cut is left, confirmed, and nothing else."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.run_folder import RunFolder
from tests.containers.real_runs import ROOT, leftovers, ran, splitbrain, words_of_test

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]

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


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two faults, one of which shows the planted bug."""
    folder = tmp_path_factory.mktemp("shrink")
    (folder / "plan.toml").write_text(PLAN)
    options = ("--bug", "stale-leader-reads", "--nemesis", str(folder / "plan.toml"))
    code, output, errors = ran(*words_of_test(folder, *options, "--time-limit", "12"))
    assert code == 1, output + errors
    return (folder / "latest").resolve()


def left_over(search: Path) -> str:
    """Whatever any of the search's runs left in the engine."""
    lines = [json.loads(line) for line in (search / "tries.jsonl").read_text().splitlines()]
    runs = [Path(line["folder"]).name for line in lines if line["folder"]]
    assert runs
    return "".join(map(leftovers, runs))


# Three minutes; the same search over simulated runs gates each change.
@pytest.mark.nightly
def test_one_cut_is_left_of_two_faults(failed: Path) -> None:
    options = ("--tries", "2", "--at-least", "1", "--runs", "8")
    code, output, errors = ran("shrink", str(failed), *options)
    assert code == 0, output + errors
    assert "faults 2 -> 1, " in output, output
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
        # A try that has not begun its first step does not take signals yet.
        while not any(path.stat().st_size for path in folder.glob("*/*/phases.jsonl")):
            assert time.monotonic() < deadline
            assert search.poll() is None
            time.sleep(0.2)
        os.kill(search.pid, signal.SIGINT)
        output, errors = search.communicate(timeout=200)
    assert search.returncode == 2, output + errors
    assert "interrupted: this try is ended in order" in errors
    assert "interrupted: no plan was settled, so nothing became smaller" in output
    assert left_over(folder) == ""
