"""A run folder gets the verdict that it deserves, whatever state it is in and whatever fails."""

import fcntl
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder import results
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge import analysis_process, checking, judge
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.run_folder import RunFolder
from tests.plans import changed as with_changes
from tests.synthetic_runs import seal, write_run
from tests.unit.harness.fake_spark import fake_spark


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Results]]:
    """Each synthetic run and its verdict."""
    root = tmp_path_factory.mktemp("runs")
    flaws = ("none", "stale-read", "lost-commit", "dead", "traceback")
    yield {
        flaw: judge_and_publish(
            write_run(root / flaw, flaw=None if flaw == "none" else flaw, operations_per_second=60),
            analyze=False,
        )
        for flaw in flaws
    }
    shutil.rmtree(root)


def verdicts(found: Results) -> dict[str, Verdict]:
    return {result.checker.partition(":")[0]: result.verdict for result in found.checkers}


def test_a_good_run_is_valid_and_not_vacuous(judged: dict[str, Results]) -> None:
    found = judged["none"]
    assert set(verdicts(found).values()) == {Verdict.VALID}
    assert (found.vacuous, found.problems, found.exit_code) == ((), (), 0)
    assert (found.elections, found.epochs) == (3, (1, 2, 3))
    assert sum(fault.verified and fault.healed for fault in found.faults) == 3


@pytest.mark.parametrize("least_mib", [0, 1])
def test_the_reading_of_a_large_history_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_mib: int
) -> None:
    monkeypatch.setattr(judge, "_TOLD_FROM_MIB", least_mib)
    root = write_run(tmp_path / "run", operations_per_second=5)
    text = io.StringIO()
    judge_and_publish(root, analyze=False, during=Waiting(Console(file=text)).during)
    told = [line.split(" took")[0] for line in text.getvalue().splitlines() if " took" in line]
    assert told == (["reading the history", "judging"] if least_mib == 0 else ["judging"])


def test_a_stale_read_is_invalid(judged: dict[str, Results]) -> None:
    found = judged["stale-read"]
    assert verdicts(found)["linearizability"] is Verdict.INVALID
    assert (found.headline, found.exit_code) == ("INVALID", 1)
    assert "read" in results.leading_sentence(found)


def test_a_lost_commit_is_invalid_though_the_history_is_linearizable(
    judged: dict[str, Results],
) -> None:
    found = judged["lost-commit"]
    assert verdicts(found)["linearizability"] is Verdict.VALID
    assert verdicts(found)["lost-commits"] is Verdict.INVALID
    assert found.exit_code == 1


def test_a_dead_run_is_judged_and_never_valid(judged: dict[str, Results]) -> None:
    found = judged["dead"]
    assert results.leading_sentence(found).startswith("The harness died during the run")
    assert verdicts(found)["linearizability"] is Verdict.VALID
    assert verdicts(found)["lost-commits"] is Verdict.UNKNOWN
    assert found.exit_code == 2
    assert any("torn" in problem for problem in found.problems)
    assert [fault.applied for fault in found.faults] == [True, True, False]


def test_a_traceback_alone_makes_a_run_invalid(judged: dict[str, Results]) -> None:
    found = judged["traceback"]
    assert {name for name, verdict in verdicts(found).items() if verdict is Verdict.INVALID} == {
        "node-health"
    }


def test_all_files_are_written_and_say_the_same(judged: dict[str, Results]) -> None:
    for found in judged.values():
        folder = RunFolder(Path(found.run_folder))
        assert msgspec.json.encode(results.read(folder.results)) == msgspec.json.encode(found)
        assert folder.summary.read_text().startswith(f"# {found.headline}")
        suite = ET.parse(folder.junit).getroot()
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert f'<span class="badge">{found.headline}</span>' in folder.report.read_text()
        assert not list(folder.root.glob(".*.part"))


def test_judging_again_gives_the_same(judged: dict[str, Results]) -> None:
    before = judged["dead"]
    after = judge_and_publish(Path(before.run_folder), analyze=False)

    def without_cost(found: Results) -> Results:
        stripped = tuple(msgspec.structs.replace(r, figures={}) for r in found.checkers)
        return msgspec.structs.replace(found, checkers=stripped)

    assert without_cost(after) == without_cost(before)


def small_run(root: Path, **changes: Any) -> Path:
    """A run with one quick checker, to vary."""
    run = write_run(root / "run", operations_per_second=40)
    plan = RunFolder(run).plan
    changed = {"checkers": ("split-brain",), **changes}
    plan.write_bytes(encode_plan(with_changes(decode_plan(plan.read_bytes()), **changed)))
    seal(RunFolder(run))
    return run


def test_a_checker_that_crashes_is_unknown_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        checking, "_WHOLE_FUNCTION", "splitbrain.harness.judge.checking:no_such_function"
    )
    found = judge_and_publish(small_run(tmp_path), analyze=False)
    assert verdicts(found)["split-brain"] is Verdict.UNKNOWN
    assert "crashed: AttributeError" in found.checkers[0].reason
    assert found.exit_code == 2


