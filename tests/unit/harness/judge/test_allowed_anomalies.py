"""Anomalies that a system documents are in the plan, and a folder is judged by it alone."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import RunId
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.harness.folder import results
from splitbrain.harness.folder.results import write_verdict
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.junit import to_junit
from splitbrain.harness.report.page import report_page
from splitbrain.harness.report.summary import render, to_markdown
from splitbrain.harness.run.options import prepare
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.run_record import plan_digest
from tests.synthetic_runs import write_run
from tests.unit.harness.judged_runs import edit_plan, judged, judged_as_it_is
from tests.unit.harness.run_fake import FakeRun

pytestmark = pytest.mark.usefixtures("in_process")

STALE = AllowedAnomaly("linearizability:cas-register", "not-linearizable", "followers answer")


def as_json(*allowed: AllowedAnomaly) -> list[dict[str, str]]:
    return msgspec.to_builtins(allowed)


@pytest.fixture
def stale(tmp_path: Path) -> RunFolder:
    """A run with one stale read."""
    return RunFolder(write_run(tmp_path / "stale", operations_per_second=60, flaw="stale-read"))


def test_a_plan_keeps_what_its_system_documents(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)

    def allowed() -> Sequence[AllowedAnomaly]:
        # It may depend on the settings of the run.
        assert run.system.experiment is not None
        return [STALE] if run.system.experiment.nodes == 3 else []

    run.system.allowed = allowed  # type: ignore[method-assign]
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    assert plan.allowed == (STALE,)
    assert decode_plan(encode_plan(plan)) == plan
    # A replay of it under another version of the adapter is still of one plan.
    assert plan_digest(plan) == plan_digest(msgspec.structs.replace(plan, allowed=()))


def test_what_is_allowed_alarms_nobody_and_is_told_wherever_the_verdict_is(
    stale: RunFolder,
) -> None:
    assert judged(stale).headline == "INVALID"
    edit_plan(stale, allowed=as_json(STALE))
    found = judged(stale)
    assert (found.headline, found.exit_code) == ("VALID", 0)
    (lenient,) = (result for result in found.checkers if result.allowed)
    assert (lenient.checker, lenient.verdict) == (STALE.checker, Verdict.VALID)
    assert lenient.allowed == {"not-linearizable": 1}
    kept = results.read(stale.results)
    assert [result.allowed for result in kept.checkers if result.allowed] == [lenient.allowed]
    console = Console(record=True, width=400, quiet=False, file=None)
    with console.capture() as printed:
        render(found, console)
    terminal = printed.get()
    told = "a violation but those that the system documents (1 not-linearizable in linearizability:"
    assert told in terminal.rstrip().splitlines()[-1]
    page = report_page(load_run(stale.root), found, None)
    assert '<span class="badge small allowed">allowed</span>' in page
    for shown in (terminal, to_markdown(found), page, to_junit(found).decode()):
        assert "Allowed: 1 not-linearizable (followers answer)." in shown
    assert b"<failure" not in to_junit(found)
    for line in (*terminal.splitlines(), *to_markdown(found).splitlines()):
        if STALE.checker in line and "Allowed: 1" in line:
            assert line.strip("| ").startswith(("allowed ", STALE.checker))
            assert "allowed" in line


@pytest.mark.parametrize(
    "other",
    [
        AllowedAnomaly("linearizability:register", "not-linearizable", "x"),
        AllowedAnomaly("linearizability:cas-register", "stale", "x"),
        AllowedAnomaly("lost-commits", "lost", "x"),
    ],
)
def test_all_else_stays_a_violation(stale: RunFolder, other: AllowedAnomaly) -> None:
    edit_plan(stale, allowed=as_json(other))
    found = judged(stale)
    assert (found.headline, found.exit_code) == ("INVALID", 1)
    assert not any(result.allowed for result in found.checkers)


def test_a_plan_that_somebody_makes_lenient_after_the_run_is_no_longer_what_was_sealed(
    stale: RunFolder,
) -> None:
    judged(stale)
    edit_plan(stale, allowed=as_json(STALE))
    assert judged_as_it_is(stale).headline == "UNKNOWN"


def test_a_count_outlives_evidence_that_json_cannot_hold(stale: RunFolder) -> None:
    edit_plan(stale, allowed=as_json(STALE))
    found = judged(stale)
    endless: dict[str, object] = {}
    endless["again"] = endless
    odd = [msgspec.structs.replace(result, lists={"odd": (endless,)}) for result in found.checkers]
    kept = write_verdict(msgspec.structs.replace(found, checkers=tuple(odd)), stale.results)
    assert any("left out of the results" in problem for problem in kept.problems)
    assert [r.allowed for r in results.read(stale.results).checkers if r.allowed] == [
        {"not-linearizable": 1}
    ]
