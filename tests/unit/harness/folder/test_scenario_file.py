"""A scenario from somebody's editor is run as it is, or refused with its field."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.scenario_file import (
    decode_scenario,
    encode_scenario,
    read_named_scenario,
)
from splitbrain.harness.folder.tool_version import other_tool
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.small_worlds import QUICK_BUG, broken, calm, scenario


def written(folder: Path, given: Scenario, **fields: Any) -> Path:
    path = folder / "edited.json"
    path.write_text(json.dumps({**msgspec.to_builtins(given), **fields}))
    return path


def fault(**fields: Any) -> Fault:
    usual = Fault(0, "kill", "leader", 5, duration_us=1, draw=1)
    return msgspec.structs.replace(usual, **fields)


@pytest.mark.parametrize("beyond_promise", [False, True])
def test_whatever_a_sweep_draws_can_be_read(beyond_promise: bool) -> None:
    for seed in range(150):
        drawn = draw(seed, SimOptions(system="kraft", beyond_promise=beyond_promise))
        assert decode_scenario(encode_scenario(drawn)) == drawn


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"nodes": 0}, "nodes cannot be 0: it must be between 1 and 9"),
        ({"load": {"rate": -5}}, "load.rate cannot be -5.0: it must be above 0"),
        ({"load": {"ratte": 5}}, "load.ratte is no field. Did you mean 'rate'?"),
        ({"load": {"workload": "sets"}}, "load.workload cannot be 'sets'. Did you mean 'set'?"),
        ({"recovery": {"scope": "some"}}, "recovery.scope cannot be 'some'. The scopes are"),
        ({"disk": {"torn_chance": -1}}, "disk.torn_chance cannot be -1.0: it must be between 0"),
        (
            {"network": {"delay_us_min": 7, "delay_us_max": 3}},
            "network.delay_us_min cannot be 7: it must be at most network.delay_us_max, 3",
        ),
        ({"drift_ppm": [0, 2_000_000]}, "drift_ppm[1] cannot be 2000000: it must be between"),
        (
            {"faults": [fault(), fault()]},
            "faults[1].index cannot be 0: it must be another one than every other fault's",
        ),
        ({"faults": [fault(kind="kil")]}, "faults[0].kind cannot be 'kil'. Did you mean 'kill'?"),
        ({"faults": [fault(target="n9")]}, "faults[0].target: there is no target 'n9'"),
        ({"faults": [fault(target="there")]}, "faults[0].target cannot be 'there': it must be"),
        ({"faults": [fault(at_us=-1)]}, "faults[0].at_us cannot be -1: it must be between 0"),
        ({"faults": [fault(when=Awaited("leads", "n8"))]}, "faults[0].when.node cannot be 'n8'"),
        (
            {"faults": [fault(options={"until_count": "two"})]},
            "faults[0].options.until_count cannot be 'two': it must be a whole number",
        ),
        (
            {"faults": [fault(kind="flap", options={"count": "two"})]},
            "faults[0].options: the option 'count' of the fault 'flap' cannot be 'two'",
        ),
        (
            {"faults": [fault(kind="kill", options={"count": 2})]},
            "faults[0].options: the fault 'kill' has no option 'count'",
        ),
        (
            {"faults": [fault(options={"nodes": "n1"})]},
            "faults[0].options.nodes cannot be 'n1': it must be a list of n1, n2, n3",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_file_field_and_what_is_allowed(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    path = written(tmp_path, scenario(), **msgspec.to_builtins(fields))
    with pytest.raises(UsageError) as refused:
        read_named_scenario(str(path))
    assert str(refused.value).startswith(f"{path} is no scenario that can be run: {says}")


@pytest.mark.parametrize("made_by", ["me", 5, None, "splitbrain"])
def test_anything_may_stand_for_who_made_it(tmp_path: Path, made_by: object) -> None:
    path = written(tmp_path, scenario(), made_by=made_by)
    assert read_named_scenario(str(path)).scenario == scenario()
    assert other_tool(read_named_scenario(str(path)).made_by) == []


@pytest.mark.parametrize("content", ["", "[]", '{"system": ', "\x00"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="is no scenario that can be run"):
        read_named_scenario(str(path))


def test_an_edited_scenario_is_run_kept_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, scenario(), bugs=[QUICK_BUG])
    runs = ["--runs-folder", str(tmp_path / "runs")]
    code = cli.run(["sim", "--scenario", str(path), "--trace-hash", *runs])
    lines = capsys.readouterr().out.splitlines()
    seen = broken().violation
    assert code == 1
    assert seen is not None
    assert lines[0] == f"splitbrain sim kraft, the world of {path}"
    assert lines[-1] == f"{scenario().seed} {broken().trace_hash}"
    assert lines[-2].startswith(f" FAILED  {seen.invariant}: ")
    (folder,) = (RunFolder(place) for place in (tmp_path / "runs").glob("sim-*/*-5"))
    assert folder.timeline.is_file()
    assert f"replay:    splitbrain replay {folder.root}" in lines
    assert cli.run(["replay", str(folder.root)]) == 1


def test_a_world_that_holds_is_clean_and_leaves_nothing_where_nothing_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, scenario())
    runs = tmp_path / "runs"
    assert cli.run(["sim", "--scenario", str(path), "--keep", "0", "--runs-folder", str(runs)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f" CLEAN  no alarm in {calm().steps:,} steps."
    assert not runs.exists()


def test_a_scenario_of_no_run_is_replayed_and_compared_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, broken().scenario)
    seen = judged(broken()).outcome.violation
    assert seen is not None
    assert cli.run(["replay", "--scenario", str(path), "--times", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"failed in step {seen.step:,}, trace {broken().trace_hash}: ")
    assert lines[1].startswith(f"failed again in step {seen.step:,}, same trace")
    assert lines[2] == "2 of 2 replays failed; 2 had the same trace."
    stopped = ["replay", "--scenario", str(path), "--trace", "--until-step", "3"]
    assert cli.run(stopped) == 2
    assert "stopped after step 3," in capsys.readouterr().out
