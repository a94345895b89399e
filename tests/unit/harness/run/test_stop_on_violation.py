"""At the first violation of a growing history the nodes are frozen, and stay as they are."""

from pathlib import Path

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.fault import FaultEvent
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run import violation_watch
from splitbrain.history.course import read_phases
from tests.unit.harness.run_fake import FakeRun, fault

#: Far longer than it takes to see the violation.
LONG_S = 60.0
ISOLATED = (fault("partition", duration_ms=50_000),)


def test_the_nodes_are_frozen_and_nothing_is_healed(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path,
        schedule=ISOLATED,
        time_limit_s=LONG_S,
        bugs=("stale-leader-reads",),
        stop_on_violation=True,
    )
    outcome = run.run()
    assert (outcome.failure, outcome.interrupted) == (None, False)
    phases = [phase.phase for phase in read_phases(outcome.folder.root)]
    assert phases[:4] == ["deploying", "deployed", "ready", "load-started"]
    assert sorted(phases[4:6]) == ["load-ended", "stopped-at-violation"]
    assert phases[6:] == ["stopped", "collected", "torn-down"]
    frozen = run.runtime.calls.index("pause")
    assert run.runtime.calls.count("pause") >= 3
    assert not {"resume", "start", "heal_all"} & set(run.runtime.calls[frozen:])
    faults = run.lines(outcome.folder.faults, FaultEvent)
    assert [event.phase for event in faults] in (["invoked"], ["invoked", "verified"])
    results = judge_and_publish(outcome.folder.root, analyze=False)
    assert (results.verdict, results.exit_code) == (Verdict.INVALID, 1)
    assert not results.vacuous
    (problem,) = results.problems
    assert "frozen at a violation" in problem
    record = load_run(outcome.folder.root)
    assert set(record.committed_logs) == {"n1", "n2", "n3"}


def test_a_correct_system_is_watched_to_the_end(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("partition"),), stop_on_violation=True)
    outcome = run.run()
    assert outcome.failure is None
    phases = [phase.phase for phase in read_phases(outcome.folder.root)]
    assert "stopped-at-violation" not in phases
    assert "final-reads-ended" in phases


def test_a_run_that_nobody_judges_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(violation_watch, "_MODULE", "splitbrain.no_such_module")
    run = FakeRun(tmp_path, time_limit_s=LONG_S, stop_on_violation=True)
    outcome = run.run()
    assert outcome.failure is not None
    assert "could not judge the history while it grows" in str(outcome.failure)
    assert "ended with code 1" in str(outcome.failure)
    assert read_phases(outcome.folder.root)[-2].phase == "torn-down"
