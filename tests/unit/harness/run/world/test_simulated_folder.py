"""The run folder of a simulated run is judged as any other."""

import shlex
from pathlib import Path

import msgspec
import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign.sweep.trial import result_of, simulated_system
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.manifest import damage, write_manifest
from splitbrain.harness.folder.results import Results
from splitbrain.harness.folder.scenario_file import (
    read_named_scenario,
    read_scenario,
    read_simulation,
)
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.folder.simulation_record import INVARIANTS, invariants_result
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.judge import _judge_record
from splitbrain.harness.judge.simulated_outcomes import evidence_of, judged
from splitbrain.harness.report.message_timeline_section import why_no_timeline
from splitbrain.harness.run.world import folder as folders
from splitbrain.harness.run.world.folder import keep_sweep_run, scheduled, story
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.timeline_records import TimelineLife, TimelineViolation
from tests.plans import changed
from tests.unit.harness.small_worlds import broken, calm, outcome, scenario, violation


def kept(given: SimulationOutcome, runs: Path) -> RunFolder:
    return RunFolder(keep_sweep_run(judged(given), runs))


@pytest.fixture(autouse=True)
def _without_workers(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """No worker processes: what they do is tested elsewhere."""
    monkeypatch.setattr("splitbrain.harness.judge.judge.check_all", lambda *_: [])


def results_of(folder: RunFolder) -> Results:
    return _judge_record(load_run(folder.root), (), Stop())


def result(results: Results, checker: str) -> CheckResult:
    (found,) = [check for check in results.checkers if check.checker == checker]
    return found


def test_what_a_run_left_is_read_back_as_it_was(tmp_path: Path) -> None:
    folder = kept(calm(), tmp_path)
    record = load_run(folder.root)
    assert record.problems == ()
    assert record.damage == ()
    assert tuple(record.events) == calm().events
    assert record.committed_logs == {str(k): v for k, v in calm().committed_logs.items()}
    assert {node: tuple(events) for node, events in record.state_events.items()} == {
        str(node): events for node, events in calm().state_events.items()
    }
    assert read_scenario(folder.scenario) == calm().scenario
    assert read_simulation(folder).trace_hash == calm().trace_hash
    assert folder.root.parent.name == "sim-kraft-register"
    assert not record.living


def test_a_bug_of_the_other_state_machine_is_kept_with_it(tmp_path: Path) -> None:
    of_metadata = {"state_machine": "metadata", "bugs": ("unfenced-too-early",)}
    given = msgspec.structs.replace(
        calm(), scenario=msgspec.structs.replace(calm().scenario, **of_metadata)
    )
    plan = decode_plan(kept(given, tmp_path).plan.read_bytes())
    assert plan.experiment.state_machine == "metadata"
    assert [patch.name for patch in plan.patches] == ["unfenced-too-early"]
    assert decode_plan(kept(calm(), tmp_path).plan.read_bytes()).experiment.state_machine is None


def test_checkers_get_the_same_evidence_in_process_and_from_the_folder(tmp_path: Path) -> None:
    record = load_run(kept(calm(), tmp_path).root)
    evidence = evidence_of(calm())
    assert evidence.converged == record.reached("converged")
    assert list(evidence.operations) == record.operations
    assert evidence.voters == len(record.node_names)


def test_what_its_faults_met_is_counted_alike_in_a_sweep_and_from_the_folder(
    tmp_path: Path,
) -> None:
    kill = Fault(0, "kill", "leader", 500_000, duration_us=100_000, draw=0)
    struck = simulate(scenario(faults=(kill,)), simulated_system("kraft"), is_recording=True)
    counted = result_of(judged(struck), 1, "first", None, 0.0).coverage
    assert {(cell.kind, cell.role, cell.faults) for cell in counted} == {("kill", "leader", 1)}
    assert results_of(kept(struck, tmp_path)).coverage == counted


def test_a_violation_makes_the_run_invalid_and_its_replay_reproduces_it(tmp_path: Path) -> None:
    folder = kept(broken(), tmp_path)
    results = results_of(folder)
    assert (results.verdict, results.exit_code) == (Verdict.INVALID, 1)
    found = result(results, INVARIANTS)
    seen = broken().violation
    assert seen is not None
    assert found.violations[0]["step"] == seen.step
    assert seen.invariant in found.reason
    words = shlex.split(results.reproduce, comments=True)
    assert words[:3] == ["splitbrain", "replay", "--scenario"]
    assert read_named_scenario(words[3]).scenario == broken().scenario
    assert not results.harness_failed, "a violation is the system's failure"


def test_a_run_without_violation_says_in_how_many_steps(tmp_path: Path) -> None:
    results = results_of(kept(calm(), tmp_path))
    found = result(results, INVARIANTS)
    assert found.verdict is Verdict.VALID
    assert f"No invariant was violated in {calm().steps:,} steps." in found.reason
    assert results.vacuous == (), "what one drawn world proves is its sweep's business"


def test_a_simulated_run_without_its_record_is_never_valid(tmp_path: Path) -> None:
    folder = kept(broken(), tmp_path)
    folder.simulation.unlink()
    results = results_of(folder)
    assert result(results, INVARIANTS).verdict is Verdict.UNKNOWN
    assert invariants_result(None).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", ["scenario.json", "simulation.json", "history.jsonl"])
def test_a_folder_that_was_changed_afterwards_is_known_for_it(tmp_path: Path, name: str) -> None:
    folder = kept(calm(), tmp_path)
    assert damage(folder) == []
    path = folder.root / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    assert any(name in clause for clause in damage(folder))


def test_the_violation_stands_in_the_story_once_and_in_its_place() -> None:
    early = TimelineLife(time=1, node="n1", event="started")
    late = TimelineLife(time=9_000_000, node="n1", event="stopped")
    seen = TimelineViolation.of(violation())
    assert story(outcome(story=(late, seen, early))) == [early, seen, late]
    assert sum(isinstance(record, TimelineViolation) for record in story(broken())) == 1


def test_the_schedule_has_the_faults_as_planned_in_the_order_of_their_index() -> None:
    when = Awaited("leads", count=2, delay_us=1500)
    waiting = Fault(0, "kill", "there", 0, duration_us=7000, draw=3, when=when)
    timed = msgspec.structs.replace(waiting, index=2, at_us=2_500_000, when=None)
    assert scheduled(scenario(faults=(timed, waiting))) == (waiting, timed)


def test_no_folder_tells_that_nodes_agree_which_were_left_dead() -> None:
    differ = outcome(unlike="n1 holds less")
    assert "converged" not in {phase.phase for phase in folders.course(differ)}
    assert "converged" in {phase.phase for phase in folders.course(outcome())}


@pytest.mark.parametrize(
    ("changes", "not_run", "why"),
    [
        ({}, set[str](), ""),
        ({"unlike": "n1 holds less"}, {"lost-commits"}, "not all nodes were healed"),
        (
            {"lie": "a disk forgot"},
            {"linearizability:cas-register", "split-brain", "lost-commits"},
            "a disk lied",
        ),
    ],
)
def test_checkers_that_a_world_is_not_asked_are_named_with_the_reason(
    changes: dict[str, str], not_run: set[str], why: str, tmp_path: Path
) -> None:
    found = results_of(kept(msgspec.structs.replace(calm(), **changes), tmp_path))
    assert found.not_run.keys() == not_run
    assert all(reason.startswith(why) for reason in found.not_run.values())


def test_faults_that_a_violation_kept_from_healing_are_no_failure_of_the_harness(
    tmp_path: Path,
) -> None:
    cut = FaultEvent(1_000_000, 0, "partition", "invoked", "leader", (NodeName("n1"),))
    bit = msgspec.structs.replace(cut, phase="verified")
    folder = kept(msgspec.structs.replace(broken(), faults=(cut, bit)), tmp_path)
    results = results_of(folder)
    assert not results.harness_failed
    assert not any("was not healed" in problem for problem in results.problems)


@pytest.mark.parametrize("cut", ["gone", "short"])
def test_a_timeline_that_is_gone_or_cut_is_told_and_never_passes_for_whole(
    tmp_path: Path, cut: str
) -> None:
    folder = kept(calm(), tmp_path)
    if cut == "gone":
        folder.timeline.unlink()
    else:
        lines = folder.timeline.read_bytes().splitlines(keepends=True)
        folder.timeline.write_bytes(b"".join(lines[: len(lines) // 2]))
    results = results_of(folder)
    record = result(results, "record")
    assert record.verdict == "unknown"
    assert record.reason.startswith("The run folder was damaged after the run: timeline.jsonl ")
    if cut == "gone":
        why = why_no_timeline(load_run(folder.root))
        assert why is not None
        assert why.startswith("timeline.jsonl is missing or empty, so no message can be shown")


def test_a_run_that_a_violation_ended_says_so_for_every_checker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kept(broken(), tmp_path)
    plan = decode_plan(folder.plan.read_bytes())
    asked = changed(plan, checkers=("lost-commits",), nemesis="none")
    folder.plan.write_bytes(encode_plan(asked))
    write_manifest(folder)
    unknown = CheckResult("lost-commits", Verdict.UNKNOWN, "The nodes did not converge.")
    monkeypatch.setattr("splitbrain.harness.judge.judge.check_all", lambda *_: [unknown])
    results = results_of(folder)
    violated = f"where {broken().violation.invariant} was violated"  # type: ignore[union-attr]
    reasons = {check.checker: check.reason for check in results.checkers}
    assert reasons["lost-commits"] == (
        f"Not decided: the world ended {violated}, before its nodes could agree."
    )
    assert reasons["record"].startswith("The run folder is whole")
    assert any(
        problem.startswith("The world ended ") and violated in problem
        for problem in results.problems
    )
