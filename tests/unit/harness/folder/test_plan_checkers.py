"""A run is judged by the checkers whose evidence its system can give; the others are named."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.state_event import Resigning
from splitbrain.harness.folder import results
from splitbrain.harness.folder.plan_checkers import (
    checker_options,
    own_checkers,
    resigning_of,
    session_ms_of,
)
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.junit import to_junit
from splitbrain.harness.report.page import report_page
from splitbrain.harness.report.summary import render, to_markdown
from splitbrain.harness.run.options import prepare
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems.kraft.adapter import KraftSystem
from tests.unit.harness.judged_runs import edit, edit_plan, judged
from tests.unit.harness.run_fake import FakeRun

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(
    ("state_events", "committed_logs", "left_out"),
    [
        (True, True, set[str]()),
        (False, True, set[str]()),
        (True, False, {"lost-commits"}),
        (False, False, {"split-brain", "lost-commits"}),
    ],
)
def test_checkers_without_evidence_are_left_out_and_named(
    tmp_path: Path, *, state_events: bool, committed_logs: bool, left_out: set[str]
) -> None:
    run = FakeRun(tmp_path)
    run.system.declares_state_events = state_events
    run.system.declares_committed_logs = committed_logs
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    everything = {"linearizability:cas-register", "split-brain", "lost-commits"}
    assert set(plan.checkers) == everything - left_out
    assert set(plan.checkers_not_run) == left_out
    assert all("system fake" in reason for reason in plan.checkers_not_run.values())
    assert plan.declares_committed_logs is committed_logs


@pytest.mark.parametrize(
    ("given", "session_ms"),
    [
        ({"state_machine": "metadata"}, 9_000),
        (
            {"state_machine": "metadata", "settings": {"broker.session.timeout.ms": "1500"}},
            1_500,
        ),
        ({"state_machine": "metadata", "runtime": SIMULATED}, None),
        ({"state_machine": "registers"}, None),
    ],
)
def test_sessions_are_judged_where_there_are_brokers_and_no_invariant_watches(
    given: dict[str, Any], session_ms: int | None
) -> None:
    experiment = Experiment(system="kraft", nodes=3, **given)
    system = KraftSystem()
    is_judged = "broker-sessions" in own_checkers(system, experiment)
    assert is_judged is (session_ms is not None)
    if session_ms is not None:
        assert session_ms_of(checker_options(system, experiment)) == session_ms


@pytest.mark.parametrize(
    "options", [{}, {"deposed-leaders": 7}, {"deposed-leaders": {"within_ms": "long"}}]
)
def test_a_plan_that_says_nothing_of_deposed_leaders_promises_nothing(
    options: dict[str, Any],
) -> None:
    assert resigning_of(options) is None


@pytest.mark.parametrize("part", [None, "__metadata"])
def test_deposed_leaders_are_judged_where_the_system_promises_something_and_tells_who_leads(
    part: str | None,
) -> None:
    experiment = Experiment(system="kraft", nodes=3)
    system = KraftSystem()
    assert "deposed-leaders" not in own_checkers(system, experiment)
    system.resigning = Resigning(4_000, part)
    assert "deposed-leaders" in own_checkers(system, experiment)
    assert resigning_of(checker_options(system, experiment)) == system.resigning
    system.declares_state_events = False
    assert "deposed-leaders" not in own_checkers(system, experiment)


@pytest.mark.parametrize(
    "options", [{}, {"broker-sessions": 7}, {"broker-sessions": {"session_ms": "long"}}]
)
def test_a_plan_that_says_nothing_of_sessions_promises_none(options: dict[str, Any]) -> None:
    assert session_ms_of(options) is None


def test_a_system_without_committed_logs_is_judged_by_what_its_clients_saw(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.system.declares_committed_logs = False
    outcome = run.run()
    assert outcome.failure is None
    assert not any(
        outcome.folder.committed_log(node).exists() for node in outcome.folder.node_names()
    )


# --- in the verdict ----------------------------------------------------------------------------


def without_state_events(folder: RunFolder, **plan: object) -> None:
    for node in folder.node_names():
        folder.state_events(node).unlink()
    edit_plan(folder, declares_state_events=False, **plan)


def without_any_evidence(folder: RunFolder) -> None:
    for node in folder.node_names():
        folder.committed_log(node).unlink()
    reasons = dict.fromkeys(("split-brain", "lost-commits"), "system kraft: its nodes are mute")
    without_state_events(
        folder,
        declares_committed_logs=False,
        checkers=["linearizability:cas-register"],
        checkers_not_run=reasons,
    )


def test_a_checker_that_was_not_run_is_named_wherever_the_verdict_is(folder: RunFolder) -> None:
    without_any_evidence(folder)
    found = judged(folder)
    assert (found.headline, found.exit_code) == ("VALID", 0), found
    assert set(found.not_run) == {"split-brain", "lost-commits"}
    assert results.read(folder.results).not_run == found.not_run
    console = Console(record=True, width=200, quiet=False, file=None)
    with console.capture() as printed:
        render(found, console)
    terminal = printed.get()
    assert terminal.rstrip().endswith(
        "no checker found a violation (not run: split-brain, lost-commits)."
    )
    for told in (terminal, to_markdown(found), report_page(load_run(folder.root), found, None)):
        assert told.count("not run") >= 2
        assert "its nodes are mute" in told
    assert b"split-brain: system kraft: its nodes are mute" in to_junit(found)


def test_a_run_that_nobody_can_judge_is_unknown(folder: RunFolder) -> None:
    without_any_evidence(folder)
    edit_plan(folder, checkers=[])
    found = judged(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)


@pytest.mark.parametrize("checkers", [["split-brain"], ["linearizability:cas-register"]])
def test_a_divergence_is_found_without_state_events_and_without_being_asked_for(
    folder: RunFolder, checkers: list[str]
) -> None:
    """The workload's list says nothing of logs, or an earlier version has left the checker out."""
    without_state_events(folder, checkers=checkers)
    # One record of one node differs; the nodes cannot agree any more.
    edit(
        folder.committed_log(NodeName("n2")),
        lambda lines: [
            {**line, "digest": "f" * 32} if place == 5 else line for place, line in enumerate(lines)
        ],
    )
    phases = folder.root / "phases.jsonl"
    phases.write_text(phases.read_text().replace('"converged"', '"not-converged"'))
    found = judged(folder)
    assert (found.headline, found.exit_code) == ("INVALID", 1)
    conflict = next(result for result in found.checkers if result.checker == "split-brain")
    assert conflict.verdict is Verdict.INVALID
    assert conflict.figures["conflicting-offsets"] == 1


def test_a_log_that_goes_on_above_its_commit_position_is_in_order(folder: RunFolder) -> None:
    path = folder.committed_log(NodeName("n2"))

    def with_a_tail(lines: list[dict[str, object]]) -> list[dict[str, object]]:
        header, *records = lines
        last = records[-1]
        tail = {**last, "offset": int(str(last["offset"])) + 1, "digest": "f" * 32}
        other = {**header, "end_offset": int(str(header["end_offset"]))}
        return [other, *records, tail]

    edit(path, with_a_tail)
    # Another node has committed something else there.
    edit(
        folder.committed_log(NodeName("n1")),
        lambda lines: [
            {**lines[0], "end_offset": int(lines[0]["end_offset"]) + 1},
            *lines[1:],
            {**lines[-1], "offset": int(lines[-1]["offset"]) + 1, "f": None},
        ],
    )
    found = judged(folder)
    assert found.verdict is Verdict.VALID, found.checkers
