"""At the first violation the containers are frozen, and what they hold is collected as it is."""

import json
from pathlib import Path

import pytest

from splitbrain.history.course import read_phases
from splitbrain.history.run_folder import RunFolder
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]


def test_nodes_are_frozen_at_a_stale_read_and_left_cut_off(tmp_path: Path) -> None:
    options = ("--bug", "stale-leader-reads", "--nemesis", "isolate-leader")
    code, found, output = run(tmp_path, *options, "--time-limit", "60", "--stop-on-violation")
    assert code == 1, output
    folder = RunFolder(Path(found.run_folder))
    phases = {phase.phase: phase for phase in read_phases(folder.root)}
    assert "stopped-at-violation" in phases
    assert not {"healed", "converged", "final-reads-ended"} & phases.keys()
    (fault,) = found.faults
    assert not fault.healed
    # The stale read is at most some seconds older than the end, of a minute that was planned.
    events = [json.loads(line) for line in folder.history.read_text().splitlines()]
    assert events[-1]["time"] < 50e9
    for node in folder.node_names():
        assert list((folder.node(node) / "data").rglob("*.log")), node
    assert leftovers(found.run_folder) == ""
