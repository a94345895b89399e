"""Worlds near the schedule of a run in containers, and the search among them."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.fault import Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.replaying.verdicts import recorded_verdict
from splitbrain.harness.campaign.sweep.like_command import LikeOrder, order_of, try_like
from splitbrain.harness.campaign.sweep.likeness import (
    EffectiveFault,
    Likeness,
    Turn,
    like_scenario,
    likeness_of,
    within_load,
)
from splitbrain.harness.campaign.sweep.trial import run, simulated_system
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.scenario_file import read_scenario, read_simulation
from splitbrain.harness.folder.scenario_rules import check_values
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.plan_text import fits
from tests.plans import changed
from tests.unit.harness.judged_runs import edit_plan
from tests.unit.harness.run_like_containers import SCHEDULE, SETTINGS, failed_run

HAPPENINGS = simulated_system("kraft").happenings


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that a cut of the leader made fail."""
    return failed_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def likeness(failed: RunFolder) -> Likeness:
    return likeness_of(load_run(failed.root), HAPPENINGS)


def test_a_world_has_everything_that_the_run_says(likeness: Likeness) -> None:
    made = like_scenario(likeness, 3)
    check_values(made)
    assert (made.seed, made.nodes, made.bugs) == (3, 3, ("stale-leader-reads",))
    assert (made.settings, made.load.workload, made.load.clients) == (SETTINGS, "register", 6)
    assert (made.load.rate, made.load.timeout_us, made.load_us) == (150.0, 300_000, 2_400_000)
    assert [(fault.index, fault.kind) for fault in made.faults] == [
        (fault.index, fault.kind) for fault in SCHEDULE
    ]
    assert made.unwatched


def test_a_world_has_the_state_machine_of_the_run_and_those_that_follow_it(
    likeness: Likeness,
) -> None:
    observers = (NodeName("n4"), NodeName("n5"))
    plan = changed(likeness.plan, state_machine="metadata", workload="topics", observers=observers)
    made = like_scenario(msgspec.structs.replace(likeness, plan=plan), 0)
    assert (made.state_machine, made.observers) == ("metadata", 2)


def test_a_world_ends_soon_after_the_last_fault_of_the_run(likeness: Likeness) -> None:
    longer = changed(likeness.plan, time_limit_s=60.0)
    made = like_scenario(msgspec.structs.replace(likeness, plan=longer), 0)
    assert abs(made.load_us - (1_900_000 + 200_000 + 6_000_000)) < 20_000
    calm = msgspec.structs.replace(likeness, plan=longer, faults=())
    assert like_scenario(calm, 0).load_us == 60_000_000


def test_faults_strike_where_and_about_when_they_did(likeness: Likeness) -> None:
    kill, partition, pause = likeness.faults
    assert (kill.target, partition.target) == ("follower", "leader")
    # A node hit by lot is hit by role.
    assert pause.target in ("leader", "follower")
    assert abs(partition.at_us - 900_000) < 5_000
    assert abs(partition.duration_us - 800_000) < 5_000
    moments: list[tuple[tuple[int, Awaited | None], ...]] = []
    for seed in range(40):
        scenario = like_scenario(likeness, seed)
        moments.append(tuple((fault.at_us, fault.when) for fault in scenario.faults))
        for fault, struck in zip(scenario.faults, likeness.faults, strict=True):
            assert fault.when is not None or abs(fault.at_us - struck.at_us) <= 1_000_000
            assert 0.74 <= fault.duration_us / struck.duration_us <= 1.26
    pinned = [when for found in moments for _, when in found if when is not None]
    assert {when.on for when in pinned} <= {"leads", "changes-role", "truncates", "starts"}
    assert 10 <= len(pinned) <= 100
    assert len(set(moments)) > 20
    assert like_scenario(likeness, 7) == like_scenario(likeness, 7)


def test_what_did_not_strike_and_what_no_world_can_do_is_left_out(failed: RunFolder) -> None:
    record = load_run(failed.root)
    faults = (
        *record.faults,
        FaultEvent(9_000_000_000, 8, "kill", "not-applicable", "leader"),
        FaultEvent(9_000_000_000, 9, "cpu", "invoked", "leader", nodes=(NodeName("n1"),)),
    )
    scheduled = (
        *record.scheduled,
        Fault(8, "kill", "leader", 2_000_000, 100_000, 1),
        Fault(9, "cpu", "leader", 2_000_000, 100_000, 1),
    )
    record = msgspec.structs.replace(record, faults=faults, scheduled=scheduled)
    made = likeness_of(record, HAPPENINGS)
    assert [one.scheduled.index for one in made.faults] == [0, 1, 2]
    assert made.left_out == {"cpu": "its nodes take no processor time"}


def test_a_fault_that_waits_waits_in_simulation_too(likeness: Likeness) -> None:
    waiting = msgspec.structs.replace(
        SCHEDULE[1], when=Awaited("commits", "leader", None, 3, timeout_us=1_000_000)
    )
    struck = msgspec.structs.replace(likeness.faults[1], scheduled=waiting)
    made = like_scenario(msgspec.structs.replace(likeness, faults=(struck,)), 1)
    assert (made.faults[0].at_us, made.faults[0].when) == (waiting.at_us, waiting.when)


