"""What simulation leaves of a run's plan, and what it says where it cannot."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.campaign.shrinking.exact_oracle import performed_by
from splitbrain.harness.campaign.shrinking.rehearsal import rehearsed
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.scenario_file import read_scenario
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.judged_runs import edit_plan
from tests.unit.harness.run_like_containers import SCHEDULE, failed_run


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of a kill and a cut that failed."""
    return failed_run(
        tmp_path_factory.mktemp("runs"),
        schedule=SCHEDULE[:2],
        time_limit_s=1.9,
        rate=100.0,
        concurrency=4,
    )


def test_the_failure_is_found_and_made_small_in_simulation(
    failed: RunFolder, tmp_path: Path
) -> None:
    text = StringIO()
    found = rehearsed(failed, tmp_path, Console(file=text, width=300), Stop(), 120.0)
    assert found.plan is not None, found.lines
    (left,) = found.plan.faults
    assert (left.index, left.kind, left.target) == (1, "partition", "leader")
    assert (found.plan.load_us, found.plan.nodes) == (1_900_000, 3)
    assert found.lines[0].startswith("simulation: seed ")
    assert "2 faults, 1.9 s, 3 nodes, 4 clients -> 1 fault" in found.lines[1]
    (root,) = (tmp_path / "shrunk-like-kraft-register").iterdir()
    # What was kept is the world that failed, and it is that of the plan.
    world = read_scenario(RunFolder(root).scenario)
    assert world.load_us == found.plan.load_us
    assert [fault.index for fault in world.faults] == [1]
    assert performed_by(run(world))


def test_a_time_that_is_over_is_told(failed: RunFolder, tmp_path: Path) -> None:
    found = rehearsed(failed, tmp_path, Console(file=StringIO()), Stop(), 0.0)
    assert found.plan is None
    assert found.lines == ("simulation: no seed failed alike within 0 s.",)


def test_who_does_not_want_to_wait_is_heard(failed: RunFolder, tmp_path: Path) -> None:
    stop = Stop()
    stop.interrupt()
    found = rehearsed(failed, tmp_path, Console(file=StringIO()), stop, 60.0)
    assert found.plan is None
    assert "interrupted" in found.lines[0]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"system": "redis", "bugs": ()}, "the system 'redis' has no simulated nodes"),
        ({"runtime": SIMULATED}, "is a simulated run, which is exact already"),
        ({"concurrency": 5_000}, "one thread does the work of at most 1,000"),
    ],
)
def test_a_run_that_simulation_cannot_be_like_says_why(
    failed: RunFolder, tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    before = failed.plan.read_bytes()
    try:
        edit_plan(failed, **fields)
        found = rehearsed(failed, tmp_path, Console(file=StringIO()), Stop(), 60.0)
    finally:
        failed.plan.write_bytes(before)
    assert found.plan is None
    assert found.lines[0].startswith("not tried in simulation: ")
    assert reason in found.lines[0]
