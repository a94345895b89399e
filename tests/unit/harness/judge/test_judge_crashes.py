"""Whatever crashes in a judgement costs its own part: the other verdicts stand and are written."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder import results
from splitbrain.harness.judge import checking
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.report.summary import show
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.run_folder import RunFolder
from tests.plans import changed as changed_plan
from tests.synthetic_runs import seal, write_run
from tests.unit.harness.fake_spark import fake_spark
from tests.unit.harness.in_process import judge_in_process
from tests.unit.harness.judged_runs import verdicts


@pytest.fixture
def stale(tmp_path: Path) -> Path:
    return write_run(tmp_path / "stale", operations_per_second=60, flaw="stale-read")


def written(run: Path) -> bytes:
    return msgspec.json.encode(results.read(RunFolder(run).results))


def explode(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("odd")


def no_space(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_workers_that_cannot_be_had_leave_what_needs_none(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process can be started: the machine is out of them, or of memory."""
    monkeypatch.setattr("splitbrain.harness.pool.framed_child.subprocess.Popen", no_space)
    found = judge_and_publish(run, analyze=False)
    assert verdicts(found)["node-health"] == "valid"
    assert verdicts(found)["linearizability"] == "unknown"
    assert "could not be run: OSError" in found.checkers[1].reason
    assert any("report.html could not be made" in problem for problem in found.problems)
    assert found.exit_code == 2
    assert written(run) == msgspec.json.encode(found)


