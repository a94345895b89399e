"""One plan, two worlds: what a plan becomes in the simulated one."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.campaign.sweep.planned import (
    check_plan,
    lines_of,
    run_planned,
    scenario_of,
    why_untold,
)
from splitbrain.harness.folder.scenario_file import read_scenario
from splitbrain.harness.judge.evidence_loader import RunRecord, load_run
from splitbrain.harness.judge.node_health import judge_nodes
from splitbrain.harness.judge.record_health import judge_record
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.message_timeline_section import why_no_timeline
from splitbrain.harness.run.options import PlannedTest, plan_test
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.history.course import read_phases
from splitbrain.history.pairing import pair
from splitbrain.history.plan import reproduce_command, sub_seeds
from splitbrain.systems.registry import system
from splitbrain.workloads.workload import workload
from tests.plans import changed, options_with
from tests.unit.harness.small_worlds import broken

SETTINGS = {
    "fetch_timeout_ms": "150",
    "election_timeout_ms_min": "75",
    "election_timeout_ms_max": "150",
}


def planned(**options: Any) -> PlannedTest:
    usual: dict[str, Any] = {
        "runtime": SIMULATED,
        "nemesis": "none",
        "time_limit_s": 3.0,
        "rate": 60.0,
        "concurrency": 4,
        "seed": 11,
    }
    return plan_test(options_with(**{**usual, **options}), system("kraft"))


def fault(index: int, kind: str, at_ms: int) -> Fault:
    return Fault(index, kind, "leader", at_ms * 1000, 600_000, draw=5)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, list[str]]:
    """A run with a kill and a partition, and what was told of it."""
    schedule = (fault(0, "kill", 900), fault(1, "partition", 1800))
    text = StringIO()
    test = planned(
        schedule=schedule,
        nemesis="kill,partition",
        settings=SETTINGS,
        runs_folder=tmp_path_factory.mktemp("runs"),
    )
    outcome = run_planned(test, Console(file=text, width=120))
    assert (outcome.failure, outcome.interrupted, outcome.loaded) == (None, False, True)
    return load_run(outcome.folder.root), text.getvalue().splitlines()


def test_a_plan_keeps_everything_that_it_says() -> None:
    test = planned(
        schedule=(fault(0, "kill", 1500),),
        nodes=5,
        bugs=("stale-leader-reads",),
        settings=SETTINGS,
        workload="set",
        operation_timeout_s=0.25,
    )
    made = scenario_of(test)
    assert (made.nodes, made.bugs, made.settings) == (5, ("stale-leader-reads",), SETTINGS)
    assert (made.load.workload, made.load.clients, made.load.rate) == ("set", 4, 60.0)
    assert (made.load.timeout_us, made.load_us) == (250_000, 3_000_000)
    (struck,) = made.faults
    assert (struck.at_us, struck.duration_us, struck.draw) == (1_500_000, 600_000, 5)
    assert struck.target == "leader"


def test_a_plan_keeps_its_state_machine_and_those_that_follow_it() -> None:
    made = scenario_of(planned(state_machine="metadata", settings={"brokers": "1"}))
    assert (made.state_machine, made.nodes, made.observers) == ("metadata", 3, 1)
    assert made.load.workload == "topics"
    usual = scenario_of(planned())
    assert (usual.state_machine, usual.observers) == ("registers", 0)


@pytest.mark.parametrize(("limit_s", "holds"), [(60.0, True), (0.005, False)])
def test_a_promised_recovery_is_held_to_by_the_world_itself(limit_s: float, holds: bool) -> None:
    test = planned(schedule=(fault(0, "kill", 2500),), settings=SETTINGS, recovery_limit_s=limit_s)
    made = scenario_of(test)
    assert made.recovery.patience_us == limit_s * 1_000_000
    violation = simulate(made, check_plan(test)).violation
    assert (violation is None) == holds
    assert violation is None or violation.invariant in ("INV-40", "INV-41", "INV-42")


@pytest.mark.parametrize(
    ("bugs", "nemesis", "failed_by"),
    [((), "kill", ()), (("ack-before-commit",), "isolate-leader", ("INV-12",))],
)
def test_a_plan_of_another_state_machine_is_judged_like_any_other(
    bugs: tuple[str, ...], nemesis: str, failed_by: tuple[str, ...]
) -> None:
    test = planned(state_machine="metadata", bugs=bugs, nemesis=nemesis, time_limit_s=8.0, seed=5)
    outcome = judged(simulate(scenario_of(test), check_plan(test)))
    assert outcome.failed_by == failed_by


def test_a_run_of_another_state_machine_leaves_what_all_its_nodes_have_committed(
    tmp_path: Path,
) -> None:
    test = planned(state_machine="metadata", time_limit_s=8.0, seed=5, runs_folder=tmp_path)
    record = load_run(run_planned(test, Console(file=StringIO(), width=120)).folder.root)
    assert record.problems == ()
    assert record.plan is not None
    assert record.plan.experiment.state_machine == "metadata"
    assert record.plan.observers == ("n4", "n5")
    assert set(record.committed_logs) == {"n1", "n2", "n3", "n4", "n5"}
    for log in record.committed_logs.values():
        kinds = {one.f for one in log.records}
        assert {"create", "delete"} <= kinds
    assert {event.node for event in record.events if event.f == "view"} >= {"n4", "n5"}
    assert "--state-machine metadata" in reproduce_command(record.plan)


@pytest.mark.parametrize("nemesis", ["partition,kill,pause,power", "isolate-leader", "leader-kill"])
def test_plans_of_every_kind_have_the_schedule_that_containers_get(nemesis: str) -> None:
    in_containers = planned(nemesis=nemesis, time_limit_s=60.0, runtime="docker")
    simulated = planned(nemesis=nemesis, time_limit_s=60.0)
    assert simulated.schedule == in_containers.schedule
    assert len(scenario_of(simulated).faults) == len(in_containers.schedule) > 0


def test_clients_are_given_the_operations_that_containers_get(
    left: tuple[RunRecord, list[str]],
) -> None:
    record, _ = left
    seed = sub_seeds(11)["workload"]
    operations = workload("register", seed=seed, slots=4, readers=frozenset(), options={})
    first = next(event for event in record.events if event.process == 0)
    planned_first = operations.operation(0, 0)
    assert (first.f, first.key) == (planned_first.f, planned_first.key)
    assert first.value == planned_first.value


def test_a_run_leaves_a_whole_folder_that_is_judged_as_any_other(
    left: tuple[RunRecord, list[str]],
) -> None:
    record, _ = left
    assert record.problems == ()
    assert record.plan is not None
    assert (record.plan.experiment.runtime, record.plan.planned_faults) == (SIMULATED, 2)
    assert not record.is_drawn
    assert judge_record(record).verdict == "valid", judge_record(record).reason
    assert judge_nodes(record).verdict == "valid", judge_nodes(record).reason
    assert pair(record.events)
    phases = [phase.phase for phase in read_phases(record.folder.root)]
    assert phases[-3:] == ["stopped", "collected", "torn-down"]
    assert [line.at_us for line in record.scheduled] == [900_000, 1_800_000]
    assert read_scenario(record.folder.scenario).seed == 11
    assert "--runtime simulated" in reproduce_command(record.plan)


def test_its_course_is_told_as_that_of_a_run_in_containers(
    left: tuple[RunRecord, list[str]],
) -> None:
    _, lines = left
    told = "\n".join(lines)
    assert lines[0] == "splitbrain kraft-register, seed 11, simulated"
    assert "    0.9 s  kill:leader on n" in told
    assert " leads epoch " in told
    stamped = [float(line[:7]) for line in lines if line[7:10] == " s "]
    assert stamped == sorted(stamped)


def test_the_same_plan_comes_to_the_same_every_time(tmp_path: Path) -> None:
    seen: list[bytes] = []
    for place in ("a", "b"):
        test = planned(time_limit_s=0.5, runs_folder=tmp_path / place)
        folder = run_planned(test, Console(file=StringIO())).folder
        seen.append(folder.history.read_bytes())
    assert seen[0] == seen[1] != b""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"concurrency": 5_000}, "at most 1,000"),
        ({"rate": 1e6, "time_limit_s": 3600.0}, "held in memory"),
    ],
)
def test_what_one_thread_cannot_carry_is_refused_before_the_run(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CapabilityError, match=problem):
        check_plan(planned(**options))


def test_a_system_without_simulated_nodes_is_a_request_that_cannot_be_carried_out() -> None:
    test = plan_test(options_with(system="redis", nemesis="none"), system("redis"))
    with pytest.raises(UsageError, match="'redis' has no simulated nodes") as refused:
        check_plan(test)
    assert refused.value.exit_code == 64


def test_a_run_too_long_for_a_timeline_says_so_and_in_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splitbrain.harness.campaign.sweep.planned.STORY_OPERATIONS_MAX", 20)
    text = StringIO()
    test = planned(time_limit_s=0.5, runs_folder=tmp_path)
    record = load_run(run_planned(test, Console(file=text)).folder.root)
    sentence = why_untold(test)
    assert sentence is not None
    assert sentence.startswith("The timeline of messages is left out: the plan has 30 operations")
    assert sentence in text.getvalue().splitlines()
    assert not record.folder.timeline.exists()
    assert record.damage == ()
    assert why_no_timeline(record) == sentence
    assert why_untold(planned(time_limit_s=0.1)) is None


def test_a_violation_is_the_last_that_is_told_of_a_world() -> None:
    lines = lines_of(broken())
    assert lines[-1].endswith("; the world ends here")
    assert not any("nodes removed" in line for line in lines)


def test_the_line_that_reproduces_a_run_names_its_numbers_to_the_last_digit(
    left: tuple[RunRecord, list[str]],
) -> None:
    plan = left[0].plan
    assert plan is not None
    command = reproduce_command(changed(plan, rate=33.3333333, time_limit_s=1234567.5))
    assert " --rate 33.3333333 " in f"{command} "
    assert " --time-limit 1234567.5 " in command