def test_one_crashed_part_leaves_the_other_parts_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", flaw="stale-read", operations_per_second=60)
    evidence = judge._evidence(judge.load_run(run), ())
    prepare = checking._prepare

    def break_the_largest(name: str, given: Evidence) -> Any:
        job = prepare(name, given)
        broken = msgspec.structs.replace(
            job.parts[0], function="splitbrain.harness.judge.checking:gone"
        )
        return msgspec.structs.replace(job, parts=(broken, *job.parts[1:]))

    monkeypatch.setattr(checking, "_prepare", break_the_largest)
    limits = Limits(30, 1024, 2)
    (found,) = checking.check_all(["linearizability:cas-register"], evidence, limits)
    assert found.figures["parts-unknown"] == 1
    assert found.verdict is Verdict.INVALID


def test_a_checker_that_does_not_exist_is_unknown(tmp_path: Path) -> None:
    found = judge_and_publish(small_run(tmp_path, checkers=("no-such-checker",)), analyze=False)
    assert verdicts(found)["no-such-checker"] is Verdict.UNKNOWN
    assert found.exit_code == 2


def test_a_model_that_does_not_know_an_operation_is_unknown(tmp_path: Path) -> None:
    name = "linearizability:element-set"
    found = judge_and_publish(small_run(tmp_path, checkers=(name,)), analyze=False)
    assert found.checkers[0].verdict is Verdict.UNKNOWN


def test_a_failed_analysis_is_a_problem_and_costs_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(tmp_path)
    monkeypatch.syspath_prepend(fake_spark(tmp_path, "raise SystemExit('no Java here')"))
    printed = io.StringIO()
    during = Waiting(Console(file=printed, width=80)).during
    found = judge_and_publish(run, analyze=True, during=during)
    said = [re.sub(r"\d+\.\d", "N", line) for line in printed.getvalue().splitlines()]
    assert said == [
        "judging",
        "analysing with Spark (Spark takes its time to start; --no-analyze leaves it out)",
        *("judging took N s", "analysing with Spark took N s"),
    ]
    assert found.verdict is Verdict.VALID
    assert found.exit_code == 0
    again = f"`splitbrain analyze {run}` runs it again."
    assert found.problems == (
        f"The Spark analysis ended with code 1: no Java here (all of it in analysis.log) {again}",
    )
    assert results.read(RunFolder(run).results) == found


def test_an_analysis_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(fake_spark(tmp_path, "import signal\nsignal.pause()"))
    with analysis_process.AnalysisProcess(tmp_path) as analysis:
        problem = analysis.wait(0.2)
        assert problem == "The Spark analysis did not end within 0.2 s and was stopped."
        assert analysis._process.poll() is not None


def test_a_failed_harness_is_never_valid_and_a_violation_wins_over_it(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    failed = judge_and_publish(run, analyze=False, harness_problems=("The engine went away.",))
    assert (failed.headline, failed.exit_code) == ("HARNESS FAILED", 3)
    assert results.leading_sentence(failed) == "The engine went away."
    (run / "nodes" / "n1" / "x.log").write_text("Traceback (most recent call last):\nE: x\n")
    seal(RunFolder(run))
    invalid = judge_and_publish(run, analyze=False, harness_problems=("The engine went away.",))
    assert (invalid.headline, invalid.exit_code) == ("INVALID", 1)


def test_a_living_run_is_judged_and_said_to_be_alive(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    with RunFolder(run).lock.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = judge_and_publish(run, analyze=False)
    assert any("still going on" in problem for problem in found.problems)


def test_more_planned_faults_than_known_ones_is_vacuous(tmp_path: Path) -> None:
    found = judge_and_publish(small_run(tmp_path, planned_faults=9), analyze=False)
    assert (found.headline, found.exit_code) == ("VACUOUS", 2)
    assert "9 faults" in found.vacuous[0]


def test_a_folder_without_a_plan_is_judged(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    RunFolder(run).plan.unlink()
    found = judge_and_publish(run, analyze=False)
    assert verdicts(found)["linearizability"] is Verdict.VALID
    again = f"splitbrain check {run.parent.name}/{run.name} --made-by "
    assert found.reproduce.startswith(again)


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        judge_and_publish(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("verdict", "vacuous", "failed", "code"),
    [
        (Verdict.VALID, False, False, 0),
        (Verdict.VALID, True, False, 2),
        (Verdict.VALID, True, True, 3),
        (Verdict.UNKNOWN, False, False, 2),
        (Verdict.UNKNOWN, True, True, 3),
        (Verdict.INVALID, False, False, 1),
        (Verdict.INVALID, True, True, 1),
    ],
)
def test_exit_codes(verdict: Verdict, vacuous: bool, failed: bool, code: int) -> None:
    assert results.exit_code(verdict, vacuous=vacuous, harness_failed=failed) == code
    # A run that the user ended is never green, and is otherwise what it is.
    ended = results.exit_code(verdict, vacuous=vacuous, harness_failed=failed, interrupted=True)
    assert ended == max(code, 2) if code != 1 else ended == 1
