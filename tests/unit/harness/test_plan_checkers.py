"""A run is judged by the checkers whose evidence its system can give, and by no other."""

from pathlib import Path

import pytest

from contracts.names import RunId
from harness.options import prepare
from harness.plan_record import plan_of
from tests.unit.harness.run_fake import FakeRun


@pytest.mark.parametrize(
    ("state_events", "committed_logs", "left_out"),
    [
        (True, True, set[str]()),
        (False, True, {"split-brain"}),
        (True, False, {"lost-commits"}),
        (False, False, {"split-brain", "lost-commits"}),
    ],
)
def test_checkers_without_evidence_are_left_out(
    tmp_path: Path, *, state_events: bool, committed_logs: bool, left_out: set[str]
) -> None:
    run = FakeRun(tmp_path)
    run.system.declares_state_events = state_events
    run.system.declares_committed_logs = committed_logs
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    everything = {"linearizability:cas-register", "split-brain", "lost-commits"}
    assert set(plan.checkers) == everything - left_out
    assert plan.declares_committed_logs is committed_logs


def test_a_system_without_committed_logs_is_judged_by_what_its_clients_saw(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.system.declares_committed_logs = False
    outcome = run.run()
    assert outcome.failure is None
    assert not any(
        outcome.folder.committed_log(node).exists() for node in outcome.folder.node_names()
    )