def test_a_fault_of_a_world_is_one_of_a_plan_with_the_options_of_the_run(
    likeness: Likeness,
) -> None:
    jump = msgspec.structs.replace(SCHEDULE[1], kind="clock-jump", options={"offset_ms": 20})
    one = EffectiveFault(jump, "leader", 900_001, 800_002, Turn("leads", 40_003))
    alone = msgspec.structs.replace(likeness, faults=(one,))
    whens = set[bool]()
    for seed in range(20):
        scenario = like_scenario(alone, seed)
        (back,) = within_load(like_scenario(alone, seed)).faults
        # The plan's load ends with the world's, and so does what it cuts off.
        lasts_us = min(back.duration_us, scenario.load_us - back.at_us)
        assert back == msgspec.structs.replace(
            scenario.faults[0], options={"offset_ms": 20}, duration_us=lasts_us
        )
        assert back.at_us + back.duration_us <= scenario.load_us
        whens.add(back.when is None)
    assert whens == {True, False}


def test_every_world_is_a_plan_that_containers_take(likeness: Likeness) -> None:
    """Also of a slow run, whose faults struck when the load was nearly over, or was."""
    late = [
        msgspec.structs.replace(struck, at_us=struck.at_us + 600_000) for struck in likeness.faults
    ]
    slow = msgspec.structs.replace(likeness, faults=tuple(late))
    for seed in range(40):
        scenario = like_scenario(slow, seed)
        plan = within_load(like_scenario(slow, seed))
        assert fits(plan), plan
        assert len(plan.faults) <= 3
        assert plan == msgspec.structs.replace(scenario, faults=plan.faults)


def test_no_invariant_watches_such_a_world(likeness: Likeness) -> None:
    outcome_order = LikeOrder(likeness=likeness, wanted=("nobody",), runs_folder="nowhere")
    result = try_like(outcome_order, 0, "first")
    assert (result.crash, result.violation, result.failed_by) == (None, None, ())
    assert result.figures["failed-otherwise"] == 1


def test_a_seed_is_found_kept_and_replayed(
    failed: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["sim", "--like", str(failed.root), "--runs-folder", str(tmp_path), "--seeds", "0:9"]
    assert cli.run(options) == 1
    told = capsys.readouterr().out
    assert "fails with the same verdict (linearizability:cas-register); 1 seed" in told
    (root,) = (tmp_path / "like-kraft-register").iterdir()
    assert f"splitbrain shrink {root}" in told
    small = RunFolder(root)
    record = read_simulation(small)
    verdict = recorded_verdict(failed)
    assert verdict is not None
    assert (record.failed_by, record.unwatched) == (verdict.violated, True)
    assert record.like == f"kraft-register/{failed.root.name}"
    assert read_scenario(small.scenario).unwatched
    assert cli.run(["replay", str(root)]) == 1


def test_correct_code_has_no_such_seed(
    failed: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if the bug had been mended since: the search must not find what is not there."""
    runs = tmp_path / "runs"
    copy = RunFolder(runs / "kraft-register" / "mended")
    shutil.copytree(failed.root, copy.root)
    edit_plan(copy, bugs=())
    assert cli.run(["sim", "--like", str(copy.root), "--seeds", "0:2"]) == 0
    told = capsys.readouterr().out
    assert "no seed failed with the same verdict (linearizability:cas-register) after 2" in told
    assert not (runs / "like-kraft-register").exists()


def test_a_verdict_that_needs_processes_is_not_looked_for(
    failed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = recorded_verdict(failed)
    assert verdict is not None
    monkeypatch.setattr(
        "splitbrain.harness.campaign.sweep.like_command.recorded_verdict",
        lambda _: msgspec.structs.replace(verdict, violated=("nodes",)),
    )
    with pytest.raises(Exception, match=r"nodes found the violation .* with real processes"):
        order_of(failed, tmp_path)


@pytest.mark.parametrize("option", ["--bug=x", "--scenario=x.json", "--fail-fast", "--keep=3"])
def test_what_the_run_says_is_not_said_twice(
    failed: RunFolder, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sim", "--like", str(failed.root), option]) == 64
    name = option.partition("=")[0]
    assert f"{name} does not fit --like" in capsys.readouterr().err


def test_the_system_of_the_run_may_be_named_and_no_other(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sim", "--like", str(failed.root), "--system", "redis"]) == 64
    assert "is a run of the system 'kraft', not of 'redis'" in capsys.readouterr().err


def test_a_run_that_did_not_fail_is_refused(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    before = failed.results.read_bytes()
    try:
        failed.results.write_text(json.dumps({**json.loads(before), "verdict": "valid"}))
        assert cli.run(["sim", "--like", str(failed.root)]) == 64
        assert "nothing is wrong with " in capsys.readouterr().err
        failed.results.unlink()
        assert cli.run(["sim", "--like", str(failed.root)]) == 64
        assert "nobody has judged " in capsys.readouterr().err
    finally:
        failed.results.write_bytes(before)


def test_an_unwatched_world_breaks_no_invariant() -> None:
    watched = Scenario(system="kraft", seed=5, bugs=("vote-not-persisted",), load_us=300_000)
    assert run(watched).violation is not None
    assert run(msgspec.structs.replace(watched, unwatched=True)).violation is None
