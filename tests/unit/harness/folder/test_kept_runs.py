"""Run folders that earlier versions wrote: judged, replayed and read as they were then."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from splitbrain.harness.campaign.replaying.recorded import replay_options
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.scenario_file import decode_scenario, encode_scenario, read_recorded
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.plan import voters
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.in_process import judge_in_process

KEPT = Path(__file__).parents[3] / "kept_runs"
FOLDERS = sorted(path.parent.relative_to(KEPT) for path in KEPT.glob("*/*/*/plan.json"))
SIMULATED = [path for path in FOLDERS if (KEPT / path / "scenario.json").exists()]
PLANNED = [path for path in FOLDERS if path.parent.name == "kraft-register"]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> RunFolder:
    """A copy, since judging writes into the folder."""
    copy = tmp_path / "runs" / request.param.parent.name / request.param.name
    shutil.copytree(KEPT / request.param, copy)
    return RunFolder(copy)


def test_there_are_folders_of_every_kind() -> None:
    assert len(FOLDERS) == 6
    assert len(SIMULATED) == 5
    assert len(PLANNED) == 2


@pytest.mark.parametrize("folder", FOLDERS, indirect=True, ids=str)
def test_an_old_run_is_read_without_a_problem_and_judged(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_in_process(monkeypatch)
    record = load_run(folder.root)
    assert record.problems == ()
    assert record.plan is not None
    assert len(record.scheduled) == record.plan.planned_faults > 0
    # Times came over: each fault was planned within the load.
    limit_us = record.plan.experiment.time_limit_s * 1_000_000
    assert all(0 <= fault.at_us <= limit_us for fault in record.scheduled)
    assert max(fault.at_us for fault in record.scheduled) > limit_us / 10
    # Plans that were run for two seconds are vacuous: too few operations succeeded.
    expected = 1 if record.plan.experiment.bugs else 0 if "sim-" in folder.root.parent.name else 2
    assert cli.run(["check", str(folder.root), "--no-analyze"]) == expected
    told = capsys.readouterr().out
    assert "changed" not in told


@pytest.mark.parametrize("folder", SIMULATED, indirect=True, ids=str)
def test_an_old_scenario_is_written_and_read_again(folder: RunFolder) -> None:
    scenario, _ = read_recorded(folder)
    assert scenario.faults
    assert decode_scenario(encode_scenario(scenario)) == scenario


@pytest.mark.parametrize("folder", SIMULATED, indirect=True, ids=str)
def test_an_old_simulated_run_is_replayed_and_told_to_be_another_world(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    # Worlds changed since (docs/decisions/0028): nobody may take the replay for the same failure.
    code = cli.run(["replay", str(folder.root)])
    told = " ".join("".join(capsys.readouterr()).split())
    assert code == 3, told
    assert "came out differently: it" in told
    assert re.match(r"made by splitbrain 0\.1\.0, [0-9a-f]{7}; this is splitbrain ", told)
    assert "Another version made the run" in told


@pytest.mark.parametrize("folder", PLANNED, indirect=True, ids=str)
def test_the_plan_of_an_old_run_can_be_run_again(folder: RunFolder) -> None:
    schedule = replay_options(folder.root, pinned=False).schedule
    assert schedule is not None
    waiting = [fault.when for fault in schedule if fault.when is not None]
    assert [(when.on, when.delay_us, when.timeout_us) for when in waiting] == [
        ("commits", 1_000, 1_500_000)
    ]
    options = replay_options(folder.root, pinned=True)
    pinned = options.schedule
    assert pinned is not None
    assert all(fault.options["nodes"] for fault in pinned)
    # As a plan file, which travels, it is the same: it hits the same nodes.
    nodes, limit_ms = (
        voters(options.experiment.nodes),
        round(options.experiment.time_limit_s * 1000),
    )
    read, _ = plan_faults("plan.toml", nodes, 1, limit_ms, plan_file=options.plan_file)
    assert [msgspec.structs.replace(fault, index=0) for fault in read] == [
        msgspec.structs.replace(fault, index=0) for fault in pinned
    ]
