"""A run folder as a run in containers leaves it, made in milliseconds by a simulated world."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import Fault
from splitbrain.harness.campaign.sweep.planned import scenario_of
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.folder.manifest import write_manifest
from splitbrain.harness.folder.store import create_run
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.options import plan_test
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.harness.run.world.folder import write_run
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems.registry import system
from tests.plans import options_with
from tests.unit.harness.in_process import judge_in_process

SETTINGS = {
    "fetch_timeout_ms": "150",
    "election_timeout_ms_min": "75",
    "election_timeout_ms_max": "150",
}
#: The cut alone shows the planted bug; the others are there to be taken away.
SCHEDULE = (
    Fault(0, "kill", "follower", 300_000, 200_000, draw=5),
    Fault(1, "partition", "leader", 900_000, 800_000, draw=6),
    Fault(2, "pause", "random:1", 1_900_000, 200_000, draw=7),
)


def failed_run(
    runs_folder: Path, *, schedule: tuple[Fault, ...] = SCHEDULE, **options: Any
) -> RunFolder:
    """A run of stale reads behind a cut, judged in this process."""
    usual: dict[str, Any] = {
        "schedule": schedule,
        "nemesis": "kill,partition,pause",
        "bugs": ("stale-leader-reads",),
        "settings": SETTINGS,
        "time_limit_s": 2.4,
        "rate": 150.0,
        "concurrency": 6,
        "operation_timeout_s": 0.3,
        "seed": 11,
        "runtime": "docker",
        "runs_folder": runs_folder,
    }
    test = plan_test(options_with(**{**usual, **options}), system("kraft"))
    scenario = msgspec.structs.replace(scenario_of(test), unwatched=True)
    outcome = run(scenario)
    with create_run(runs_folder, "kraft-register", test.experiment.seed) as living:
        plan = plan_of(test, "kraft-register", living.run_id)
        write_run(living.folder, plan, outcome, schedule=test.schedule)
        folder = living.folder
    folder.simulation.unlink()
    folder.scenario.unlink()
    write_manifest(folder)
    with pytest.MonkeyPatch.context() as patch:
        judge_in_process(patch)
        judge_and_publish(folder.root, analyze=False)
    return folder