@pytest.mark.parametrize(
    ("place", "checker"),
    [
        ("splitbrain.harness.judge.judge.check_all", "linearizability"),
        ("splitbrain.harness.judge.node_health.judge_nodes", "node-health"),
        ("splitbrain.harness.judge.record_health.judge_record", "record"),
    ],
)
def test_a_judge_that_crashes_makes_its_own_part_unknown(
    run: Path, monkeypatch: pytest.MonkeyPatch, place: str, checker: str
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr(place, explode)
    found = judge_and_publish(run, analyze=False)
    told = verdicts(found)
    assert told[checker] == "unknown"
    assert found.exit_code == 2
    assert any("ZeroDivisionError: odd" in problem for problem in found.problems)
    assert "valid" in told.values()


@pytest.mark.parametrize(
    "place",
    [
        "splitbrain.harness.judge.judge.node_health.judge_nodes",
        "splitbrain.harness.judge.judge.vacuous_reasons",
        "splitbrain.harness.judge.judge.fault_results",
        "splitbrain.harness.judge.judge.outcome_counts",
        "splitbrain.harness.judge.judge.longest_unavailability_ns",
        "splitbrain.harness.judge.evidence_loader.reigns",
        "splitbrain.harness.report.publishing.to_markdown",
        "splitbrain.harness.report.publishing.to_junit",
        "splitbrain.harness.report.publishing.draw_page",
    ],
)
def test_a_crash_anywhere_costs_no_violation(
    stale: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    judge_in_process(monkeypatch)
    if place.endswith("draw_page"):
        monkeypatch.setattr(place, lambda *_: "report.html could not be made: odd.")
    else:
        monkeypatch.setattr(place, explode)
    found = judge_and_publish(stale, analyze=False)
    assert (found.verdict, found.exit_code) == (Verdict.INVALID, 1)
    assert written(stale) == msgspec.json.encode(found)
    assert any("odd" in problem for problem in found.problems)


@pytest.mark.parametrize("place", ["fault_results", "vacuous_reasons"])
def test_what_could_not_be_told_is_never_green(
    run: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr(f"splitbrain.harness.judge.judge.{place}", explode)
    assert judge_and_publish(run, analyze=False).exit_code == 2


def test_a_split_that_crashes_costs_its_own_checker_only(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr(checking, "split", explode)
    told = verdicts(judge_and_publish(run, analyze=False))
    assert (told["linearizability"], told["split-brain"]) == ("unknown", "valid")


def test_parts_that_cannot_be_summed_up_keep_their_violation(
    stale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr(checking, "combine", explode)
    found = judge_and_publish(stale, analyze=False)
    assert found.exit_code == 1
    assert "could not be summed up: ZeroDivisionError" in found.checkers[0].reason


def report_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A writer of the report that misbehaves, in the process in which it runs."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "report_under_test.py").write_text(f"import os, signal\ndef write(*_):\n    {body}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(
        "splitbrain.harness.report.page_writer._FUNCTION", "report_under_test:write"
    )
    seconds = 0.2 if "pause" in body else 30.0
    monkeypatch.setattr(
        "splitbrain.harness.report.page_writer._LIMITS", Limits(seconds, 512, jobs=1)
    )
    monkeypatch.setattr("splitbrain.harness.pool.workers._GRACE_S", 0.2)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise KeyError('odd')", "crashed: KeyError: 'odd'"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by signal 9"),
        ("signal.pause()", "time budget of 0.2 s used up"),
        ("x = [bytearray(b'x' * 8_000_000) for _ in range(400)]", "memory budget of 512 MiB"),
    ],
)
def test_a_report_writer_that_misbehaves_costs_the_report_alone(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    from tests.unit.harness.in_process import run_parts_here

    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", run_parts_here)
    report_writer(tmp_path, monkeypatch, body)
    RunFolder(run).report.write_text("the report of an earlier judgement")
    found = judge_and_publish(run, analyze=False)
    assert found.exit_code == 0
    assert any("report.html could not be made" in told and says in told for told in found.problems)
    assert written(run) == msgspec.json.encode(found)
    assert RunFolder(run).junit.exists()
    assert not RunFolder(run).report.exists()


@pytest.mark.parametrize(("flaw", "code"), [(None, 3), ("stale-read", 1)])
def test_a_full_disk_under_the_results_leaves_the_verdict_to_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: Any, code: int
) -> None:
    judge_in_process(monkeypatch)
    folder = write_run(tmp_path / "run", operations_per_second=60, flaw=flaw)
    monkeypatch.setattr("splitbrain.harness.folder.results.write_atomically", no_space)
    monkeypatch.setattr("splitbrain.harness.report.publishing.write_atomically", no_space)
    found = judge_and_publish(folder, analyze=False)
    assert found.exit_code == code
    assert found.problems[0].startswith("The verdict could not be written to")
    assert "No space left on device" in found.problems[0]
    assert "Make room" in found.problems[0]


class Unspeakable:
    """A value of a user's model that cannot even be told in words."""

    def __str__(self) -> str:
        raise ZeroDivisionError("odd")


def test_evidence_that_json_cannot_hold_costs_its_details_alone(
    stale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    odd = CheckResult(
        "odd",
        Verdict.INVALID,
        "Found.",
        {"value": Unspeakable()},
        ({"kind": "k", "sentence": "s"},),
    )
    monkeypatch.setattr("splitbrain.harness.judge.judge.check_all", lambda *_: [odd])
    found = judge_and_publish(stale, analyze=False)
    assert found.exit_code == 1
    assert results.read(RunFolder(stale).results).checkers[0].violations[0]["sentence"] == "s"
    assert any("Details were left out" in problem for problem in found.problems)


def test_an_analysis_that_cannot_be_started_costs_no_verdict(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr("splitbrain.harness.pool.spark_child.subprocess.Popen", no_space)
    found = judge_and_publish(run, analyze=True)
    assert found.exit_code == 0
    assert any("could not be started" in problem for problem in found.problems)
    assert any(f"splitbrain analyze {run}" in problem for problem in found.problems)


@pytest.mark.parametrize("action", ["KILL", "STOP"])
def test_an_analysis_that_is_killed_or_hangs_costs_no_verdict(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.syspath_prepend(
        fake_spark(tmp_path, f"import os, signal\nos.kill(os.getpid(), signal.SIG{action})\n")
    )
    monkeypatch.setattr("splitbrain.harness.pool.spark_child._TERMINATION_PATIENCE_S", 0.1)
    stop = Stop()
    if action == "STOP":
        found = judge_and_publish(
            run, analyze=True, stop=stop, on_verdict=lambda _: stop.interrupt()
        )
        says = "was stopped: interrupted"
    else:
        found = judge_and_publish(run, analyze=True)
        says = "was ended by signal 9"
    assert any(says in problem for problem in found.problems)
    # The verdict was known before: it stands.
    assert found.exit_code == 0


def test_judging_that_is_interrupted_leaves_the_rest_undecided(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    stop = Stop()
    stop.interrupt()
    found = judge_and_publish(run, analyze=True, stop=stop)
    assert verdicts(found)["linearizability"] == "unknown"
    assert verdicts(found)["node-health"] == "valid"
    assert (found.headline, found.exit_code) == ("INTERRUPTED", 2)
    assert not RunFolder(run).analysis.exists()
    assert results.read(RunFolder(run).results).headline == "INTERRUPTED"
    whole = judge_and_publish(run, analyze=False)
    assert whole.exit_code == 0
    # Half a judgement never replaces a whole one.
    half = judge_and_publish(run, analyze=False, stop=stop)
    assert (half.exit_code, half.problems) == (
        2,
        ("The results of the earlier judgement are kept.",),
    )
    assert written(run) == msgspec.json.encode(whole)


def test_two_judgements_at_once_do_not_disturb_each_other(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        codes = [
            found.exit_code
            for found in pool.map(lambda _: judge_and_publish(run, analyze=False), range(4))
        ]
    assert codes == [0, 0, 0, 0]
    assert results.read(RunFolder(run).results).exit_code == 0
    assert not list(run.glob(".*.part"))


def test_a_folder_that_cannot_be_written_is_judged(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    monkeypatch.setattr("splitbrain.harness.judge.judging_lock.LOCK_NAME", "no/such/folder/lock")
    assert judge_and_publish(run, analyze=False).exit_code == 0


class Unwritable:
    """A stream on which every write fails."""

    encoding = "utf-8"

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise OSError


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_summary_that_cannot_be_shown_raises_nothing(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[Exception],
) -> None:
    judge_in_process(monkeypatch)
    found = judge_and_publish(run, analyze=False)
    monkeypatch.setattr("splitbrain.harness.report.summary.forget_output", lambda: None)
    show(found, Console(file=Unwritable(error)))  # type: ignore[arg-type]
    if error is ValueError:
        assert capsys.readouterr().err.startswith("VALID ")


def test_a_run_that_never_loaded_says_nothing_of_the_system(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    folder = RunFolder(run)
    folder.history.write_bytes(b"")
    folder.faults.write_bytes(b"")
    (folder.root / "phases.jsonl").write_text(
        '{"time": 1, "phase": "deploying"}\n{"time": 2, "phase": "collected"}\n'
        '{"time": 3, "phase": "failed", "detail": "n1 exited with code 1"}\n'
    )
    (folder.root / "nodes" / "n1" / "x.log").write_text(
        "Traceback (most recent call last):\nImportError: nodes\n"
    )
    found = judge_and_publish(run, analyze=False)
    assert (found.headline, found.exit_code) == ("HARNESS FAILED", 3)
    assert "ImportError" in found.checkers[-2].reason


def test_a_run_that_could_not_be_deployed_says_why(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in_process(monkeypatch)
    (run / "phases.jsonl").write_text(
        '{"time": 1, "phase": "deploying"}\n{"time": 2, "phase": "torn-down"}\n'
        '{"time": 3, "phase": "failed", "detail": "there is no image"}\n'
    )
    found = judge_and_publish(run, analyze=False)
    assert (found.headline, found.exit_code) == ("HARNESS FAILED", 3)
    record = next(result for result in found.checkers if result.checker == "record")
    why = "The run failed in the step after deploying, before its evidence was collected: there is"
    assert why in str(record)
    assert "died" not in str(found)


def changed(run: Path, **changes: Any) -> None:
    path = RunFolder(run).plan
    path.write_bytes(encode_plan(changed_plan(decode_plan(path.read_bytes()), **changes)))


def test_a_violation_wins_over_everything_at_once(
    stale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed harness, failed heal, crashed report, missing logs, vacuous, interrupted."""
    judge_in_process(monkeypatch)
    monkeypatch.setattr("splitbrain.harness.report.publishing.to_junit", explode)
    changed(stale, planned_faults=9)
    shutil.rmtree(stale / "nodes" / "n3")
    stop = Stop()
    phases = stale / "phases.jsonl"
    phases.write_text(
        phases.read_text()
        + '{"time": 1, "phase": "interrupted"}\n'
        + '{"time": 2, "phase": "failed", "detail": "teardown"}\n'
    )
    # A judge that fails after the end never seals.
    seal(RunFolder(stale))
    found = judge_and_publish(
        stale, analyze=False, harness_problems=("The engine went away.",), stop=stop
    )
    assert (found.headline, found.exit_code) == ("INVALID", 1)
    assert found.problems[0] == "The engine went away."
